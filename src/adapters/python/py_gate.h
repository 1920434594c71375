/// The way in and out of the interpreter: who holds its lock, and when it is too late for it.
///
/// A thread that asks for the lock of an interpreter that has ended never comes back. So every
/// thread that has left the lock, or is about to take it, is counted, and shutdown() waits for them
/// while the interpreter still lives; whoever comes later is turned away.
#pragma once

#include <Python.h>

namespace corelane::python {

/// Gives the lock away until the end of the scope. The thread must hold it.
class Released {
 public:
  Released() noexcept;
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the lock until the end of the scope, from any thread. False when the interpreter is
/// ending: then no Python object may be touched, not even to give it up.
class Entered {
 public:
  Entered() noexcept;
  ~Entered();
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  explicit operator bool() const noexcept { return in_; }

 private:
  bool in_;
  PyGILState_STATE state_{};
};

/// Called once when the interpreter ends, with the lock held: closes all sessions (accepted tasks
/// are run and called back, for at most ten seconds) and then turns threads away.
void shutdown();

}  // namespace corelane::python
