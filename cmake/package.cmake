# `cmake --build BUILD --target package`: octet_VERSION_ARCHITECTURE.deb, one package for programs,
# library and headers. Comes after install.cmake, which says what is in it.
set(CPACK_GENERATOR DEB)
set(CPACK_SOURCE_GENERATOR "")  # the repository is the source
set(CPACK_PACKAGE_NAME octet)
set(CPACK_PACKAGE_CONTACT "The Octet authors <octet@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};octet;octet;/"
                                 "${CMAKE_BINARY_DIR};octet;octet_debian;/")
# Debian has its own places for the licence and for zsh.
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT octet_debian EXCLUDE_FROM_ALL)
if(OCTET_HAVE_COMMAND_TEXTS)
  install(FILES ${OCTET_COMMAND_TEXTS}/_octet DESTINATION share/zsh/vendor-completions
    COMPONENT octet_debian EXCLUDE_FROM_ALL)
endif()

if(OCTET_HAVE_CUDA)
  set(kernels "This build has the kernels for Hopper; to use them it needs NVIDIA's driver alone,\
 which it finds when it runs.")
else()
  set(kernels "This build has no kernels for Hopper (${OCTET_WHY_NO_KERNELS}): it computes on the CPU alone.")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "FP8 matrix multiplication with fine-grained scales")
set(CPACK_PACKAGE_DESCRIPTION "Octet multiplies matrices in FP8 with one scale for each 128 channels or\
 128x128 block, as DeepSeek-V3-style models do, on NVIDIA Hopper and, with the same bits, on the CPU.\
 The package holds the library liboctet, its headers for C and C++17, and the command octet.
 ${kernels}")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# What it depends on is read from the binaries.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_tools.cmake)
include(CPack)
