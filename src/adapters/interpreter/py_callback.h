/// How a function of the user is called from a thread of the library.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

namespace corelane::interpreter {

/// Runs `call`, which calls `callback`. What it raises goes to sys.unraisablehook, with `callback`
/// as the object. A child that the callback has forked, and that has returned from it, ends as a
/// process does whose last thread ends: it has no other one. Needs the lock.
void call_reported(nanobind::handle callback, const std::function<void()>& call);

}  // namespace corelane::interpreter
