# The Debian packages as a stranger gets them: each door's with the runtime in a root of its own, without the
# other doors, a program built against them and run; and what dpkg says of all of them.
# PACKAGES: the folder with the packages, or BUILD_DIR: a build folder to make them from. WORK_DIR, CC, CXX,
# PKG_CONFIG, CPACK, CONSUMERS (the folder with the programs); RUN: "run" where there is an engine; EMULATOR: what starts
# programs of another architecture, and LINK_OPTIONS.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/relu_container.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/package_upgrade.cmake")

# find_one(<out> GLOB|GLOB_RECURSE <pattern>): the one file that matches.
function(find_one out how pattern)
  file(${how} found "${pattern}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} files are ${pattern}, one is needed")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# take_package(<name> [<package of ours>]): file_<name> and depends_<name>. It depends on exactly this version of
# that package of ours, and on no other.
function(take_package name)
  find_one(file GLOB "${PACKAGES}/${name}_*.deb")
  step_run(COMMAND dpkg-deb -f "${file}" Version OUT version)
  string(STRIP "${version}" version)
  step_run(COMMAND dpkg-deb -f "${file}" Depends OUT depends)
  set(expected "")
  if(ARGN)
    set(expected "${ARGN} (= ${version})")
  endif()
  string(REGEX MATCHALL "corelane[^,\n]*" ours "${depends}")
  if(NOT ours STREQUAL expected)
    message(FATAL_ERROR "of our packages, ${name} depends on '${ours}', not on '${expected}'")
  endif()
  set(file_${name} "${file}" PARENT_SCOPE)
  set(depends_${name} "${depends}" PARENT_SCOPE)
endfunction()

# unpack(<root> <name>...): these packages, and nothing else.
function(unpack root)
  foreach(name IN LISTS ARGN)
    step_run(COMMAND dpkg-deb -x "${file_${name}}" "${root}")
  endforeach()
endfunction()

# need_none(<root> <name>...): the root has no file of these names.
function(need_none root)
  foreach(name IN LISTS ARGN)
    file(GLOB_RECURSE found "${root}/${name}")
    if(found)
      message(FATAL_ERROR "there should be no ${found}")
    endif()
  endforeach()
endfunction()

# Every library of the root finds what it needs there or in the system.
function(check_libraries root)
  if(EMULATOR)
    return()  # ldd knows this machine's only; that the programs run says it too.
  endif()
  file(GLOB_RECURSE libraries "${root}/usr/lib/*.so" "${root}/usr/lib/*.so.*")
  foreach(library IN LISTS libraries)
    step_run(COMMAND ldd "${library}" OUT needs)
    if(needs MATCHES "not found")
      message(FATAL_ERROR "${library} lacks a library:\n${needs}")
    endif()
  endforeach()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")
if(BUILD_DIR)
  set(PACKAGES "${WORK_DIR}/packages")
  # Compressed quickly: these packages are looked at once.
  step_run(COMMAND "${CPACK}" --config "${BUILD_DIR}/CPackConfig.cmake" -B "${PACKAGES}"
    -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip)
endif()

# --- The runtime.
take_package(corelane-runtime)
# Its dependencies are derived from what its libraries need.
foreach(wanted libc6 libstdc\\+\\+6 libfmt9)
  if(NOT depends_corelane-runtime MATCHES "(^|, )${wanted}( |,|$)")
    message(FATAL_ERROR "corelane-runtime does not depend on ${wanted}: ${depends_corelane-runtime}")
  endif()
endforeach()

# Each package has a summary of its own.
set(summaries "")
file(GLOB all "${PACKAGES}/*.deb")
foreach(file IN LISTS all)
  step_run(COMMAND dpkg-deb -f "${file}" Description OUT description)
  string(REGEX MATCH "^[^\n]+" summary "${description}")
  if(summary IN_LIST summaries)
    message(FATAL_ERROR "two packages are '${summary}'")
  endif()
  list(APPEND summaries "${summary}")
endforeach()

# --- For C++ programs, without any door. A cross build has no pkg-config file of the other architecture's fmt.
take_package(corelane-dev corelane-runtime)
if(NOT depends_corelane-dev MATCHES "libfmt-dev" OR NOT depends_corelane-dev MATCHES "libexpected-dev")
  message(FATAL_ERROR "corelane-dev depends on: ${depends_corelane-dev}")
