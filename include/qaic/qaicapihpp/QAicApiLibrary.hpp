/// Where the C++ classes find the library. Used by them; a program may call library() itself to
/// learn early whether it is there.
///
/// The first call opens the path in the environment variable QAIC_LIB; without it "libQAic.so", as
/// the dynamic loader finds it, and always that in a set-uid or set-gid program. The library stays
/// loaded until the process ends.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "QAicApi.h"
#include "QAicApiExceptions.hpp"

namespace qaic::rt {

namespace detail {

/// Throws: what was tried, why it failed, what to do.
[[noreturn]] inline void noLibrary(const std::string& name, bool named, const std::string& why) {
  throw CoreExceptionInit(
      "QAicApiLibrary",
      (named ? "QAIC_LIB names '" : "opened '") + name + "': " + why +
          (named ? "; set QAIC_LIB to the path of libQAic.so"
                 : "; install libQAic.so, put its folder into LD_LIBRARY_PATH, or set QAIC_LIB to "
                   "its path"),
      QS_ERROR);
}

inline const QAicApiFunctionTable* openLibrary() {
  const char* path = ::secure_getenv("QAIC_LIB");
  const bool named = path != nullptr && *path != '\0';
  const std::string name = named ? path : "libQAic.so";
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    noLibrary(name, named, why != nullptr ? why : "the dynamic loader did not say why");
  }
  using GetTable = const QAicApiFunctionTable* (*)();
  const auto getTable = reinterpret_cast<GetTable>(dlsym(library, "qaicGetFunctionTable"));
  const QAicApiFunctionTable* table = getTable != nullptr ? getTable() : nullptr;
  if (table == nullptr)
    noLibrary(name, named, "it is not the object runtime's library: no function table is in it");
  uint16_t major = 0;
  uint16_t minor = 0;
  const char* patch = nullptr;
  const char* variant = nullptr;
  if (table->qaicGetAicVersion(&major, &minor, &patch, &variant) != QS_SUCCESS)
    noLibrary(name, named, "it does not give its version");
  if (major != LRT_LIB_MAJOR_VERSION || minor < LRT_LIB_MINOR_VERSION)
    noLibrary(name, named,
              "its version is " + std::to_string(major) + "." + std::to_string(minor) +
                  ", this program was built for " + std::to_string(LRT_LIB_MAJOR_VERSION) + "." +
                  std::to_string(LRT_LIB_MINOR_VERSION) + " or a later minor one");
  return table;
}

/// A length of time as the table takes it: in microseconds, rounded up; below 0 as 0.
template <class Rep, class Period>
uint64_t microseconds(std::chrono::duration<Rep, Period> time) {
  using Exact = std::chrono::duration<long double, std::micro>;
  const long double count = Exact(time).count();
  if (!(count > 0)) return 0;
  if (count >= 9e18L) return QAIC_WAIT_FOREVER;
  const auto whole = static_cast<uint64_t>(count);
  return static_cast<long double>(whole) < count ? whole + 1 : whole;
}

}  // namespace detail

/// All functions. Throws CoreExceptionInit where the library is missing, is another library, or has
/// another major version; a later call tries again. From any thread.
inline const QAicApiFunctionTable& library() {
  static const QAicApiFunctionTable* const table = detail::openLibrary();
  return *table;
}

namespace detail {

/// The reason of this thread's last failure.
inline std::string lastError() { return library().qaicGetLastErrorText(); }

/// Throws where a factory's call failed.
inline void checkInit(const char* name, QStatus status) {
  if (status != QS_SUCCESS) throw CoreExceptionInit(name, lastError(), status);
}

/// Throws where the call of a method that returns a value failed.
inline void checkRun(QStatus status) {
  if (status != QS_SUCCESS) throw CoreExceptionRuntime(lastError(), status);
}

/// Throws where a factory got a null object.
inline void checkGiven(const char* name, bool given, const char* what) {
  if (!given)
    throw CoreExceptionInit(
        name, std::string("the ") + what + " is null; pass the one that its Factory gave",
        QS_INVAL);
}

}  // namespace detail
}  // namespace qaic::rt
