# SPDX-License-Identifier: Apache-2.0
# Rewrites the installed documents: a link to a file that is not installed
# becomes its path in the source tree; one to an example leads to where that is.
# docs: the folder that README.md and docs/ were installed into.
file(GLOB_RECURSE documents ${docs}/docs/*.md)
list(APPEND documents ${docs}/README.md)
foreach(document ${documents})
  file(READ ${document} text)
  cmake_path(GET document PARENT_PATH folder)
  # Without the brackets, which would not survive a list of CMake's.
  string(REGEX MATCHALL "\\([A-Za-z0-9_./-]+" targets "${text}")
  list(REMOVE_DUPLICATES targets)
  foreach(target ${targets})
    string(SUBSTRING "${target}" 1 -1 target)
    cmake_path(ABSOLUTE_PATH target BASE_DIRECTORY ${folder} NORMALIZE
      OUTPUT_VARIABLE path)
    if(EXISTS ${path})
      continue()
    endif()
    string(REGEX REPLACE "([.+])" "\\\\\\1" escaped "${target}")
    set(link "\\]\\(${escaped}(#[^)]*)?\\)")
    if(NOT text MATCHES "${link}")
      continue()
    endif()
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${docs} OUTPUT_VARIABLE source)
    string(REGEX REPLACE "^api/examples/" "examples/" moved "${source}")
    string(REGEX REPLACE "^api/include/" "" source "${source}")
    if(EXISTS ${docs}/${moved})
      cmake_path(SET path ${docs}/${moved})
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${folder})
      string(REGEX REPLACE "${link}" "](${path})" text "${text}")
      continue()
    endif()
    cmake_path(GET source FILENAME name)
    string(REGEX REPLACE "([.+])" "\\\\\\1" name "${name}")
    string(REGEX REPLACE "\\[`[^]`]*${name}`${link}" "`${source}`"
      text "${text}")
    string(REGEX REPLACE "\\[([^]]*)${link}" "\\1 (`${source}`)"
      text "${text}")
  endforeach()
  file(WRITE ${document} "${text}")
endforeach()