endif()
set(root "${WORK_DIR}/cpp")
unpack("${root}" corelane-runtime corelane-dev)
need_none("${root}" libQAic.so "librknn*.so" rknn_api.h)
if(NOT EMULATOR)
  find_one(pc GLOB_RECURSE "${root}/usr/corelane.pc")
  get_filename_component(libdir "${pc}/../.." ABSOLUTE)
  step_run(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${libdir}/pkgconfig" "${PKG_CONFIG}"
    --cflags --libs corelane OUT flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  step_run(COMMAND "${CXX}" -std=c++20 "${CONSUMERS}/consumer/consumer.cpp" -o "${WORK_DIR}/consumer" ${flags}
    "-Wl,-rpath,${libdir}")
  set(devices null:rk3588)
  if(RUN)
    list(APPEND devices virtual:rk3588)
  endif()
  foreach(device IN LISTS devices)
    step_run(COMMAND "${WORK_DIR}/consumer" ${device})
  endforeach()
  message(STATUS "corelane-dev works")
endif()

# --- The RKNN API, without the object runtime.
take_package(corelane-rknnrt corelane-runtime)
take_package(corelane-rknnrt-dev corelane-rknnrt)
set(root "${WORK_DIR}/rknn")
unpack("${root}" corelane-runtime corelane-rknnrt corelane-rknnrt-dev)
need_none("${root}" libQAic.so)
find_one(page GLOB "${root}/usr/share/doc/corelane/docs/cli.md") # Messages name such pages.
check_libraries("${root}")
find_one(library GLOB_RECURSE "${root}/usr/librknnrt.so")
get_filename_component(libdir "${library}" DIRECTORY)
if(NOT EXISTS "${libdir}/librknn_api.so")
  message(FATAL_ERROR "corelane-rknnrt lacks librknn_api.so")
endif()
step_run(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${libdir}/pkgconfig" "${PKG_CONFIG}"
  --cflags --libs rknnrt OUT flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
step_run(COMMAND "${CC}" -std=c11 -Wall -Wextra -pedantic -Werror
  "${CONSUMERS}/rknn_consumer/rknn_consumer.c" -o "${WORK_DIR}/rknn_consumer" ${flags} "-Wl,-rpath,${libdir}"
  ${LINK_OPTIONS})
step_run(COMMAND ${EMULATOR} "${WORK_DIR}/rknn_consumer" ${RUN} OUT said)
message(STATUS "corelane-rknnrt works: ${said}")

# --- The ggml plugin, where it was built: any NPU library serves it.
file(GLOB found "${PACKAGES}/corelane-ggml_*.deb")
if(found)
  take_package(corelane-ggml)
  if(NOT depends_corelane-ggml MATCHES "libc6")
    message(FATAL_ERROR "corelane-ggml depends on: ${depends_corelane-ggml}")
  endif()
  unpack("${root}" corelane-ggml)
  step_run(COMMAND "${root}/usr/bin/ggml-rknn" sh -c "test -e $GGML_BACKEND_PATH && test -e $GGML_RKNN_LIBRARY")
endif()

# --- The object runtime, where it was built, without the RKNN API: the tool makes a container, and a program
# that opens the library runs it.
file(GLOB found "${PACKAGES}/corelane-qaic_*.deb")
if(found)
  take_package(corelane-qaic corelane-runtime)
  take_package(corelane-qaic-dev corelane-qaic)
  if(NOT depends_corelane-qaic MATCHES "libc6")
    message(FATAL_ERROR "corelane-qaic depends on: ${depends_corelane-qaic}")
  endif()
  set(root "${WORK_DIR}/qaic")
  unpack("${root}" corelane-runtime corelane-qaic corelane-qaic-dev)
  find_one(notices GLOB "${root}/usr/share/doc/corelane/NOTICES.txt")
  find_one(bill GLOB "${root}/usr/share/doc/corelane/corelane.cdx.json")
  need_none("${root}" "librknn*.so" rknn_api.h)
  check_libraries("${root}")
  find_one(library GLOB_RECURSE "${root}/usr/libQAic.so")
  step_run(COMMAND "${CXX}" -std=c++17 "-I${root}/usr/include/qaic"
    "${CONSUMERS}/qaic_consumer/qaic_consumer.cpp" -o "${WORK_DIR}/qaic_consumer" -lpthread -ldl)
  set(container "")
  if(RUN)
    set(container "${WORK_DIR}/container")
    relu_container(TOOL ${EMULATOR} "${root}/usr/bin/corelane" FOLDER "${container}")
  endif()
  step_run(COMMAND "${CMAKE_COMMAND}" -E env "QAIC_LIB=${library}" ${EMULATOR} "${WORK_DIR}/qaic_consumer"
    ${container} OUT said)
  message(STATUS "corelane-qaic works: ${said}")
endif()

if(NOT EMULATOR)
  package_upgrade("${WORK_DIR}/upgrade" "${PACKAGES}")
endif()
