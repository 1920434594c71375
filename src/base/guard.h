/// Calls into code that may throw: libraries, operators and callbacks of the user.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

/// The exception that is being handled, as a failure; to be called in a catch block. `what` names
/// the call: "the import". With kInternal, std::bad_alloc becomes kOutOfMemory; with the code of
/// somebody else's work (kEngineFailed), whatever that work throws has this code.
CORELANE_API Status status_of_exception(std::string_view what,
                                        Code code = Code::kInternal) noexcept;

namespace detail {
/// Writes the exception that is being handled to the log; to be called in a catch block.
CORELANE_API void log_exception(std::string_view part, std::string_view what) noexcept;
}  // namespace detail

/// `f()`, which returns a Status or a Result; what it throws comes back as status_of_exception().
template <class F>
std::invoke_result_t<F&> no_throw(std::string_view what, F&& f,
                                  Code code = Code::kInternal) noexcept {
  try {
    return f();
  } catch (...) {
    return error(status_of_exception(what, code));
  }
}

/// Calls `f(args...)`; what it throws goes to the log of `part` as "`what` threw: ...".
template <class F, class... Args>
void run_callback(std::string_view part, std::string_view what, F&& f, Args&&... args) noexcept {
  try {
    std::forward<F>(f)(std::forward<Args>(args)...);
  } catch (...) {
    detail::log_exception(part, what);
  }
}

}  // namespace corelane
