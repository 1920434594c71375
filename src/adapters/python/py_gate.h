/// The way in and out of the interpreter: who holds its lock, and when it is too late for it.
///
/// A thread that asks for the lock of an interpreter that has ended never comes back. So every
/// thread that has left the lock, or is about to take it, is counted, and shutdown() waits for them
/// while the interpreter still lives; whoever comes later is turned away.
#pragma once

#include <Python.h>
#include <cxxabi.h>

#include <utility>

namespace corelane::python {

/// Gives the lock away until the end of the scope. The thread must hold it. Once the interpreter is
/// ending, only the thread that ends it gets the lock back; others stay there for ever.
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

/// Never returns. The thread counts no longer.
[[noreturn]] void park() noexcept;

/// Calls what runs Python code. CPython unwinds the stack of a thread that comes back to an
/// interpreter that has ended; frames that hold Python objects, or throw nothing, do not survive
/// that, so such a thread stays here instead.
template <class F>
decltype(auto) parked_at_end(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    park();
  }
}

/// Called once when the interpreter ends, with the lock held: closes all sessions (accepted tasks
/// are run and called back, for at most ten seconds) and then turns threads away.
void shutdown();

}  // namespace corelane::python
