/// Options of a session and of a call, as corelane/_ort/options.py passes them: checked values in a
/// dict, and one object for the terms of a call.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "corelane/session/session.h"

namespace corelane::python {

/// Keys are those of SessionOptions (and of its LoadOptions); absent or None means the default.
/// Raises StatusError for a value that is not allowed and TypeError for one of another type.
SessionOptions read_options(const nanobind::dict& given);
/// What is in force, under the same keys.
nanobind::dict show_options(const SessionOptions& options);

/// The options that calls may share (see CallOptions). Python code changes them between calls, and
/// may terminate calls that wait.
struct Terms {
  CallControl control;
  std::int64_t timeout_us = 0;
  std::int64_t submit_timeout_us = 0;
  std::int32_t priority = 0;
  /// If the call has one of its own: its submission gives up waiting once this is set.
  std::shared_ptr<std::atomic<bool>> abandoned;
};

/// True when a signal handler of the interpreter raised, as that of Ctrl-C does: its exception is
/// set then. For waits without the lock.
bool interrupted();

/// `terms` may be None. Waits of the main thread look for signals.
CallOptions read_call(nanobind::handle outputs, nanobind::handle terms);

void bind_options(nanobind::module_& module);

}  // namespace corelane::python
