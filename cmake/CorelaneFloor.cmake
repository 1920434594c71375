# corelane_floor(<name> [AT_ONCE] [DIR <dir>] [DEPENDS <targets>...] [LIBS <targets>...] [TEST_LIBS <targets>...])
# One room of the house: a static library `corelane_<name>` from the sources of <dir> and of its inner
# rooms, but for those with a CMakeLists.txt of their own, and its unit tests `<name>_tests` from their
# *_test.cpp, which link TEST_LIBS too. Folders
# named testing/, and files named *_fuzz.cpp, *_benchmark.cpp and *_module.cpp, are left out.
# AT_ONCE: in a release too, see corelane_at_once.
include_guard()

function(corelane_sources out_sources out_tests dir)
  file(GLOB all CONFIGURE_DEPENDS "${dir}/*.cpp" "${dir}/*/*.cpp")
  list(FILTER all EXCLUDE REGEX "/testing/")
  # Inner rooms that are built by themselves.
  file(GLOB apart CONFIGURE_DEPENDS "${dir}/*/CMakeLists.txt")
  foreach(list IN LISTS apart)
    get_filename_component(room "${list}" DIRECTORY)
    list(FILTER all EXCLUDE REGEX "^${room}/")
  endforeach()
  set(sources "")
  set(tests "")
  foreach(f IN LISTS all)
    if(f MATCHES "_test\\.cpp$")
      list(APPEND tests "${f}")
    elseif(NOT f MATCHES "_(fuzz|benchmark|module)\\.cpp$")
      list(APPEND sources "${f}")
    endif()
  endforeach()
  set(${out_sources} "${sources}" PARENT_SCOPE)
  set(${out_tests} "${tests}" PARENT_SCOPE)
endfunction()

# A folder of its own for the files of a test (testing::TempDir()): tests run side by side, and several
# may be of one program.
function(corelane_scratch test)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/scratch/${test}")
  file(MAKE_DIRECTORY "${folder}")
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "TEST_TMPDIR=${folder}")
endfunction()

# corelane_test(<name> SOURCES ... LIBS ... [LABELS ...]): a GoogleTest program in build/bin,
# registered with CTest as one test.
function(corelane_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT CORELANE_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBS} corelane_options GTest::gmock GTest::gtest_main)
  # GoogleTest's macros hold an `else` of their own; in a body of one statement g++ points at it.
  # Tests run once: at -O3 g++ would spend a third of their compile time on optimizing them.
  target_compile_options(${name} PRIVATE -Wno-dangling-else "$<$<CONFIG:Release>:-O1>")
  # Half of a test's compile time is reading headers. Names are unique among the tests of a room, so
  # that it does not matter which sources are together.
  set_target_properties(${name} PROPERTIES UNITY_BUILD "${CORELANE_UNITY}" UNITY_BUILD_BATCH_SIZE 5)
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(CORELANE_SANITIZE)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 5")
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
    ENVIRONMENT "${CORELANE_TEST_ENVIRONMENT};${T_ENVIRONMENT}")
  corelane_scratch(${name})
endfunction()

# corelane_at_once(<target> [SANITIZED]): several of its sources are compiled at once, since most of the time goes into
# reading headers; SANITIZED: under a sanitizer alone. Names are unique in such a room, unnamed namespaces too. In a
# release not for rooms whose calls are counted in nanoseconds: g++ inlines differently there, and `lanes` got slower.
function(corelane_at_once target)
  if(CORELANE_UNITY AND (CORELANE_SANITIZE OR NOT "SANITIZED" IN_LIST ARGN))
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

function(corelane_floor name)
  cmake_parse_arguments(F "AT_ONCE" "DIR" "DEPENDS;LIBS;TEST_LIBS" ${ARGN})
  if(NOT F_DIR)
    set(F_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  corelane_sources(sources tests "${F_DIR}")
  add_library(corelane_${name} STATIC ${sources})
  target_include_directories(corelane_${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>")
  target_link_libraries(corelane_${name} PUBLIC ${F_DEPENDS} PRIVATE ${F_LIBS} corelane_options)
  if(F_AT_ONCE)
    corelane_at_once(corelane_${name})
  else()
    corelane_at_once(corelane_${name} SANITIZED)
  endif()
  if(tests)
    corelane_test(${name}_tests SOURCES ${tests} LIBS corelane_${name} ${F_LIBS} ${F_TEST_LIBS}
      LABELS unit)
  endif()
endfunction()
