/// The library's threads.
#pragma once

#include <functional>
#include <thread>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

/// Tells the processor that this thread spins: it saves power, and leaves the core to the other
/// thread that it may have.
inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Starts a thread that runs `body`, in which every signal is blocked, so that signals stay with
/// the program's own threads. `name` is a literal of at most 15 characters, as tools show it.
/// `body` must not throw. kIo where the system gives no thread, kOutOfMemory. Any thread.
CORELANE_API Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace corelane
