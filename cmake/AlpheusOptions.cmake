# SPDX-License-Identifier: Apache-2.0
# Compiler settings that hold for every target of the project.

# A project that uses the log by add_subdirectory gets the library only.
option(ALPHEUS_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ALPHEUS_BUILD_PROGRAMS "Build the programs" ${PROJECT_IS_TOP_LEVEL})
option(ALPHEUS_BUILD_BENCH "Build the benchmarks" ${ALPHEUS_BUILD_PROGRAMS})
option(ALPHEUS_INSTALL "Let `cmake --install` install" ${PROJECT_IS_TOP_LEVEL})
option(ALPHEUS_ROCKSDB "Build the RocksDB plugin, if RocksDB is there"
       ${PROJECT_IS_TOP_LEVEL})
option(ALPHEUS_MUTANTS "Weave mutants in, for ALPHEUS_MUTANT=NAME (tests only)" OFF)
set(ALPHEUS_SANITIZE "" CACHE STRING
    "Sanitizers: empty, 'address,undefined' or 'thread'")
option(ALPHEUS_FUZZ "Instrument for libFuzzer (needs clang)" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_compile_options(-Wall -Wextra -Werror)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # For the CRC32 instruction; every processor that can have persistent memory
  # has it.
  add_compile_options(-march=x86-64-v2)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # The only compiler that checks which lock guards what. The other warning
  # stands for clang-tidy's modernize-use-nullptr, which takes much longer.
  add_compile_options(-Wthread-safety
    $<$<COMPILE_LANGUAGE:CXX>:-Wzero-as-null-pointer-constant>)
endif()

if(ALPHEUS_SANITIZE)
  add_compile_options(-fsanitize=${ALPHEUS_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ALPHEUS_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND ALPHEUS_SANITIZE MATCHES "address")
    # Relative, so that ccache finds what another clone has compiled. Ninja runs
    # compilers in the build's folder.
    file(RELATIVE_PATH ignored ${CMAKE_BINARY_DIR}
         ${PROJECT_SOURCE_DIR}/cmake/sanitizer_ignore.txt)
    add_compile_options(-fsanitize-ignorelist=${ignored})
  endif()
endif()

if(ALPHEUS_FUZZ)
  # Coverage for the fuzzers; their main comes with the fuzz targets.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(PROJECT_IS_TOP_LEVEL)
  # No more links at a time than memory holds. A plain one takes 50 MB; a gigabyte
  # each leaves room for sanitizers and for optimization across all sources.
  cmake_host_system_information(RESULT alpheus_memory
    QUERY AVAILABLE_PHYSICAL_MEMORY)
  math(EXPR alpheus_links "${alpheus_memory} / 1024")
  if(alpheus_links LESS 1)
    set(alpheus_links 1)
  endif()
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS alpheus_links=${alpheus_links})
  set(CMAKE_JOB_POOL_LINK alpheus_links)
endif()

find_program(ALPHEUS_MOLD mold)
if(ALPHEUS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(ALPHEUS_CCACHE ccache)
if(ALPHEUS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ALPHEUS_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${ALPHEUS_CCACHE})
  if(CMAKE_UNITY_BUILD)
    # The generated files name sources by their whole path; without it, what
    # another clone has compiled is the same.
    add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  endif()
endif()
