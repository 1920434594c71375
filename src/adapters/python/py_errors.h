/// The one place where a Status becomes a Python error. corelane/_errors.py, which knows the rules
/// of the session, decides which class of corelane.capi the caller sees.
#pragma once

#include <nanobind/nanobind.h>

#include "corelane/base/status.h"

namespace corelane::python {

/// corelane._errors.StatusError: the code, the message with those of its causes, and the details.
nanobind::object status_error(const Status& status);
/// Throws that error; where a signal handler has raised during the call, its exception instead.
[[noreturn]] void raise(const Status& status);

/// Raises unless `status` is ok.
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
/// The value; raises where there is none.
template <class T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

}  // namespace corelane::python
