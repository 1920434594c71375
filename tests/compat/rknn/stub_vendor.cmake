# The stub vendor library in its variants, and the tests of the device behind it.
# stub_vendor(<variant> <definitions>...): lib/stub/libstub_<variant>.so
function(stub_vendor variant)
  add_library(stub_${variant} MODULE "${CMAKE_CURRENT_LIST_DIR}/stub_vendor.c")
  set_target_properties(stub_${variant} PROPERTIES C_STANDARD 11 C_EXTENSIONS ON
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/stub")
  target_include_directories(stub_${variant} PRIVATE "${PROJECT_SOURCE_DIR}/include/rknn")
  target_compile_definitions(stub_${variant} PRIVATE ${ARGN})
  target_compile_options(stub_${variant} PRIVATE -Wall -Wextra -Werror)
  target_link_libraries(stub_${variant} PRIVATE m)
endfunction()

if(NOT TARGET corelane_driver_rknn OR NOT CORELANE_BUILD_TESTS)
  return()
endif()
stub_vendor(vendor)
stub_vendor(nhwc_only STUB_NHWC_ONLY)
stub_vendor(one_core STUB_ONE_CORE)
stub_vendor(old STUB_WITHOUT_DUP STUB_WITHOUT_SHAPES "STUB_VERSION=\"1.2.0 (old@2022)\"")
stub_vendor(no_mask STUB_WITHOUT_CORE_MASK "STUB_VERSION=\"0.9.1 (older@2020)\"")
stub_vendor(no_run STUB_WITHOUT_RUN)

corelane_test(rknn_stub_tests SOURCES
  "${CMAKE_CURRENT_LIST_DIR}/stub_device_test.cpp" "${CMAKE_CURRENT_LIST_DIR}/stub_failure_test.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/stub_program_test.cpp"
  LIBS corelane_runtime LABELS compat)
target_include_directories(rknn_stub_tests PRIVATE "${CMAKE_CURRENT_LIST_DIR}")
target_compile_definitions(rknn_stub_tests PRIVATE STUB_FOLDER="${PROJECT_BINARY_DIR}/lib/stub")
add_dependencies(rknn_stub_tests stub_vendor stub_nhwc_only stub_one_core stub_old stub_no_mask
  stub_no_run)
