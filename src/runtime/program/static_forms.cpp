#include "runtime/program/batch_forms.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/sync.h"
#include "base/thread.h"
#include "corelane/base/log.h"
#include "runtime/program/own_thread.h"

namespace corelane::runtime {

std::optional<std::size_t> form_replicate_limit(std::size_t constants, std::size_t cores,
                                                std::size_t taken, std::size_t budget) noexcept {
  if (taken > budget || constants > budget - taken) return std::nullopt;
  // Divided, not multiplied: a damaged figure must not wrap.
  return constants == 0 || (budget - taken) / constants >= cores ? budget : 0;
}

std::size_t form_copies(device::Placement placement, std::size_t cores,
                        std::size_t constants) noexcept {
  return placement == device::Placement::kReplicated ? cores * constants : constants;
}

/// Shared with the thread: a callback of the log may drop the last reference to the program there.
struct BatchForms::Core : std::enable_shared_from_this<Core> {
  enum class State : std::uint8_t { kNone, kDue, kMade, kRefused };
  struct Size {
    std::atomic<std::uint32_t> runs{0};
    State state = State::kNone;  ///< Guarded by mutex.
    Status status;               ///< Of a refused one; guarded by mutex.
  };

  Core(BatchRange sizes_of, std::string program, Make maker)
      : range(sizes_of),
        name(std::move(program)),
        make(std::move(maker)),
        sizes(range.high - range.low + 1) {}

  Size& size_of(std::uint32_t batch) { return sizes[batch - range.low]; }

  /// True for a size that is due from now on; `again`: also one that was refused.
  bool take_due(std::uint32_t batch, bool again) CORELANE_REQUIRES(mutex) {
    Size& size = size_of(batch);
    const bool open = size.state == State::kNone || (again && size.state == State::kRefused);
    if (!open || stop) return false;
    if (made + making + due.size() >= kMostBatchForms) {
      size.state = State::kRefused;
      size.status = error(Code::kOutOfMemory,
                          "program '{}' has {} forms of single batch sizes, the most there may be",
                          name, kMostBatchForms);
      return false;
    }
    size.state = State::kDue;
    due.push_back(batch);
    return true;
  }

  /// Needs something to make. A thread that has nothing left to do is joined here.
  void start() CORELANE_REQUIRES(mutex) {
    if (running || due.empty()) return;
    if (thread.joinable()) thread.join();
    auto started = start_thread("batch forms", [self = shared_from_this()] { self->work(); });
    if (started) {
      thread = std::move(*started);
      running = true;
      return;
    }
    for (const std::uint32_t batch : due) refuse(batch, started.error());
    due.clear();
    changed.notify_all();
  }

  void refuse(std::uint32_t batch, const Status& why) CORELANE_REQUIRES(mutex) {
    size_of(batch).state = State::kRefused;
    size_of(batch).status = why;
  }

  void work() {
    while (const std::optional<std::uint32_t> batch = next()) {
      const Status status = make_one(*batch);
      bool first_refusal = false;
      {
        const MutexLock lock(mutex);
        making = 0;
        if (status.ok()) {
          size_of(*batch).state = State::kMade;
          ++made;
          generation.fetch_add(1, std::memory_order_release);
        } else if (status.code() == Code::kDeviceLost) {
          // It comes back, and the sizes with it.
          size_of(*batch).state = State::kNone;
          size_of(*batch).runs.store(0, std::memory_order_relaxed);
          size_of(*batch).status = status;
        } else {
          first_refusal = size_of(*batch).status.ok();
          refuse(*batch, status);
        }
        changed.notify_all();
      }
      if (first_refusal) report(*batch, status);
    }
  }

  /// The next size that is due; nothing where the thread ends.
  std::optional<std::uint32_t> next() {
    const MutexLock lock(mutex);
    if (due.empty() || stop) {
      running = false;
      changed.notify_all();
      return std::nullopt;
    }
    const std::uint32_t batch = due.front();
    due.pop_front();
    making = 1;
    return batch;
  }

  Status make_one(std::uint32_t batch) {
    try {
      return make(batch);
    } catch (const std::exception& e) {
      return error(Code::kInternal, "making the form: {}", e.what());
    } catch (...) {
      return error(Code::kInternal, "making the form: an exception of an unknown type");
    }
  }

