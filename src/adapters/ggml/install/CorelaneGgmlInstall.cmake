# The ggml plugin, installed: libggml-rknn.so, the command ggml-rknn that runs a host with it, and a Debian
# package of the two. Included by CorelaneInstall.cmake.
include_guard()
if(NOT TARGET ggml_rknn)
  return()
endif()

install(TARGETS ggml_rknn LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ggml)
# From the command to the library, so that the tree can be moved.
file(RELATIVE_PATH ggml_rknn_libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/ggml-rknn.in" "${PROJECT_BINARY_DIR}/ggml-rknn" @ONLY)
install(PROGRAMS "${PROJECT_BINARY_DIR}/ggml-rknn" DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ggml)

# --- The package corelane-ggml. The NPU library is found when the plugin runs: on a board it may be the vendor's.
corelane_package(ggml corelane-ggml
  LINKS "libc6 (>= 2.36)" libgcc-s1 libgomp1 "libstdc++6 (>= 12)"
  SUMMARY "RKNN backend of ggml, for llama.cpp and whisper.cpp"
  DESCRIPTION
"RKNN backend of ggml as a plugin, for llama.cpp and whisper.cpp as distributions
build them, and the command ggml-rknn that runs them with it.")
set(CPACK_DEBIAN_GGML_PACKAGE_RECOMMENDS "corelane-rknnrt (= ${corelane_package_version})")
set(CPACK_DEBIAN_GGML_PACKAGE_SUGGESTS "llama.cpp-tools, whisper.cpp-tools")
