# The second engine of the virtual NPU: the library of the onnxruntime wheel. It is opened at run time, so
# only its name and folder are needed here, no header and no link.
#
# Asks the Python of CORELANE_PYTHON (default: the project's .venv) where the onnxruntime package lies, unless
# OnnxRuntime_LIBRARY_DIR is set. Defines OnnxRuntime_VERSION, OnnxRuntime_LIBRARY_NAME and
# OnnxRuntime_LIBRARY_DIR.

set(OnnxRuntime_VERSION "1.31.1")
set(OnnxRuntime_LIBRARY_NAME "libonnxruntime.so.${OnnxRuntime_VERSION}")
set(CORELANE_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python"
  CACHE FILEPATH "Python whose openvino and onnxruntime packages are the engines")

if(NOT OnnxRuntime_LIBRARY_DIR AND EXISTS "${CORELANE_PYTHON}")
  # find_spec does not import the package, which would load its libraries.
  execute_process(
    COMMAND "${CORELANE_PYTHON}" -c
      "import importlib.util as u; s = u.find_spec('onnxruntime'); print(list(s.submodule_search_locations)[0] if s else '')"
    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(package AND EXISTS "${package}/capi/${OnnxRuntime_LIBRARY_NAME}")
    set(OnnxRuntime_LIBRARY_DIR "${package}/capi" CACHE PATH "Folder with ${OnnxRuntime_LIBRARY_NAME}" FORCE)
  endif()
endif()

if(NOT OnnxRuntime_LIBRARY_DIR OR NOT EXISTS "${OnnxRuntime_LIBRARY_DIR}/${OnnxRuntime_LIBRARY_NAME}")
  message(FATAL_ERROR
    "corelane: the second engine of the virtual NPU (${OnnxRuntime_LIBRARY_NAME}) was not found.\n"
    "Looked in OnnxRuntime_LIBRARY_DIR='${OnnxRuntime_LIBRARY_DIR}' and in the onnxruntime package of "
    "CORELANE_PYTHON='${CORELANE_PYTHON}'.\n"
    "Remedy: run './dev setup', or\n"
    "  .venv/bin/pip install --no-deps onnxruntime==${OnnxRuntime_VERSION}\n"
    "or build without it: -DCORELANE_WITH_ONNXRUNTIME=OFF")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OnnxRuntime
  REQUIRED_VARS OnnxRuntime_LIBRARY_DIR VERSION_VAR OnnxRuntime_VERSION)
