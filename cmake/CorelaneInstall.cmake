# What `cmake --install` puts down: libcorelane.so and its headers, the driver modules beside it, the
# command line tool, a CMake package (corelane::corelane) and a pkg-config file; and the doors.
# Components: runtime (what every door runs on, and the tool), dev (what C++ programs need to build), and those
# of each door.
# Included last, when every target is known.
include_guard()
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/corelane")
set(module_dir "${CMAKE_INSTALL_LIBDIR}/${CORELANE_MODULE_FOLDER}")

# --- The library and the tool.
install(TARGETS corelane EXPORT corelaneTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/corelane" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT dev FILES_MATCHING PATTERN "*.h")
if(TARGET corelane_cli)
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(corelane_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${up}")
  install(TARGETS corelane_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
# Messages name these pages.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

# --- The engine of the driver modules: in `engine/` beside them, or where the build found it. Each
# driver's own CMakeLists.txt installs its module with both places in its RPATH.
set(engine_dir "")
if(OpenVINO_DIR) # Found by FindEngine.cmake.
  get_filename_component(engine_dir "${OpenVINO_DIR}/../libs" REALPATH)
endif()
# Bundled, since the wheel lies in the checkout; an OpenVINO that was installed otherwise stays where it is.
set(bundle_by_default OFF)
if(IS_DIRECTORY "${engine_dir}" AND NOT CORELANE_WHEEL)
  set(bundle_by_default ON)
endif()
option(CORELANE_BUNDLE_ENGINE
  "Install the engine's files beside the driver modules instead of using them where they lie" ${bundle_by_default})
if(CORELANE_BUNDLE_ENGINE)
  # The smallest set that reads and runs ONNX on the CPU; they find each other by $ORIGIN.
  set(engine_files "")
  foreach(pattern libopenvino.so.* libopenvino_*_cpu_plugin.so libopenvino_onnx_frontend.so.*
      libopenvino_ir_frontend.so.* libtbb.so.12)
    file(GLOB found "${engine_dir}/${pattern}")
    list(LENGTH found count)
    if(NOT count EQUAL 1)
      message(FATAL_ERROR "CORELANE_BUNDLE_ENGINE: '${engine_dir}' holds ${count} files "
        "'${pattern}', one is needed. Take openvino as requirements/engine.txt pins it "
        "(./dev setup build), or switch CORELANE_BUNDLE_ENGINE off.")
    endif()
    list(APPEND engine_files "${found}")
  endforeach()
  if(CORELANE_WITH_ONNXRUNTIME)
    find_package(OnnxRuntime REQUIRED)
    list(APPEND engine_files "${OnnxRuntime_LIBRARY_DIR}/${OnnxRuntime_LIBRARY_NAME}")
    install(FILES "${OnnxRuntime_LIBRARY_DIR}/../LICENSE" "${OnnxRuntime_LIBRARY_DIR}/../ThirdPartyNotices.txt"
      DESTINATION "${CMAKE_INSTALL_DOCDIR}/engine/onnxruntime" COMPONENT runtime)
  endif()
  install(FILES ${engine_files} DESTINATION "${module_dir}/engine" COMPONENT runtime)
  file(GLOB engine_licences "${engine_dir}/../../openvino-*.dist-info/licenses")
  foreach(folder IN LISTS engine_licences)
    install(DIRECTORY "${folder}/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/engine"
      COMPONENT runtime)
  endforeach()
  # Only what is bundled: the place on the building machine is not the user's.
  get_property(modules GLOBAL PROPERTY CORELANE_DRIVER_MODULES)
  foreach(module IN LISTS modules)
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "$ORIGIN/engine")
  endforeach()
endif()

# --- What is compiled in, and its notices: for the wheel tools/finish_wheel.py adds them.
set(notices_dir "")
find_program(CORELANE_SYSTEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(CORELANE_SYSTEM_PYTHON AND NOT CORELANE_WHEEL)
  set(notices_dir "${PROJECT_BINARY_DIR}/notices")
  set(with_engines "")
  if(CORELANE_BUNDLE_ENGINE)
    set(with_engines --engines)
  endif()
  execute_process(COMMAND "${CORELANE_SYSTEM_PYTHON}" -B "${PROJECT_SOURCE_DIR}/tools/make_sbom.py" ${with_engines}
    --packages "${engine_dir}/../.." "${notices_dir}" COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/make_sbom.py"
    "${PROJECT_SOURCE_DIR}/docs/dependencies.md" "${PROJECT_SOURCE_DIR}/requirements/engine.txt"
    "${PROJECT_SOURCE_DIR}/requirements/python.txt")
  install(FILES "${notices_dir}/NOTICES.txt" "${notices_dir}/corelane.cdx.json"
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
endif()

# --- For CMake: find_package(corelane).
install(EXPORT corelaneTargets NAMESPACE corelane:: DESTINATION ${package_dir} COMPONENT dev)
set(conformance_dir "${CMAKE_INSTALL_DATADIR}/corelane/conformance")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/corelaneConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/corelaneConfig.cmake" INSTALL_DESTINATION ${package_dir}
  PATH_VARS conformance_dir)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/corelaneConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/corelaneConfig.cmake"
  "${PROJECT_BINARY_DIR}/corelaneConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/corelaneAddDriver.cmake" DESTINATION ${package_dir} COMPONENT dev)

# --- For drivers outside the tree: the suite that every driver passes, as sources.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tests/conformance/" DESTINATION ${conformance_dir} COMPONENT dev
  FILES_MATCHING PATTERN "*_suite.cpp" PATTERN "conformance_*" PATTERN "fixture.h")
install(FILES "${PROJECT_SOURCE_DIR}/src/device/registry/testing/listed_faults.h"
  DESTINATION ${conformance_dir} COMPONENT dev)

# --- For pkg-config. The prefix is derived from the file's own place, so the tree can be moved.
file(RELATIVE_PATH corelane_pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" corelane_pc_prefix "${corelane_pc_prefix}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/corelane.pc.in" "${PROJECT_BINARY_DIR}/corelane.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/corelane.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

# --- The doors, each with its packages.
include(CorelanePackages)
foreach(adapter IN LISTS CORELANE_ADAPTERS)
  file(GLOB parts "${PROJECT_SOURCE_DIR}/src/adapters/${adapter}/install/*.cmake")
  foreach(part IN LISTS parts)
    include("${part}")
  endforeach()
endforeach()
if(NOT CORELANE_WHEEL)
  include(CPack)
endif()
