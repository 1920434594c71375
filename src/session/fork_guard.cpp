#include "session/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace corelane::session {
namespace {

std::atomic<std::uint64_t> generation{0};

}  // namespace

std::uint64_t fork_generation() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

Status forked_status(std::string_view what) {
  return error(Code::kWrongState,
               "{} before this process forked, and its threads stayed behind; start workers by "
               "spawn or exec (in Python: multiprocessing's 'spawn'), or fork before the first "
               "session is made",
               what);
}

}  // namespace corelane::session
