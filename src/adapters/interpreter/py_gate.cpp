#include "adapters/interpreter/py_gate.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace corelane::interpreter {
namespace {

constexpr std::chrono::seconds kThreadsTimeout{2};

std::atomic<bool> closed{false};
std::atomic<int> inside{0};
/// Written before `closed`: the thread that ends the interpreter, whose last objects may still
/// call.
std::thread::id closer;

/// In a forked child the other threads do not exist.
void forget_threads_after_fork() {
  [[maybe_unused]] static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { inside.store(0, std::memory_order_relaxed); });
}

}  // namespace

Released::Released() noexcept {
  inside.fetch_add(1);
  state_ = PyEval_SaveThread();
}

Released::~Released() {
  if (closed.load() && std::this_thread::get_id() != closer) park();
  parked_at_end([this] { PyEval_RestoreThread(state_); });
  inside.fetch_sub(1);
}

Entered::Entered() noexcept {
  forget_threads_after_fork();
  inside.fetch_add(1);
  in_ = !closed.load();
  if (in_)
    parked_at_end([this] { state_ = PyGILState_Ensure(); });
  else
    inside.fetch_sub(1);
}

Entered::~Entered() {
  if (!in_) return;
  PyGILState_Release(state_);
  inside.fetch_sub(1);
}

std::shared_ptr<PyObject> shared(PyObject* reference) {
  return {reference, [](PyObject* object) {
            // Too late otherwise: the interpreter has taken its objects with it.
            if (const Entered lock; lock) Py_DECREF(object);
          }};
}

void park() noexcept {
  inside.fetch_sub(1);
  for (;;) pause();
}

void shutdown(void (*close)()) {
  // Not a Released, which would count this thread among those that are waited for.
  PyThreadState* const state = PyEval_SaveThread();
  close();
  closer = std::this_thread::get_id();
  closed.store(true);
  const auto limit = std::chrono::steady_clock::now() + kThreadsTimeout;
  while (inside.load() > 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

}  // namespace corelane::interpreter
