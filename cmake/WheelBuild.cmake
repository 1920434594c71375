# What a build for a wheel does differently (CORELANE_WHEEL, set by pyproject.toml): the engine and ONNX's
# messages come from the Python that pip builds with, and no path of the building machine is kept.
include_guard()

# find_spec does not import the packages, which would load their libraries.
set(find_packages "import importlib.util as u
for n in ('openvino', 'onnx', 'onnxruntime'):
    s = u.find_spec(n)
    print(list(s.submodule_search_locations)[0] if s else '')")
execute_process(COMMAND "${Python_EXECUTABLE}" -c "${find_packages}"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" found "${found};;")
list(GET found 0 engine)
list(GET found 1 onnx)
list(GET found 2 second)
if(NOT engine OR NOT onnx OR NOT second)
  message(FATAL_ERROR "corelane: ${Python_EXECUTABLE} lacks openvino ('${engine}'), onnx ('${onnx}') or "
    "onnxruntime ('${second}').\n"
    "Remedy: let pip install what pyproject.toml names under [build-system] (no --no-build-isolation), "
    "or install it: pip install --no-deps -r requirements/engine.txt -r requirements/python.txt")
endif()
set(CORELANE_PYTHON "${Python_EXECUTABLE}" CACHE FILEPATH "Python whose openvino package is the engine" FORCE)
set(OnnxRuntime_LIBRARY_DIR "${second}/capi" CACHE PATH "Folder with the library of ONNX Runtime" FORCE)
set(OpenVINO_DIR "${engine}/cmake" CACHE PATH "Folder with OpenVINOConfig.cmake" FORCE)
set(CORELANE_ONNX_PROTO "${onnx}/onnx-ml.proto" CACHE FILEPATH "ONNX's onnx-ml.proto" FORCE)
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
