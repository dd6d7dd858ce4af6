# What `cmake --install` puts where. Every destination is relative and nothing that is installed
# knows its prefix: any --prefix and DESTDIR do, and the folder may be moved afterwards.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(OCTET_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/octet)
set(OCTET_INSTALL_SAMPLEDIR ${CMAKE_INSTALL_DATADIR}/octet/samples)
foreach(folder BINDIR LIBDIR INCLUDEDIR DATADIR DOCDIR MANDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    message(FATAL_ERROR
      "octet: CMAKE_INSTALL_${folder}=${CMAKE_INSTALL_${folder}}: must be relative to the prefix, "
      "such as lib (what is installed finds its parts from where it is)")
  endif()
endforeach()

# The command finds its library and the demo's sample from where it is, whatever the prefix.
file(RELATIVE_PATH from_bin_to_lib /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
set_target_properties(octet_command PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin_to_lib}")
file(RELATIVE_PATH from_bin_to_samples /prefix/${CMAKE_INSTALL_BINDIR}
     /prefix/${OCTET_INSTALL_SAMPLEDIR})
target_compile_definitions(octet_command_parts PRIVATE
  OCTET_BIN_TO_SAMPLES="${from_bin_to_samples}")

install(TARGETS octet EXPORT octet-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT octet NAMELINK_COMPONENT octet
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS octet_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT octet)
install(FILES ${CMAKE_SOURCE_DIR}/include/octet/octet.h ${CMAKE_SOURCE_DIR}/include/octet/octet.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/octet COMPONENT octet)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/samples/ DESTINATION ${OCTET_INSTALL_SAMPLEDIR}
  COMPONENT octet FILES_MATCHING PATTERN "*.safetensors" PATTERN "*.txt" PATTERN "LICENSE*"
  PATTERN "README.md")

# The links between the pages stay right.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT octet)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT octet
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
# What is compiled into the binaries has notices of its own, kept where Debian's packages have them.
foreach(package libfmt-dev libcli11-dev nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${package}/copyright)
    install(FILES /usr/share/doc/${package}/copyright RENAME ${package}
      DESTINATION ${CMAKE_INSTALL_DOCDIR}/third-party COMPONENT octet)
  endif()
endforeach()

if(OCTET_HAVE_CUDA)  # the command holds CUDA's runtime; the library does not
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/cudart_notice.txt RENAME cuda-runtime
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/third-party COMPONENT octet)
  file(GLOB cuda_agreement LIST_DIRECTORIES false ${OCTET_CUDA_ROOT}/EULA.txt
       ${OCTET_CUDA_ROOT}/dist-info/nvidia_cuda_runtime-*/licenses/License.txt)
  if(cuda_agreement)
    list(GET cuda_agreement 0 cuda_agreement)
    install(FILES ${cuda_agreement} RENAME cuda-runtime-agreement
      DESTINATION ${CMAKE_INSTALL_DOCDIR}/third-party COMPONENT octet)
  endif()
endif()

# find_package(octet), target octet::octet.
install(EXPORT octet-targets NAMESPACE octet:: DESTINATION ${OCTET_INSTALL_CMAKEDIR}
  COMPONENT octet)
configure_package_config_file(cmake/octet-config.cmake.in ${CMAKE_BINARY_DIR}/octet-config.cmake
  INSTALL_DESTINATION ${OCTET_INSTALL_CMAKEDIR} NO_SET_AND_CHECK_MACRO)
# Before 1.0 the interface may change between minor versions.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/octet-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/octet-config.cmake ${CMAKE_BINARY_DIR}/octet-config-version.cmake
  DESTINATION ${OCTET_INSTALL_CMAKEDIR} COMPONENT octet)

# pkg-config. ${pcfiledir} is where octet.pc is found.
file(RELATIVE_PATH from_pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/octet.pc.in ${CMAKE_BINARY_DIR}/octet.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/octet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT octet)

# The manual page and completions, where man, bash and zsh look under a prefix. (Debian's zsh looks
# elsewhere under /usr: package.cmake.)
set(OCTET_COMMAND_TEXTS ${CMAKE_BINARY_DIR}/tools/octet/texts)
if(OCTET_HAVE_COMMAND_TEXTS)
  install(FILES ${OCTET_COMMAND_TEXTS}/octet.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT octet)
  install(FILES ${OCTET_COMMAND_TEXTS}/octet.bash RENAME octet
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT octet)
  install(FILES ${OCTET_COMMAND_TEXTS}/_octet
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT octet_zsh)
endif()
