# relu_container(TOOL <words>... FOLDER <folder>): a container of the object runtime, of y = Relu(x), f32 (4), as
# the command line tool makes it from ONNX.
include("${CMAKE_CURRENT_LIST_DIR}/step_run.cmake")
function(relu_container)
  cmake_parse_arguments(R "" "FOLDER" "TOOL" ${ARGN})
  file(MAKE_DIRECTORY "${R_FOLDER}")
  string(CONCAT model "\\010\\010\\072\\063\\012\\014\\012\\001x\\022\\001y\\042\\004Relu\\022\\001r"
    "\\132\\017\\012\\001x\\022\\012\\012\\010\\010\\001\\022\\004\\012\\002\\010\\004"
    "\\142\\017\\012\\001y\\022\\012\\012\\010\\010\\001\\022\\004\\012\\002\\010\\004\\102\\002\\020\\015")
  step_run(COMMAND sh -c "printf '${model}' > '${R_FOLDER}/relu.onnx'")
  step_run(COMMAND ${R_TOOL} compile "${R_FOLDER}/relu.onnx" --target aic100 -o "${R_FOLDER}")
endfunction()
