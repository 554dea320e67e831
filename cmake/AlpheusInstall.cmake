# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: headers, libalpheus, the programs, and what CMake and
# pkg-config need to find them.
include(CMakePackageConfigHelpers)

# The headers, and those of log/ that they include. The latter are moved to
# alpheus/log/, and the includes with them, so that no file of another project
# can stand in for them, nor they for one.
set(alpheus_public_headers
  alpheus atomicity candidate cluster_reader cluster_tail durability_plan integrity
  log log_epoch log_reader log_tail options persistent_region recovered_range recovery_report
  remote_memory replication_status reservation tail_record)
list(TRANSFORM alpheus_public_headers
  REPLACE "(.+)" "api/include/alpheus/\\1.h")
list(APPEND alpheus_public_headers
  log/base/deadline.h
  log/base/ids.h
  log/core/durability/persisted_by.h
  log/core/write/appended_record.h
  log/core/durability/flush_order.h
  log/core/write/reserved_record.h)
# The RocksDB plugin includes these, too: nothing that is linked.
set(alpheus_rocksdb_headers
  log/base/check.h log/base/deadline.h log/base/ids.h log/base/mutex.h
  log/base/status_macros.h)
set(alpheus_staging ${PROJECT_BINARY_DIR}/install_headers)
list(TRANSFORM alpheus_public_headers PREPEND ${PROJECT_SOURCE_DIR}/
  OUTPUT_VARIABLE alpheus_header_files)
add_custom_command(OUTPUT ${alpheus_staging}/staged
  COMMAND ${CMAKE_COMMAND} -D source=${PROJECT_SOURCE_DIR}
    -D staging=${alpheus_staging} -D "headers=${alpheus_public_headers}"
    -P ${CMAKE_CURRENT_LIST_DIR}/StageHeaders.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${alpheus_staging}/staged
  DEPENDS ${alpheus_header_files} ${CMAKE_CURRENT_LIST_DIR}/StageHeaders.cmake
    ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Staging the public headers"
  VERBATIM)
add_custom_target(alpheus_headers ALL DEPENDS ${alpheus_staging}/staged)
install(DIRECTORY ${alpheus_staging}/alpheus
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(ALPHEUS_BUILD_PROGRAMS)
  install(TARGETS alpheus alpheus-sim alpheusd
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS alpheus_shared EXPORT AlpheusC
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS alpheus_cxx EXPORT AlpheusCxx)
if(TARGET alpheus_rocksdb)
  install(TARGETS alpheus_rocksdb LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The same as a part of RocksDB: all that its plugin/alpheus must have.
  set(alpheus_in_tree ${CMAKE_INSTALL_DATADIR}/alpheus/rocksdb)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/rocksdb/in_tree/
    DESTINATION ${alpheus_in_tree})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/rocksdb
    DESTINATION ${alpheus_in_tree}/api
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cc"
    PATTERN in_tree EXCLUDE PATTERN preloaded.cc EXCLUDE
    PATTERN "interposed.*" EXCLUDE)
  list(TRANSFORM alpheus_rocksdb_headers PREPEND ${PROJECT_SOURCE_DIR}/)
  install(FILES ${alpheus_rocksdb_headers}
    DESTINATION ${alpheus_in_tree}/log/base)
endif()
install(TARGETS alpheus_static EXPORT AlpheusStatic
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(alpheus_package ${CMAKE_INSTALL_LIBDIR}/cmake/Alpheus)
foreach(part C Cxx Static)
  install(EXPORT Alpheus${part} NAMESPACE Alpheus::
    FILE Alpheus${part}Targets.cmake DESTINATION ${alpheus_package})
endforeach()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/AlpheusConfig.cmake.in
  ${PROJECT_BINARY_DIR}/AlpheusConfig.cmake
  INSTALL_DESTINATION ${alpheus_package}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 each minor version may change the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/AlpheusConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/AlpheusConfig.cmake
  ${PROJECT_BINARY_DIR}/AlpheusConfigVersion.cmake
  DESTINATION ${alpheus_package})

# Relative to the .pc files, so that the whole prefix can be moved.
file(RELATIVE_PATH ALPHEUS_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(name alpheus alpheus-cxx)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in
    ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# All that is installed, and nothing else.
add_custom_target(alpheus_installed)
foreach(target alpheus_headers alpheus alpheus-sim alpheusd alpheus_shared
        alpheus_static alpheus_rocksdb)
  if(TARGET ${target})
    add_dependencies(alpheus_installed ${target})
  endif()
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/api/examples
  DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN LICENSE EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/samples
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/tools)
# Behind them all.
install(CODE "
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE docs)
  cmake_path(APPEND docs \"${CMAKE_INSTALL_DOCDIR}\")
  set(docs \"\$ENV{DESTDIR}\${docs}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/RewriteLinks.cmake\")")
