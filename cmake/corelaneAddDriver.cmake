# For projects with a driver of their own; found by find_package(corelane).
include_guard()

# corelane_add_driver(<kind> SOURCES <files>... [LIBS <targets>...])
# The shared object libcorelane_<kind>.so (target corelane_driver_<kind>) of a driver: its sources
# define corelane_driver_module_v1 (corelane/driver/module.h). It is found where CORELANE_DRIVER_PATH
# points, and beside the installed library.
function(corelane_add_driver kind)
  cmake_parse_arguments(D "" "" "SOURCES;LIBS" ${ARGN})
  add_library(corelane_driver_${kind} MODULE ${D_SOURCES})
  set_target_properties(corelane_driver_${kind} PROPERTIES PREFIX "lib" OUTPUT_NAME "corelane_${kind}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(corelane_driver_${kind} PRIVATE corelane::corelane ${D_LIBS})
endfunction()

# corelane_add_conformance(<kind> FIXTURE <file> DEVICES <name>=<device text>...)
# The program conformance_<kind>, which holds the driver to the suite that every driver of the tree
# passes, and a test conformance_<kind>_<name> for each device text. Needs GoogleTest.
function(corelane_add_conformance kind)
  cmake_parse_arguments(C "" "FIXTURE" "DEVICES" ${ARGN})
  find_package(GTest REQUIRED)
  if(NOT TARGET corelane_conformance)
    file(GLOB suite "${CORELANE_CONFORMANCE_DIR}/*.cpp")
    add_library(corelane_conformance OBJECT ${suite})
    target_include_directories(corelane_conformance PUBLIC "${CORELANE_CONFORMANCE_DIR}")
    target_link_libraries(corelane_conformance PUBLIC corelane::corelane GTest::gtest)
  endif()
  add_executable(conformance_${kind} ${C_FIXTURE})
  target_link_libraries(conformance_${kind} PRIVATE corelane_conformance)
  add_dependencies(conformance_${kind} corelane_driver_${kind})
  foreach(form IN LISTS C_DEVICES)
    string(REGEX MATCH "^([^=]+)=(.*)$" matched "${form}")
    add_test(NAME conformance_${kind}_${CMAKE_MATCH_1}
      COMMAND conformance_${kind} "--device=${CMAKE_MATCH_2}" --gtest_brief=1)
    set_tests_properties(conformance_${kind}_${CMAKE_MATCH_1} PROPERTIES
      ENVIRONMENT "CORELANE_DRIVER_PATH=$<TARGET_FILE_DIR:corelane_driver_${kind}>")
  endforeach()
endfunction()
