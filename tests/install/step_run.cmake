# step_run(COMMAND words... [OUT variable]): runs one step of a test and ends it when that fails.
function(step_run)
  cmake_parse_arguments(R "" "OUT" "COMMAND" ${ARGN})
  # The environment of the machine must not help: no driver path, no library path, no other package.
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=CORELANE_DRIVER_PATH --unset=CORELANE_DEVICE
      --unset=LD_LIBRARY_PATH --unset=DESTDIR CORELANE_CACHE=0 ${R_COMMAND}
    RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    list(JOIN R_COMMAND " " text)
    message(FATAL_ERROR "exit ${status} of: ${text}\n${out}\n${err}")
  endif()
  if(R_OUT)
    set(${R_OUT} "${out}" PARENT_SCOPE)
  endif()
endfunction()