  /// Without a lock; afterwards this object may be the thread's alone.
  void report(std::uint32_t batch, const Status& status) const {
    // That the budget is used up is as it should be.
    const bool expected = status.code() == Code::kOutOfMemory;
    log::line(
        expected ? log::Level::kInfo : log::Level::kWarn, "runtime",
        "program '{}': batch {} gets no form of its own, the one for all sizes goes on serving "
        "it: {}",
        name, batch, status.to_string());
  }

  const BatchRange range;
  const std::string name;
  const Make make;
  const std::uint64_t made_in = fork_count();
  std::vector<Size> sizes;
  std::atomic<std::uint64_t> generation{0};
  Mutex mutex{LockRank::kBatchForms};
  std::condition_variable changed;
  std::deque<std::uint32_t> due CORELANE_GUARDED_BY(mutex);
  std::size_t made CORELANE_GUARDED_BY(mutex) = 0;
  std::size_t making CORELANE_GUARDED_BY(mutex) = 0;  ///< 1 while the thread makes one.
  bool running CORELANE_GUARDED_BY(mutex) = false;    ///< The thread will look at `due` again.
  bool stop CORELANE_GUARDED_BY(mutex) = false;
  std::thread thread CORELANE_GUARDED_BY(mutex);
};

BatchForms::BatchForms(BatchRange range, std::string name, Make make)
    : core_(std::make_shared<Core>(range, std::move(name), std::move(make))) {}

BatchForms::~BatchForms() {
  end_own_thread(core_, [this] {
    const MutexLock lock(core_->mutex);
    core_->stop = true;
    for (const std::uint32_t batch : core_->due) core_->size_of(batch).state = Core::State::kNone;
    core_->due.clear();
    core_->changed.notify_all();
    return std::move(core_->thread);
  });
}

const BatchRange& BatchForms::range() const noexcept { return core_->range; }

std::uint64_t BatchForms::generation() const noexcept {
  return core_->generation.load(std::memory_order_acquire);
}

void BatchForms::note_run(std::uint32_t batch) noexcept {
  Core& core = *core_;
  if (!core.range.holds(batch)) return;
  std::atomic<std::uint32_t>& runs = core.size_of(batch).runs;
  // The count stops where it has done its work, so that it never wraps.
  if (runs.load(std::memory_order_relaxed) >= kRunsBeforeForm) return;
  if (runs.fetch_add(1, std::memory_order_relaxed) + 1 != kRunsBeforeForm) return;
  if (core.made_in != fork_count()) return;
  try {
    const MutexLock lock(core.mutex);
    if (core.take_due(batch, false)) core.start();
  } catch (const std::exception& e) {
    log::warn("runtime", "program '{}': no form for batch {}: {}", core.name, batch, e.what());
  }
}

Status BatchForms::make_now(std::uint32_t batch) {
  const std::shared_ptr<Core> kept = core_;  // Its end may come while this waits.
  Core& core = *kept;
  if (!core.range.holds(batch)) {
    return error(Code::kOutOfRange, "batch {} of program '{}'; {} to {} is allowed", batch,
                 core.name, core.range.low, core.range.high);
  }
  if (core.made_in != fork_count())
    return error(Code::kWrongState, "program '{}' was loaded before this process was forked",
                 core.name);
  MutexLock lock(core.mutex);
  if (core.thread.get_id() == std::this_thread::get_id())
    return error(Code::kWrongState, "a form is asked for in the thread that makes them");
  Core::Size& size = core.size_of(batch);
  if (core.take_due(batch, true)) core.start();
  while (size.state == Core::State::kDue) core.changed.wait(lock.native());
  if (size.state == Core::State::kMade) return {};
  if (!size.status.ok()) return size.status;
  return error(Code::kCancelled, "program '{}' ended before its form for batch {} was made",
               core.name, batch);
}

void BatchForms::forget() {
  const MutexLock lock(core_->mutex);
  core_->made = 0;
  for (Core::Size& size : core_->sizes) {
    if (size.state == Core::State::kDue) continue;
    size.state = Core::State::kNone;
    size.runs.store(0, std::memory_order_relaxed);
  }
}

void BatchForms::wait_idle() {
  MutexLock lock(core_->mutex);
  while (core_->running) core_->changed.wait(lock.native());
}

}  // namespace corelane::runtime
