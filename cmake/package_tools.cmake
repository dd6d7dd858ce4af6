# Read by cpack before it packages: without these tools it would make a package that says nothing of
# what it depends on.
foreach(tool dpkg-shlibdeps file)
  find_program(found_${tool} ${tool})
  if(NOT found_${tool})
    message(FATAL_ERROR "octet: ${tool} was not found: a .deb is made on a Debian system with the "
                        "packages dpkg-dev and file")
  endif()
endforeach()
