/// A set of inferences: corelane::InferenceSet with the API's handles, buffers and codes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/checks/qaic_check.h"
#include "adapters/qaic/program/qaic_bound_buffers.h"
#include "adapters/qaic/program/qaic_one_user.h"
#include "adapters/qaic/program/qaic_program.h"
#include "adapters/qaic/program/qaic_states.h"
#include "corelane/runtime/inference_set.h"

namespace corelane::qaic {

class BufferOwner;

/// Handles are numbers from 0. All functions from any thread; a handle has one user at a time.
class SetObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kSet;
  using Handle = QAicInferenceSet;

  /// What stands for no handle.
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// `parts` without a loaded program. kOutOfCores (more than the device has free), and those of
  /// loading and of InferenceSet::create.
  static Result<std::shared_ptr<SetObject>> create(ProgramParts parts, std::uint32_t size,
                                                   std::uint32_t activations);

  Outcome acquire(std::uint64_t us, std::uint32_t& handle);
  /// `owner` (may be null) is kept while these are set, and until the inferences with them have
  /// ended, also where the set goes first.
  Outcome set_data(std::uint32_t handle, std::size_t count, const QBuffer* buffers,
                   const QBufferDimensions* dims,
                   std::shared_ptr<const BufferOwner> owner = nullptr);
  /// See BoundBuffers. kBusy as set_data().
  Outcome set_covering(std::uint32_t handle, bool on);
  Result<std::uint32_t> specialization(std::uint32_t handle);
  Outcome submit(std::uint32_t handle, std::uint64_t id);
  /// `handle` is kNone where no inference has ended.
  Outcome collect(std::uint64_t us, std::uint32_t& handle);
  Outcome collect_id(std::uint64_t id, std::uint64_t us, std::uint32_t& handle);
  Outcome release(std::uint32_t handle);
  /// `use` gets the state of the handle's activation. kBusy while the handle is in flight, or
  /// completed and not collected.
  template <class Use>
  Outcome with_states(std::uint32_t handle, const Use& use) {
    CORELANE_ASSIGN(Item * one, item(handle));
    const OneUser user(one->busy);
    if (!user) return not_collected(handle);
    return use(StateCalls(one->context, *program_->plan()));
  }
  Outcome wait(std::uint64_t us);
  Outcome cancel(std::uint64_t id);
  void shutdown() { set_.shutdown(); }
  std::size_t in_flight() const { return set_.figures().in_flight; }
  Result<int> fd() { return set_.fd(); }
  QAicProgramInfoV2 info() const;
  /// For profiling: it runs nothing of the set itself.
  const std::shared_ptr<ProgramObject>& program() const noexcept { return program_; }

 private:
  /// What the API adds to a handle.
  struct Item {
    Item(SetHandle of, const ProgramObject& program);
    ~Item() { outputs_known(); }
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    void outputs_known() noexcept { check::outputs_known(outputs.exchange(0)); }
    SetHandle handle;
    Context context;
    BoundBuffers buffers;
    bool owned = false;  ///< The runtime's handle keeps memory of the buffers, or its owner.
    /// From its submission until it is collected, and while a call sets its buffers.
    std::atomic<bool> busy{false};
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::uint64_t> outputs{0};  ///< Of check::outputs_begin().
  };

  SetObject(std::shared_ptr<ProgramObject> program, InferenceSet set);
  Status fill();
  Result<Item*> item(std::uint32_t handle);
  static Status not_collected(std::uint32_t handle);
  Outcome collected(Result<SetHandle> done, std::uint32_t& handle);
  TimePoint until(std::uint64_t us) const;

  const std::shared_ptr<ProgramObject> program_;  ///< Its parts and plan; never loaded itself.
  const std::shared_ptr<Clock> clock_;
  InferenceSet set_;
  std::vector<std::unique_ptr<Item>> items_;
};

}  // namespace corelane::qaic
