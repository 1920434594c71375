/// Threads of one matrix product. Debian's oneDNN runs on libgomp, which keeps a pool for each
/// thread that calls it; the loops of this folder run on the same pool.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace corelane::drivers::virtual_npu {

/// Threads that a job of `cores` cores takes here: no more than CPUs or than libgomp may start,
/// and one where the calling thread's pool belongs to the process this one was forked from.
std::size_t matmul_threads(std::size_t cores);

/// While it lives, libgomp takes `threads` threads, not fewer, for what the calling thread
/// starts. Restores what was set.
class ThreadScope {
 public:
  explicit ThreadScope(std::size_t threads) noexcept;
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
  int now_;
  int dynamic_;
};

namespace detail {
void run_parts(std::size_t threads, void (*body)(void* closure, std::size_t part), void* closure,
               std::size_t parts);
}

/// Calls body(part) for each part below `parts`, spread over at most `threads` threads, and waits.
/// `body` must not throw.
template <class Body>
void for_parts(std::size_t threads, std::size_t parts, Body&& body) {
  if (threads <= 1 || parts <= 1) {
    for (std::size_t part = 0; part < parts; ++part) body(part);
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  detail::run_parts(
      threads, [](void* closure, std::size_t part) { (*static_cast<Plain*>(closure))(part); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))), parts);
}

/// body(begin, end) for consecutive ranges of `count` items, one for each thread, none smaller than
/// `least` items but the last.
template <class Body>
void for_ranges(std::size_t threads, std::size_t count, std::size_t least, Body&& body) {
  const std::size_t most = (count + least - 1) / least;
  const std::size_t parts = threads < most ? threads : most;
  if (parts == 0) return;
  const std::size_t step = (count + parts - 1) / parts;
  for_parts(threads, (count + step - 1) / step, [&](std::size_t part) {
    const std::size_t begin = part * step;
    body(begin, begin + step < count ? begin + step : count);
  });
}

}  // namespace corelane::drivers::virtual_npu
