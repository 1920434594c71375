#include "base/trust/file_size_signal.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace corelane {
namespace {

sigset_t file_size_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool is_pending() noexcept {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

/// The kernel sends the signal to the thread that writes, so this thread's mask is enough.
NoFileSizeSignal::NoFileSizeSignal() noexcept {
  const sigset_t set = file_size_signal();
  // A signal that was pending before was blocked by the host, and stays its own.
  ours_ = pthread_sigmask(SIG_BLOCK, &set, &before_) == 0 && !is_pending();
}

NoFileSizeSignal::~NoFileSizeSignal() {
  if (!ours_) return;
  const int saved = errno;
  const sigset_t set = file_size_signal();
  const timespec none{};
  if (is_pending()) sigtimedwait(&set, nullptr, &none);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

}  // namespace corelane
