/// The frame of an entry point: nothing leaves a function of a C API but its code.
#pragma once

#include <utility>

#include "base/guard.h"
#include "edge/call_site.h"

namespace corelane::edge {

/// `body()`, which returns the API's outcome: a type that error() converts to. What it throws
/// becomes such a failure (kOutOfMemory for std::bad_alloc, else kInternal). While `checking`,
/// `function` is this thread's current call.
template <class Body>
auto entry(bool checking, const char* function, Body&& body) noexcept {
  const CallScope scope(checking, function);
  return no_throw(function, std::forward<Body>(body));
}

}  // namespace corelane::edge
