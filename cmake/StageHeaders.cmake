# SPDX-License-Identifier: Apache-2.0
# Lays out headers (paths from the root of the source) below staging/alpheus as
# they are installed. Run with -D source, staging, headers.

file(REMOVE_RECURSE ${staging})
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^api/include/alpheus/" "" staged ${header})
  file(READ ${source}/${header} text)
  string(REPLACE "#include \"log/" "#include \"alpheus/log/" text "${text}")
  file(WRITE ${staging}/alpheus/${staged} "${text}")
endforeach()
