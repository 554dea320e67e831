# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: what most sources of a layer include from elsewhere is
# read once in a build. Own headers are in none of them, so that a change of one
# compiles no more than what includes it.
#
# A source must compile without them, too; clang-tidy reads it so.

option(ALPHEUS_PRECOMPILE "Precompile the headers of other projects"
       ${PROJECT_IS_TOP_LEVEL})

if(ALPHEUS_PRECOMPILE)
  # Precompiled code fits only code that is compiled alike.
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
  add_compile_definitions(_FILE_OFFSET_BITS=64)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # ccache compares contents; a time in them would tell equal ones apart.
    add_compile_options(
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
    # An option that ccache knows as a path, and takes the clone's folder off.
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
  endif()
endif()

# The headers that sources of all layers include most.
set(alpheus_common_headers
  <algorithm> <array> <atomic> <cstddef> <cstdint> <cstring> <deque>
  <filesystem> <functional> <map> <memory> <optional> <set> <span> <string>
  <string_view> <thread> <utility> <variant> <vector>
  <absl/functional/function_ref.h> <absl/status/status.h>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h>)

# alpheus_precompile(NAME [HEADERS header...] [LIBRARIES library...]): a target
# that precompiles the common headers and these; its name is given to
# alpheus_reuse_precompiled().
function(alpheus_precompile name)
  if(NOT ALPHEUS_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "" @ONLY)
  add_library(${name} OBJECT ${source})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${alpheus_common_headers}
    ${ARG_HEADERS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    alpheus_sum_precompiled(${name} ${alpheus_common_headers} ${ARG_HEADERS})
  endif()
endfunction()

# alpheus_sum_precompiled(NAME HEADER...): what clang precompiles names the clone
# that made it. ccache takes a file beside it for its contents, with a sum of what
# the headers say and define, so that a clone finds what another one has compiled.
# Each clone precompiles by itself: one of another clone would name files that may
# be gone.
function(alpheus_sum_precompiled name)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \\1\n" OUTPUT_VARIABLE includes)
  string(JOIN "" includes ${includes})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}_headers.cc)
  file(WRITE ${source} "${includes}")
  # Headers differ with the flags. Flags that name the clone are left out.
  get_directory_property(options COMPILE_OPTIONS)
  list(FILTER options EXCLUDE REGEX "SHELL:|prefix-map|ignorelist|^\\$<")
  get_directory_property(definitions COMPILE_DEFINITIONS)
  list(TRANSFORM definitions PREPEND -D)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags NATIVE_COMMAND
    "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  # -dD prints macros, too.
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++${CMAKE_CXX_STANDARD} ${flags}
            ${options} ${definitions} -E -P -dD ${source}
    OUTPUT_VARIABLE said ERROR_VARIABLE why RESULT_VARIABLE failed)
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
  set(sum ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch.sum)
  if(failed)
    # Without a sum ccache reads the precompiled header itself.
    message(STATUS "No sum of ${name}: ${why}")
    file(REMOVE ${sum})
  else()
    string(SHA256 hash "${said}")
    file(WRITE ${sum} ${hash})
  endif()
endfunction()

# alpheus_reuse_precompiled(NAME FOLDER...): gives the precompiled headers NAME
# to each target of these folders that has none yet.
function(alpheus_reuse_precompiled name)
  if(NOT ALPHEUS_PRECOMPILE)
    return()
  endif()
  foreach(folder IN LISTS ARGN)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(sources ${target} SOURCES)
      get_target_property(own ${target} PRECOMPILE_HEADERS)
      get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
      if(sources MATCHES "\\.cc" AND NOT own AND NOT reused)
        target_precompile_headers(${target} REUSE_FROM ${name})
      endif()
    endforeach()
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    alpheus_reuse_precompiled(${name} ${folders})
  endforeach()
endfunction()
