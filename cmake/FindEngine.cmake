# The engine of the virtual NPU: OpenVINO as a C++ SDK, from its wheel.
#
# Looks in OpenVINO_DIR (the folder with OpenVINOConfig.cmake) when that is set, otherwise asks the
# Python of CORELANE_PYTHON (default: the project's .venv) where the openvino package lies.
# Defines the target corelane_engine, Engine_VERSION and Engine_LIBRARY_DIR.
include_guard(GLOBAL)

# The SONAME of the libraries carries the release, so one release is built and run.
set(CORELANE_ENGINE_VERSION "2026.4.1")
set(CORELANE_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python"
  CACHE FILEPATH "Python whose openvino package is the engine")

if(NOT OpenVINO_DIR AND EXISTS "${CORELANE_PYTHON}")
  # find_spec does not import the package, which would load its libraries.
  execute_process(
    COMMAND "${CORELANE_PYTHON}" -c
      "import importlib.util as u; s = u.find_spec('openvino'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE engine_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(engine_package AND EXISTS "${engine_package}/cmake/OpenVINOConfig.cmake")
    set(OpenVINO_DIR "${engine_package}/cmake" CACHE PATH "Folder with OpenVINOConfig.cmake" FORCE)
  endif()
endif()

if(NOT OpenVINO_DIR OR NOT EXISTS "${OpenVINO_DIR}/OpenVINOConfig.cmake")
  message(FATAL_ERROR
    "corelane: the engine of the virtual NPU (OpenVINO ${CORELANE_ENGINE_VERSION}) was not found.\n"
    "Looked in OpenVINO_DIR='${OpenVINO_DIR}' and in the openvino package of "
    "CORELANE_PYTHON='${CORELANE_PYTHON}'.\n"
    "Remedy: run './dev setup', or\n"
    "  python3 -m venv .venv && .venv/bin/pip install --no-deps openvino==${CORELANE_ENGINE_VERSION}\n"
    "or set -DCORELANE_PYTHON=<python with that package>, or -DOpenVINO_DIR=<its cmake folder>, or "
    "build without the virtual NPU: -DCORELANE_WITH_OPENVINO=OFF")
endif()

find_package(OpenVINO ${CORELANE_ENGINE_VERSION} CONFIG REQUIRED COMPONENTS Runtime ONNX)
if(NOT OpenVINO_VERSION VERSION_EQUAL CORELANE_ENGINE_VERSION)
  message(FATAL_ERROR
    "corelane: OpenVINO ${OpenVINO_VERSION} found in ${OpenVINO_DIR}, ${CORELANE_ENGINE_VERSION} is "
    "needed.\nRemedy: .venv/bin/pip install --no-deps openvino==${CORELANE_ENGINE_VERSION}")
endif()

get_target_property(engine_library openvino::runtime IMPORTED_LOCATION_RELEASE)
get_filename_component(Engine_LIBRARY_DIR "${engine_library}" DIRECTORY)
set(Engine_VERSION "${OpenVINO_VERSION}")

if(NOT TARGET corelane_engine)
  add_library(corelane_engine INTERFACE)
  target_link_libraries(corelane_engine INTERFACE openvino::runtime openvino::frontend::onnx)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Engine
  REQUIRED_VARS Engine_LIBRARY_DIR VERSION_VAR Engine_VERSION)
