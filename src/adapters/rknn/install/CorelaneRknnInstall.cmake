# The RKNN door, installed: librknnrt.so and its old name, the C headers in include/rknn, a CMake package
# (rknnrt::rknnrt), a pkg-config file (rknnrt), and Debian packages.
# Included by CorelaneInstall.cmake.
include_guard()
if(NOT TARGET rknnrt)
  return()
endif()

# --- The library. Its name carries no version, as clients expect.
install(TARGETS rknnrt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rknnrt)
# The name that the library had in old releases: a link, made when the library is built.
install(FILES "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/librknn_api.so" DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT rknnrt)

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

# --- Debian packages.
corelane_package(rknnrt corelane-rknnrt NEEDS corelane-runtime
  LINKS "libc6 (>= 2.36)" libfmt9 libgcc-s1 "libstdc++6 (>= 12)"
  SUMMARY "RKNN C API on any NPU of Corelane"
  DESCRIPTION
"librknnrt.so for programs that use the RKNN C API, on the devices of Corelane.")
corelane_package(rknnrt_dev corelane-rknnrt-dev SECTION libdevel NEEDS corelane-rknnrt
  SUMMARY "RKNN C API on any NPU of Corelane - headers"
  DESCRIPTION
"Headers of the RKNN C API, for compilers as <rknn_api.h>, with pkg-config and
CMake packages named rknnrt.")
