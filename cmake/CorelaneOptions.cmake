# Compiler warnings (errors), sanitizers, and the options every target of the house takes.
include_guard()

add_library(corelane_options INTERFACE)
target_compile_options(corelane_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wnull-dereference -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside libstdc++ and fmt at -O2 and above.
  target_compile_options(corelane_options INTERFACE -Wno-restrict -Wno-stringop-overflow
    -Wno-array-bounds -Wno-maybe-uninitialized -Wno-null-dereference -Wno-dangling-pointer)
endif()
if(CORELANE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Where several sources are compiled at once, g++ takes a source for a header that has a class with members of its
  # unnamed namespace.
  target_compile_options(corelane_options INTERFACE -Wno-subobject-linkage)
endif()
# Sources of the library, and not of its tests and programs.
set(is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
set(is_library "$<BOOL:$<FILTER:$<TARGET_PROPERTY:SOURCE_DIR>,INCLUDE,^${PROJECT_SOURCE_DIR}/src>>")
set(is_product "$<AND:${is_library},$<NOT:${is_program}>>")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A process may exit while another thread is in the library: its static objects are of class Leaked. Those of a
  # program, or of a test, may be destroyed.
  target_compile_options(corelane_options INTERFACE "$<${is_product}:-Wexit-time-destructors>")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # g++ clears objects of more than 64 bytes with `rep stos`, which takes some 30 cycles to begin. A run of a small
  # network with bound memory did so four times, a twentieth of its time.
  target_compile_options(corelane_options INTERFACE
    "$<${is_product}:-mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign>")
endif()

# corelane_ends_with_its_thread(<source>...): what is destroyed at exit there belongs to the thread that exits.
function(corelane_ends_with_its_thread)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Wno-exit-time-destructors)
  endif()
endfunction()

# Builds for debugging check the order in which mutexes are taken (src/base/sync.h). Off in a release.
set(CORELANE_CHECK_LOCKS OFF CACHE BOOL "Check the ranks of mutexes at run time")
if(CORELANE_CHECK_LOCKS)
  target_compile_definitions(corelane_options INTERFACE CORELANE_CHECK_LOCKS)
endif()

# What is built guards itself: the tables of addresses are read-only once the program has started, a stack that was
# written over ends it, and calls of the C library that would write past an object of known size do, too.
add_compile_options(-fstack-protector-strong)
add_link_options("LINKER:-z,relro" "LINKER:-z,now")
if(NOT CORELANE_SANITIZE)
  # Needs an optimizing compiler; sanitizers check the same calls themselves.
  set(fortify 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(fortify 3)
  endif()
  add_compile_options("$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>"
    "$<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${fortify}>")
endif()

if(CORELANE_SANITIZE)
  add_compile_options(-fsanitize=${CORELANE_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${CORELANE_SANITIZE})
  # The code asks by g++'s macros.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    foreach(sanitizer thread address)
      string(TOUPPER ${sanitizer} name)
      if(CORELANE_SANITIZE MATCHES ${sanitizer})
        add_compile_definitions(__SANITIZE_${name}__)
      endif()
    endforeach()
  endif()
  if(CORELANE_SANITIZE MATCHES "undefined")
    # C programs pass any number for an enumeration; the APIs refuse those that are none, which tests try.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=enum)
  endif()
endif()

# Environment of every test: one engine and form for each program, so that results repeat, sanitizers beside the
# engine's threads, and no shared cache.
# LSAN_OPTIONS: the engine unloads its plug-in with the last device while its threads live on; LeakSanitizer would
# follow their thread-local storage into what is gone and crash itself. Without that storage it reports more, not less.
# TSAN_OPTIONS: ThreadSanitizer compares each race, suppressed ones too, with every address that raced before. An
# engine that frees a program gives thousands: without that comparison a test takes half a second, not half a minute.
set(CORELANE_TEST_ENVIRONMENT
  "CORELANE_CACHE_DIR=${PROJECT_BINARY_DIR}/test-cache"
  "CORELANE_TIME_ENGINES=0"
  "CORELANE_STATIC_FORMS=0"
  "TBB_ENABLE_SANITIZERS=1"
  "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1"
  "LSAN_OPTIONS=use_tls=0:suppressions=${PROJECT_SOURCE_DIR}/tools/sanitizers/lsan.supp:print_suppressions=0"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/sanitizers/tsan.supp:history_size=4:suppress_equal_addresses=0:allocator_may_return_null=1")
if(CORELANE_SANITIZE)
  # The sanitizer's runtime opens libraries in a module's place, and does not know the module's search path.
  file(GLOB second_engine "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/onnxruntime/capi")
  list(APPEND CORELANE_TEST_ENVIRONMENT "LD_LIBRARY_PATH=${second_engine}")
endif()

# corelane_empty_test_cache(<target>): programs that an earlier build compiled are gone from the tests' cache when the
# target is linked anew, so that no test passes by what its sources no longer make.
function(corelane_empty_test_cache target)
  # rm, not cmake -E rm, which fails when another target's rm takes the same file first.
  add_custom_command(TARGET ${target} POST_BUILD COMMAND rm -rf "${PROJECT_BINARY_DIR}/test-cache")
endfunction()
