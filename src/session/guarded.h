/// Catches what must not leave a thread of the device or a call: out of memory, mostly.
#pragma once

#include <exception>
#include <new>

#include "corelane/base/status.h"

namespace corelane::session {

/// To be called in a catch block.
inline Status status_of_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "out of memory; free some, or use fewer contexts");
  } catch (const std::exception& e) {
    return error(Code::kInternal, "an exception: {}", e.what());
  } catch (...) {
    return error(Code::kInternal, "an exception of an unknown kind");
  }
}

/// The Result of `f`, or the exception it threw as one.
template <class T, class F>
Result<T> guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return error(status_of_current_exception());
  }
}

template <class F>
Status guarded_status(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace corelane::session
