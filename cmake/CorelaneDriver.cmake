# corelane_driver(<kind> BUILTIN|MODULE [LIBS <targets>...])
# One driver from the sources of the current folder, and its unit tests `<kind>_tests`. Its file
# `<kind>_description.cpp` defines `const DriverDescription& corelane::device::describe_<kind>()` and
# needs nothing but the library's headers: the library has it even where the module is missing.
#  - BUILTIN: static library `corelane_driver_<kind>` that defines
#    `const DriverModule& corelane::device::driver_<kind>()`, named in the generated table.
#  - MODULE: shared object `libcorelane_<kind>.so` (target `corelane_driver_<kind>`)
#    that exports `corelane_driver_module_v1`. Its code is a static library
#    `corelane_driver_<kind>_code` too, which its tests link.
include_guard()

function(corelane_driver kind)
  cmake_parse_arguments(D "BUILTIN;MODULE" "" "LIBS" ${ARGN})
  corelane_sources(sources tests "${CMAKE_CURRENT_SOURCE_DIR}")
  list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${kind}_description.cpp")
  set(description corelane_driver_${kind}_description)
  add_library(${description} STATIC ${kind}_description.cpp)
  target_link_libraries(${description} PUBLIC corelane_device PRIVATE corelane_options)
  if(D_BUILTIN)
    set(code corelane_driver_${kind})
    add_library(${code} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY CORELANE_DRIVER_ROWS "${kind}|builtin")
  else()
    set(code corelane_driver_${kind}_code)
    add_library(${code} STATIC ${sources})
    corelane_driver_module(${kind} "${CMAKE_CURRENT_SOURCE_DIR}/${kind}_module.cpp" ${code})
    set_property(GLOBAL APPEND PROPERTY CORELANE_DRIVER_ROWS "${kind}|module")
  endif()
  corelane_at_once(${code} SANITIZED)
  target_link_libraries(${code} PUBLIC corelane_device ${description} PRIVATE ${D_LIBS} corelane_options)
  if(tests)
    corelane_test(${kind}_tests SOURCES ${tests} LIBS ${code} ${D_LIBS} LABELS unit)
  endif()
endfunction()

# corelane_driver_module(<kind> <entry> <code>): the shared object `libcorelane_<kind>.so` (target
# `corelane_driver_<kind>`) from the source `entry`, which exports corelane_driver_module_v1 and nothing else,
# and the static library `code`. It finds its engine's libraries in `engine/` beside it.
function(corelane_driver_module kind entry code)
  set(target corelane_driver_${kind})
  set(map "${PROJECT_SOURCE_DIR}/src/drivers/driver_module.map")
  add_library(${target} MODULE ${entry})
  set_target_properties(${target} PROPERTIES PREFIX "lib" OUTPUT_NAME "corelane_${kind}"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/corelane" LINK_DEPENDS "${map}")
  target_link_libraries(${target} PRIVATE ${code} corelane_options)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--enable-new-dtags
    "-Wl,--version-script=${map}")
  if(NOT CORELANE_SANITIZE)
    # A sanitizer's runtime is resolved from the program that loads the module.
    target_link_options(${target} PRIVATE "-Wl,-z,defs")
  endif()
  corelane_empty_test_cache(${target})
  install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/${CORELANE_MODULE_FOLDER}" COMPONENT runtime)
  set_property(GLOBAL APPEND PROPERTY CORELANE_DRIVER_MODULES ${target})
endfunction()

# Writes the registration table of the drivers that corelane_driver() named, and makes
# `corelane_drivers` from it: what the registry of floor 4 finds built in.
function(corelane_driver_table)
  get_property(rows GLOBAL PROPERTY CORELANE_DRIVER_ROWS)
  set(declarations "")
  set(table "")
  set(libraries "")
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 kind)
    list(GET row 1 where)
    string(APPEND declarations "const DriverDescription& describe_${kind}();\n")
    list(APPEND libraries corelane_driver_${kind}_description)
    set(entry nullptr)
    if(where STREQUAL "builtin")
      string(APPEND declarations "const DriverModule& driver_${kind}();\n")
      set(entry "&driver_${kind}")
      list(APPEND libraries corelane_driver_${kind})
    endif()
    string(APPEND table "    {&describe_${kind}, ${entry}},\n")
  endforeach()
  list(GET CORELANE_DRIVERS 0 default_kind)
  list(LENGTH rows count)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/driver_table.cpp" @ONLY CONTENT [[
// Generated from CORELANE_DRIVERS.
#include "device/registry/driver_table.h"

namespace corelane::device {

@declarations@
std::span<const DriverRow> driver_table() noexcept {
  static constexpr DriverRow kRows[] = {
@table@    {nullptr, nullptr}};
  return {kRows, @count@};
}

const char* default_kind() noexcept { return "@default_kind@"; }

}  // namespace corelane::device
]])
  add_library(corelane_drivers STATIC "${CMAKE_CURRENT_BINARY_DIR}/driver_table.cpp")
  target_link_libraries(corelane_drivers PUBLIC corelane_device corelane_lanes ${libraries}
    corelane_validating corelane_faulty PRIVATE corelane_options)
  # The registry reads the table: two static libraries that need each other.
  target_link_libraries(corelane_device PUBLIC corelane_drivers)
endfunction()
