/// Where each handle of an InferenceSet stands, and who may collect which. Plain data, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/reserve.h"
#include "corelane/base/status.h"
#include "corelane/runtime/inference_set.h"

namespace corelane::runtime {

/// A handle is available, held by a user, in flight, or completed. It is known by its index.
class SetTable {
 public:
  /// `in_order`: a completed handle can be collected once all that were submitted before it have
  /// been.
  SetTable(std::size_t handles, bool in_order);

  /// An available handle, which is held from now on; the one that was released first.
  std::optional<std::size_t> acquire();
  /// Held or available to in flight. kBusy where it is in flight already, kWrongState where nobody
  /// has collected its result.
  Status submit(std::size_t handle, std::uint64_t id);
  /// The submission was refused: back to held, or to the first of those that are available.
  void refuse(std::size_t handle);
  /// In flight to completed.
  void complete(std::size_t handle);
  /// The next completed handle, which is held from now on.
  std::optional<std::size_t> collect();
  /// The same for the first submission of `id` that was not collected; none while it is in flight.
  std::optional<std::size_t> collect(std::uint64_t id);
  /// The same for this handle, which has completed.
  std::size_t take(std::size_t handle);
  /// Held to available. kWrongState in any other state.
  Status release(std::size_t handle);

  /// The first submission of `id` that was not collected.
  std::optional<std::size_t> find(std::uint64_t id) const;
  /// The first submission of `id` that is in flight.
  std::optional<std::size_t> find_in_flight(std::uint64_t id) const;
  /// The handles in flight, in the order of their submission.
  SureVector<std::size_t> all_in_flight() const;
  /// Handle `nth` of those, from 0; none where there are not so many.
  std::optional<std::size_t> in_flight(std::size_t nth) const;
  /// How many submissions there were; the number of the last one.
  std::uint64_t submissions() const noexcept { return submissions_; }
  /// The number of the handle's last submission.
  std::uint64_t submission(std::size_t handle) const { return handles_[handle].submission; }
  /// What collect() would give.
  std::optional<std::size_t> next() const;
  const SetFigures& figures() const noexcept { return figures_; }

 private:
  enum class State : std::uint8_t { kAvailable, kHeld, kInFlight, kCompleted };
  struct Handle {
    State state = State::kAvailable;
    State before = State::kHeld;  ///< Its last submission.
    std::uint64_t id = 0;
    std::uint64_t submission = 0;
  };
  void move(Handle& handle, State to);
  std::size_t& count(State state);

  const bool in_order_;
  std::vector<Handle> handles_;
  SureDeque<std::size_t> available_;
  SureVector<std::size_t> submitted_;  ///< In flight or completed, in order of submission.
  SureVector<std::size_t> completed_;  ///< In order of completion.
  std::uint64_t submissions_ = 0;
  SetFigures figures_;
};

}  // namespace corelane::runtime
