#include "drivers/virtual/matmul/matmul_threads.h"

#include <algorithm>
#include <atomic>

#include "base/fork.h"
#include "base/process/cpus.h"

// libgomp, which oneDNN brings. clang has no omp.h for it, and -fopenmp would bring a second
// runtime there; GOMP_parallel is what g++ itself calls.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
int omp_get_dynamic();
void omp_set_dynamic(int);
int omp_get_thread_limit();
int omp_get_active_level();
int omp_get_max_active_levels();
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
}

namespace corelane::drivers::virtual_npu {
namespace {

/// fork_count() where this thread began to have a pool; none yet.
constexpr std::uint64_t kNoPool = ~std::uint64_t{0};
thread_local std::uint64_t pool_forks = kNoPool;

/// One parallel loop: threads take parts until none is left.
struct Loop {
  void (*body)(void*, std::size_t);
  void* closure;
  std::size_t parts;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
};

}  // namespace

std::size_t matmul_threads(std::size_t cores) {
  if (cores <= 1) return 1;
  // The environment, or a caller's own parallel region, may let libgomp start fewer than it is
  // asked for; oneDNN divides the product by what was asked for.
  if (omp_get_active_level() >= omp_get_max_active_levels()) return 1;
  const auto limit = static_cast<std::size_t>(std::max(1, omp_get_thread_limit()));
  const std::size_t threads = std::min({cores, whole_cpus(), limit});
  if (threads <= 1) return 1;
  const std::uint64_t now = fork_count();
  if (pool_forks == kNoPool) pool_forks = now;
  return pool_forks == now ? threads : 1;
}

/// libgomp may lower the number on its own ("dynamic"); oneDNN has divided its work by then.
ThreadScope::ThreadScope(std::size_t threads) noexcept
    : before_(omp_get_max_threads()), now_(static_cast<int>(threads)), dynamic_(omp_get_dynamic()) {
  if (dynamic_ != 0) omp_set_dynamic(0);
  if (before_ != now_) omp_set_num_threads(now_);
}

ThreadScope::~ThreadScope() {
  if (dynamic_ != 0) omp_set_dynamic(dynamic_);
  if (before_ != now_) omp_set_num_threads(before_);
}

void detail::run_parts(std::size_t threads, void (*body)(void*, std::size_t), void* closure,
                       std::size_t parts) {
  Loop loop{body, closure, parts};
  loop.done.store(0, std::memory_order_release);
  // The barrier of libgomp orders memory; the counters repeat that for tools that do not see it.
  GOMP_parallel(
      [](void* data) {
        Loop& mine = *static_cast<Loop*>(data);
        static_cast<void>(mine.done.load(std::memory_order_acquire));
        for (;;) {
          const std::size_t part = mine.next.fetch_add(1, std::memory_order_relaxed);
          if (part >= mine.parts) break;
          mine.body(mine.closure, part);
        }
        mine.done.fetch_add(1, std::memory_order_acq_rel);
      },
      &loop, static_cast<unsigned>(std::min(threads, parts)), 0);
  static_cast<void>(loop.done.load(std::memory_order_acquire));
}

}  // namespace corelane::drivers::virtual_npu
