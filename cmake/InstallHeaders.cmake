# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install` with the source folder, a staging folder, a list of
# headers and the destination: puts all headers under alpheus/.

foreach(header IN LISTS headers)
  string(REGEX REPLACE "^api/include/alpheus/" "" installed ${header})
  file(READ ${source}/${header} text)
  string(REPLACE "#include \"log/" "#include \"alpheus/log/" text "${text}")
  file(WRITE ${staging}/alpheus/${installed} "${text}")
  get_filename_component(folder ${installed} DIRECTORY)
  file(INSTALL ${staging}/alpheus/${installed}
    DESTINATION ${destination}/alpheus/${folder})
endforeach()
