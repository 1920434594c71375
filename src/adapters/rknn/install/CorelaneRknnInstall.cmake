# The RKNN door, installed: librknnrt.so and its old name, the C headers in include/rknn, a CMake package
# (rknnrt::rknnrt), a pkg-config file (rknnrt), and a Debian package with everything it runs on.
# Included by CorelaneInstall.cmake.
include_guard()
if(NOT TARGET rknnrt)
  return()
endif()

# --- The library. Its name carries no version, as clients expect.
install(TARGETS rknnrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
# The name that the library had in old releases: a link, made when the library is built.
install(FILES "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/librknn_api.so" DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)

# --- For clients: headers that are included by their bare names.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/rknn" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT rknnrt_dev FILES_MATCHING PATTERN "*.h")
set(rknnrt_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rknnrt")
set(rknnrt_libdir "${CMAKE_INSTALL_LIBDIR}")
set(rknnrt_includedir "${CMAKE_INSTALL_INCLUDEDIR}/rknn")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rknnrtConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/rknnrtConfig.cmake" INSTALL_DESTINATION ${rknnrt_package_dir}
  PATH_VARS rknnrt_libdir rknnrt_includedir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rknnrtConfigVersion.cmake"
  COMPATIBILITY AnyNewerVersion)
install(FILES "${PROJECT_BINARY_DIR}/rknnrtConfig.cmake" "${PROJECT_BINARY_DIR}/rknnrtConfigVersion.cmake"
  DESTINATION ${rknnrt_package_dir} COMPONENT rknnrt_dev)
configure_file("${CMAKE_CURRENT_LIST_DIR}/rknnrt.pc.in" "${PROJECT_BINARY_DIR}/rknnrt.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rknnrt.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT rknnrt_dev)

# --- Debian packages: `./dev package`, or cpack in a build folder configured as the preset `package`.
#   corelane-rknnrt      the library, what it runs on (libcorelane, drivers, engine) and the tool
#   corelane-rknnrt-dev  headers, rknnrt.pc, CMake package
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME corelane)
set(CPACK_PACKAGE_VENDOR "Corelane")
set(CPACK_PACKAGE_CONTACT "The Corelane developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
list(APPEND CPACK_COMPONENTS_ALL runtime rknnrt_dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME corelane-rknnrt)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"librknnrt.so for programs that use the RKNN C API, with the devices it runs on
and the command line tool corelane, which makes programs from ONNX models.")
if(CMAKE_CROSSCOMPILING)
  # dpkg-shlibdeps asks the packages of this machine; these are those of the sysroot.
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6 (>= 2.36), libdnnl2, libfmt9, libgcc-s1, libgomp1, \
libhwy1, libjpeg62-turbo, libpng16-16, libprotobuf-lite32, libspdlog1.10-fmt9, libstdc++6 (>= 12), \
libxxhash0")
else()
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
endif()
# What lies in the package itself has no package to depend on.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
if(engine_dir) # Set by CorelaneInstall.cmake, which includes this file.
  # Without CORELANE_BUNDLE_ENGINE the package runs where it was built only.
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${engine_dir}")
endif()

set(CPACK_DEBIAN_RKNNRT_DEV_PACKAGE_NAME corelane-rknnrt-dev)
set(CPACK_DEBIAN_RKNNRT_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RKNNRT_DEV_PACKAGE_DEPENDS "corelane-rknnrt (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_RKNNRT_DEV_DESCRIPTION
"Headers of the RKNN C API, for compilers as <rknn_api.h>, with pkg-config and
CMake packages named rknnrt.")
# Where Debian looks for the licence of a package.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/corelane-rknnrt" COMPONENT runtime)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/corelane-rknnrt-dev" COMPONENT rknnrt_dev)
endif()
