/// Runs inferences of several models at once, as many as there are contexts, from one thread.
///
/// Work is submitted asynchronously; while the device's cores run it, this thread prepares the
/// next inputs and reads finished outputs. What a finished inference leads to (lines after a
/// detection, recognition after direction) is pushed while the queue runs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/runtime/context.h"
#include "model_set.h"

namespace page_reader {

/// One inference: how its input is made, and what is done with its output.
struct Work {
  Role role{};
  std::uint32_t item = 0;  ///< Number of the line or page, for traces and messages.
  std::function<corelane::Status(corelane::Context&)> fill;
  std::function<corelane::Status(corelane::Context&)> take;  ///< May push more work.
};

/// The tag of a job in the device's records, and back.
std::uint64_t tag_of(Role role, std::uint32_t item) noexcept;
Role role_of(std::uint64_t tag) noexcept;
std::uint32_t item_of(std::uint64_t tag) noexcept;

/// One thread uses it; the models must outlive it, and are used by it alone while it runs.
class WorkQueue {
 public:
  explicit WorkQueue(ModelSet& models);
  void push(Work work);
  /// Until nothing is left. After a failure nothing more is started; what runs is waited for, and
  /// the first failure is returned, with the model and item.
  corelane::Status run();
  /// Called after each inference that succeeded.
  void on_progress(std::function<void()> callback) { progress_ = std::move(callback); }

 private:
  struct Running {
    Work work;
    std::size_t context = 0;
    corelane::Inference inference;
  };
  struct Lane {  ///< Of one model.
    std::deque<Work> waiting;
    std::vector<std::size_t> free_contexts;
  };
  /// Where completing threads leave word; outlives the queue in their callbacks.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable filled;
    std::vector<std::uint64_t> done;
  };

  corelane::Status start_all();
  corelane::Status start(Lane& lane, std::size_t model);
  corelane::Status finish(std::uint64_t id);
  void abandon_waiting();

  ModelSet& models_;
  std::vector<Lane> lanes_;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<Running>>> running_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::function<void()> progress_;
  std::uint64_t next_id_ = 0;
};

}  // namespace page_reader
