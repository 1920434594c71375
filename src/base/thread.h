/// The library's threads.
#pragma once

#include <functional>
#include <thread>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

/// Starts a thread that runs `body`, in which every signal is blocked, so that signals stay with
/// the program's own threads. `name` is a literal of at most 15 characters, as tools show it.
/// `body` must not throw. kIo where the system gives no thread, kOutOfMemory. Any thread.
CORELANE_API Result<std::thread> start_thread(const char* name, std::function<void()> body);

}  // namespace corelane
