# SPDX-License-Identifier: Apache-2.0
# With ALPHEUS_MUTANTS the libraries are compiled from copies of their sources
# into which all mutants are woven (tools/mutants/weave.py). Those of tests and
# programs are compiled as they are, with the copies of headers.
if(NOT ALPHEUS_MUTANTS)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(alpheus_woven ${PROJECT_BINARY_DIR}/woven)
set(alpheus_weaver ${PROJECT_SOURCE_DIR}/tools/mutants/weave.py)
file(GLOB alpheus_mutant_tables CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tests/mutants/*.mutants)
# The tables say which sources are woven.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${alpheus_mutant_tables} ${alpheus_weaver})
execute_process(
  COMMAND ${Python3_EXECUTABLE} -B ${alpheus_weaver} --list
  OUTPUT_VARIABLE alpheus_woven_names OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" alpheus_woven_names "${alpheus_woven_names}")
list(TRANSFORM alpheus_woven_names PREPEND ${PROJECT_SOURCE_DIR}/
  OUTPUT_VARIABLE alpheus_woven_from)
list(TRANSFORM alpheus_woven_names PREPEND ${alpheus_woven}/
  OUTPUT_VARIABLE alpheus_woven_to)

# A copy that stays the same keeps its time, so that nothing is compiled again.
add_custom_command(OUTPUT ${alpheus_woven}.stamp
  BYPRODUCTS ${alpheus_woven_to} ${alpheus_woven}/tools/mutants/mutant_names.inc
  COMMAND ${Python3_EXECUTABLE} -B ${alpheus_weaver} ${alpheus_woven}
  COMMAND ${CMAKE_COMMAND} -E touch ${alpheus_woven}.stamp
  DEPENDS ${alpheus_weaver} ${alpheus_mutant_tables} ${alpheus_woven_from}
  COMMENT "Weaving the mutants in"
  VERBATIM)
add_custom_target(alpheus_weave_all DEPENDS ${alpheus_woven}.stamp)

# A copy of a header stands in for the header, everywhere.
include_directories(BEFORE ${alpheus_woven})

# alpheus_weave(FOLDER...): compiles each target of these folders from the copies
# of its sources.
function(alpheus_weave)
  foreach(folder IN LISTS ARGN)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(sources ${target} SOURCES)
      get_target_property(home ${target} SOURCE_DIR)
      set(woven "")
      foreach(source IN LISTS sources)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${home}
          OUTPUT_VARIABLE from)
        list(FIND alpheus_woven_from "${from}" at)
        if(at GREATER_EQUAL 0)
          list(GET alpheus_woven_to ${at} source)
        elseif(source MATCHES "\\.cc?$")
          set(source ${from})
        endif()
        list(APPEND woven "${source}")
      endforeach()
      if(woven)
        set_property(TARGET ${target} PROPERTY SOURCES ${woven})
      endif()
      add_dependencies(${target} alpheus_weave_all)
    endforeach()
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    if(folders)
      alpheus_weave(${folders})
    endif()
  endforeach()
endfunction()
