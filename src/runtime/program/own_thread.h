/// How an object ends that shares its state with a thread of its own.
#pragma once

#include <memory>
#include <thread>

#include "base/fork.h"

namespace corelane::runtime {

/// Called by the destructor of the object. `core` is the shared state, `core->made_in` the
/// fork_count() that it was made with; `stop()` tells the thread to end and returns it. Waits for
/// the thread, but where it is the caller: a callback of the log in it has dropped the program.
template <class Core, class Stop>
void end_own_thread(const std::shared_ptr<Core>& core, const Stop& stop) {
  if (core->made_in != fork_count()) {
    // The thread is the parent's, and so may be the lock: both are left alone.
    static_cast<void>(new std::shared_ptr<Core>(core));
    return;
  }
  std::thread ended = stop();
  if (!ended.joinable()) return;
  if (ended.get_id() == std::this_thread::get_id())
    ended.detach();
  else
    ended.join();
}

}  // namespace corelane::runtime
