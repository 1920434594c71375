/// The way in and out of the interpreter: giving its lock away, taking it, and the end of both.
///
/// A thread that asks for the lock of an interpreter that has ended never returns. So every thread
/// that has given the lock away, or is about to take it, is counted, and shutdown() waits for them
/// while the interpreter still lives; later ones are turned away. Each extension module that is
/// built with these files has its own count, and calls shutdown() itself.
#pragma once

#include <Python.h>
#include <cxxabi.h>

#include <memory>
#include <utility>

namespace corelane::interpreter {

/// Gives the lock away until the end of the scope. The thread must hold it. Once the interpreter is
/// ending, only the thread that ends it gets the lock back; others stay there until the process
/// ends.
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

/// What `f` returns, called without the lock.
template <class F>
auto without_lock(F&& f) {
  const Released released;
  return std::forward<F>(f)();
}

/// Shares a reference that any thread may drop. Takes it over; needs the lock.
std::shared_ptr<PyObject> shared(PyObject* reference);

/// Never returns. The thread is no longer counted.
[[noreturn]] void park() noexcept;

/// Calls `f`, which runs Python code. CPython unwinds the stack of a thread that returns to an
/// interpreter that has ended; frames that hold Python objects, or are noexcept, do not survive
/// that, so such a thread stays here instead.
template <class F>
decltype(auto) parked_at_end(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    park();
  }
}

/// Called once when the interpreter ends, with the lock held: calls `close` without it, which ends
/// what calls back (callbacks still run meanwhile), and then turns threads away.
void shutdown(void (*close)());

}  // namespace corelane::interpreter
