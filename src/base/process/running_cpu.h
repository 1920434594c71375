/// On which CPU other threads of the process run.
#pragma once

#include <cstdint>
#include <optional>

namespace corelane {

/// The CPU of one thread, as the kernel tells it to the thread's process: the field `cpu_id` of the
/// area for restartable sequences, which glibc registers for each thread from version 2.35 on
/// (rseq(2)). The kernel writes it whenever the thread goes on after an interruption, so that
/// looking costs no call of the system.
class RunningCpu {
 public:
  /// Of no thread: number() is none.
  RunningCpu() = default;
  static RunningCpu of_this_thread() noexcept;

  /// On which CPU the thread runs, or ran last. None where the system does not tell it. Any thread,
  /// while that one lives.
  std::optional<std::uint32_t> number() const noexcept;

 private:
  const volatile std::uint32_t* word_ = nullptr;
};

}  // namespace corelane
