# The Debian packages as a stranger gets them: unpacked, a C program built against them and run.
# PACKAGES: the folder with the packages, or BUILD_DIR: a build folder to make them from. WORK_DIR, CC,
# PKG_CONFIG, CPACK, CONSUMER_DIR; RUN: arguments of the program; EMULATOR: what starts it, for packages
# of another architecture, and LINK_OPTIONS.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/step_run.cmake")

# The one file that matches.
function(find_one out pattern)
  file(GLOB found "${pattern}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} files are ${pattern}, one is needed")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")
if(BUILD_DIR)
  set(PACKAGES "${WORK_DIR}/packages")
  # Compressed quickly: these packages are looked at once.
  step_run(COMMAND "${CPACK}" --config "${BUILD_DIR}/CPackConfig.cmake" -B "${PACKAGES}"
    -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip)
endif()

set(root "${WORK_DIR}/root")
foreach(name corelane-rknnrt corelane-rknnrt-dev)
  find_one(package "${PACKAGES}/${name}_*.deb")
  step_run(COMMAND dpkg-deb -f "${package}" Depends OUT depends)
  step_run(COMMAND dpkg-deb -x "${package}" "${root}")
  set(depends_${name} "${depends}")
endforeach()

# The ggml plugin, where it was built: any NPU library serves it.
file(GLOB found "${PACKAGES}/corelane-ggml_*.deb")
if(found)
  find_one(package "${PACKAGES}/corelane-ggml_*.deb")
  step_run(COMMAND dpkg-deb -f "${package}" Depends OUT depends)
  if(NOT depends MATCHES "libc6" OR depends MATCHES "corelane")
    message(FATAL_ERROR "corelane-ggml depends on: ${depends}")
  endif()
  step_run(COMMAND dpkg-deb -x "${package}" "${root}")
  step_run(COMMAND "${root}/usr/bin/ggml-rknn" sh -c "test -e $GGML_BACKEND_PATH && test -e $GGML_RKNN_LIBRARY")
endif()

# The object runtime, where it was built: a program that opens the library finds all that it needs.
file(GLOB found "${PACKAGES}/corelane-qaic_*.deb")
if(found)
  foreach(name corelane-qaic corelane-qaic-dev)
    find_one(package "${PACKAGES}/${name}_*.deb")
    step_run(COMMAND dpkg-deb -f "${package}" Depends OUT depends)
    step_run(COMMAND dpkg-deb -x "${package}" "${root}")
    set(depends_${name} "${depends}")
  endforeach()
  if(NOT depends_corelane-qaic MATCHES "corelane-rknnrt \\(= " OR NOT depends_corelane-qaic MATCHES "libc6"
      OR NOT depends_corelane-qaic-dev MATCHES "corelane-qaic \\(= ")
    message(FATAL_ERROR "corelane-qaic depends on: ${depends_corelane-qaic}; "
      "corelane-qaic-dev on: ${depends_corelane-qaic-dev}")
  endif()
  file(GLOB_RECURSE qaic_library "${root}/usr/*/libQAic.so")
  if(NOT EMULATOR)
    step_run(COMMAND ldd "${qaic_library}" OUT needs)
    if(needs MATCHES "not found")
      message(FATAL_ERROR "${qaic_library} lacks a library:\n${needs}")
    endif()
    step_run(COMMAND "${CXX}" -std=c++17 "-I${root}/usr/include/qaic"
      "${QAIC_CONSUMER_DIR}/qaic_consumer.cpp" -o "${WORK_DIR}/qaic_consumer" -lpthread -ldl)
    step_run(COMMAND "${CMAKE_COMMAND}" -E env "QAIC_LIB=${qaic_library}" "${WORK_DIR}/qaic_consumer")
  endif()
endif()

# Its dependencies are derived from what its libraries need.
foreach(wanted libc6 libstdc\\+\\+6 libfmt9)
  if(NOT depends_corelane-rknnrt MATCHES "(^|, )${wanted}( |,|$)")
    message(FATAL_ERROR "corelane-rknnrt does not depend on ${wanted}: ${depends_corelane-rknnrt}")
  endif()
endforeach()
if(NOT depends_corelane-rknnrt-dev MATCHES "corelane-rknnrt \\(= ")
  message(FATAL_ERROR "corelane-rknnrt-dev does not depend on its library: ${depends_corelane-rknnrt-dev}")
endif()

file(GLOB_RECURSE found "${root}/usr/*/librknnrt.so")
get_filename_component(libdir "${found}" DIRECTORY)
file(GLOB modules "${libdir}/corelane/*.so" "${libdir}/corelane/engine/*.so*")
set(looked_at "${libdir}/librknnrt.so" "${libdir}/librknn_api.so" ${modules})
if(EMULATOR)
  set(looked_at "")  # ldd knows this machine's only; that the program runs says it too.
endif()
foreach(library IN LISTS looked_at)
  step_run(COMMAND ldd "${library}" OUT needs)
  if(needs MATCHES "not found")
    message(FATAL_ERROR "${library} lacks a library:\n${needs}")
  endif()
endforeach()

step_run(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${libdir}/pkgconfig" "${PKG_CONFIG}"
  --cflags --libs rknnrt OUT flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
step_run(COMMAND "${CC}" -std=c11 -Wall -Wextra -pedantic -Werror
  "${CONSUMER_DIR}/rknn_consumer.c" -o "${WORK_DIR}/rknn_consumer" ${flags} "-Wl,-rpath,${libdir}"
  ${LINK_OPTIONS})
step_run(COMMAND ${EMULATOR} "${WORK_DIR}/rknn_consumer" ${RUN} OUT said)
message(STATUS "packages work: ${said}")
