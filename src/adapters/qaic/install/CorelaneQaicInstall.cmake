# The object runtime's door, installed: libQAic.so, headers and the schema of the I/O descriptor in
# include/qaic, a CMake package (QAic::QAic, QAic::Headers), a pkg-config file (QAic), and Debian packages.
# Included by CorelaneInstall.cmake.
include_guard()
if(NOT TARGET QAic)
  return()
endif()

# --- The library. Its name carries no version, as clients expect.
install(TARGETS QAic LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT qaic)

# --- For clients: headers that are included by their bare names; two of them are made by the build.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/qaic" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT qaic_dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.proto")
install(FILES "${PROJECT_BINARY_DIR}/include/qaic/QAicTypes.h" "${PROJECT_BINARY_DIR}/include/qaic/QAicApi.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/qaic" COMPONENT qaic_dev)
set(qaic_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/QAic")
set(qaic_libdir "${CMAKE_INSTALL_LIBDIR}")
set(qaic_includedir "${CMAKE_INSTALL_INCLUDEDIR}/qaic")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/QAicConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/QAicConfig.cmake" INSTALL_DESTINATION ${qaic_package_dir}
  PATH_VARS qaic_libdir qaic_includedir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/QAicConfigVersion.cmake"
  COMPATIBILITY AnyNewerVersion)
install(FILES "${PROJECT_BINARY_DIR}/QAicConfig.cmake" "${PROJECT_BINARY_DIR}/QAicConfigVersion.cmake"
  DESTINATION ${qaic_package_dir} COMPONENT qaic_dev)
configure_file("${CMAKE_CURRENT_LIST_DIR}/QAic.pc.in" "${PROJECT_BINARY_DIR}/QAic.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/QAic.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT qaic_dev)

# --- Debian packages.
corelane_package(qaic corelane-qaic NEEDS corelane-runtime
  LINKS "libc6 (>= 2.36)" libfmt9 libgcc-s1 libprotobuf-lite32 "libstdc++6 (>= 12)"
  SUMMARY "Cloud AI 100 runtime classes on any NPU of Corelane"
  DESCRIPTION
"libQAic.so for programs that use the Cloud AI 100 Linux Runtime classes or their
C API, on the devices of Corelane.")
corelane_package(qaic_dev corelane-qaic-dev SECTION libdevel NEEDS corelane-qaic
  SUMMARY "Cloud AI 100 runtime classes on any NPU of Corelane - headers"
  DESCRIPTION
"Headers of the Cloud AI 100 Linux Runtime classes in C++ and C, and the schema of
the I/O descriptor, with pkg-config and CMake packages named QAic.")
