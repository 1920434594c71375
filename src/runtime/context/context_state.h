/// The working part of a Context: tensors, the executable of the current shapes, one run at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/device/device.h"
#include "corelane/runtime/context.h"
#include "runtime/context/form_bindings.h"
#include "runtime/context/kept_states.h"
#include "runtime/context/output_copies.h"
#include "runtime/context/slot.h"
#include "runtime/program/executable_set.h"

namespace corelane {

class ActivationRun;
struct ActivationState;
struct ProgramState;

/// Every function that may meet a second caller takes the call lock, one atomic flag that is not
/// waited for: without it the caller gets kBusy. `shapes_`, `entry_` and `bindings_` are written
/// under the call lock and the mutex both, so either is enough to read them. All other members but
/// the published descriptions belong to the call lock alone.
struct ContextState {
  /// The state of a handle that was never made or was moved from: no program, and its
  /// call lock is taken for good, so that busy() answers every call.
  static ContextState& none() noexcept;
  /// `activation`: whose cores it runs on; null: those of the device.
  static Result<std::shared_ptr<ContextState>> create(
      std::shared_ptr<ProgramState> program, std::shared_ptr<ActivationState> activation = nullptr,
      const ContextOptions& options = {});
  Result<std::shared_ptr<ContextState>> duplicate() const;

  Status set_input_shapes(const std::vector<Shape>& shapes);
  std::vector<TensorDesc> input_descs() const;
  std::vector<TensorDesc> output_descs() const;

  Status bind_input(std::size_t index, const TensorView& view, const ConvertOptions& convert);
  Status bind_output(std::size_t index, const MutableTensorView& view);
  Status bind_input(std::size_t index, std::shared_ptr<device::Buffer> buffer, std::size_t offset);
  Status bind_output(std::size_t index, std::shared_ptr<device::Buffer> buffer, std::size_t offset);
  Status bind_all(const std::vector<Shape>& shapes, std::span<const TensorView> inputs,
                  std::span<const MutableTensorView> outputs);
  Status set_input(std::size_t index, const TensorView& view, const ConvertOptions& convert);
  Status unbind_input(std::size_t index);
  Status unbind_output(std::size_t index);
  Result<MutableTensorView> input(std::size_t index);
  Result<TensorView> output(std::size_t index);

  Status run(const RunOptions& options);
  Result<std::shared_ptr<InferenceState>> submit(std::shared_ptr<ContextState> self,
                                                 const RunOptions& options);

  Result<std::vector<KeptState>> states() const;
  Status reset_states();
  Status reset_state(std::size_t index);
  Status set_state(std::size_t index, ByteSpan bytes);
  Status copy_state(std::size_t index, MutableByteSpan to);

  device::JobRecord record() const;
  RunTimes times() const;
  RunStamps stamps() const;
  Result<std::vector<device::LayerTime>> layer_times();
  device::MemoryFigures memory() const;

 private:
  /// Held by one call at a time; false where another has it.
  class CallLock {
   public:
    explicit CallLock(const ContextState& state) noexcept
        : state_(state), held_(!state.in_call_.exchange(true, std::memory_order_acquire)) {}
    ~CallLock() {
      if (held_) state_.in_call_.store(false, std::memory_order_release);
    }
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;
    explicit operator bool() const noexcept { return held_; }

   private:
    const ContextState& state_;
    bool held_;
  };

  // context_state.cpp: shapes and executables. All need the call lock.
  /// kBusy; of none(), kWrongState.
  Status busy() const;
  /// Takes over the result of an earlier inference. kBusy while it runs. One that was abandoned
  /// leaves its tensors to the engine and new ones take their place, unless memory of the caller is
  /// still in use: then kBusy too.
  Status take_pending();
  /// What most calls begin with: the call lock, and no inference is pending.
  Status enter(const CallLock& call);
  Status enter(const CallLock& call, const std::vector<runtime::Slot>& slots, std::size_t index);
  Status use(runtime::ExecutableSet::Entry entry, std::vector<Shape> shapes, bool fresh = false);
  /// Every slot to new bindings; `kept` is the content of own inputs from before.
  Status apply_all(const std::vector<device::TensorRef>& kept);
  /// Prepares again what was lost with its device; nothing where it was not. What the context's own
  /// inputs hold is kept. kDeviceLost while the device is lost.
  Status renew();
  /// Takes the executable for its shapes anew, because one has come, has left or has changed its
  /// engine. Own inputs stay where they are.
  Status follow_change();
  /// Counts a run: begins a trial of the engines, or a form for these shapes, with the inputs of
  /// this run where it is time for one and no fence guards them.
  void note_run(const RunOptions& options) noexcept;
  void note_shapes(const RunOptions& options) noexcept;
  /// A trial for the run that begins, without inputs. Asks the device which cores are busy.
  runtime::TimedRun kind_of_run(const RunOptions& options) const;
  /// Adds the content of the inputs as they are bound.
  Status copy_inputs(runtime::TimedRun& run) const;
  /// What a run begins with: the executable is there, the best of those for its shapes, with the
  /// state of now.
  Status settle_executable(const RunOptions& options, runtime::StateTurn& turn);
  /// Whether settle_executable() has nothing to do, as for most runs.
  bool is_settled(const RunOptions& options) const;
  bool is_plain(const RunOptions& options) const;
  /// True where own inputs lie in the bindings' memory; false where they must outlive these.
  bool inputs_in_bindings(const device::Executable& executable, std::size_t index) const;
  /// Bindings for an executable that becomes current: kept ones, or new ones.
  Result<std::shared_ptr<device::Bindings>> bindings_for(
      const std::shared_ptr<device::Executable>& executable, bool fresh);
  /// True where the bindings may be kept for a later return to their form.
  bool release_buffers();
  /// Own memory of an input stays for another size; false where it is not of that kind.
  bool resize_own(runtime::Slot& slot, const Shape& shape, std::size_t index) const;
  /// True where an executable's outputs take what is bound to the context's in place.
  bool fits_outputs(const runtime::ExecutableSet::Entry& entry) const;
  bool fits_output(const runtime::ExecutableSet::Entry& entry, std::size_t index,
                   const runtime::Slot& slot) const;
  /// As use(); where a static form is not to be had, or does not fit, with the open one.
  Status use_or_open(runtime::ExecutableSet::Entry entry, std::vector<Shape> shapes);
  /// Makes `shapes` (some may be open) current.
  Status reshape(std::vector<Shape> shapes);
  /// The generation of the executables that the context knows.
  std::uint64_t face_generation() const;
  /// Whether the tensors of now can become a face.
  bool has_face() const;
  /// Back to shapes whose face is kept; false where none is, and for none but a list of shapes.
  bool turn_to(const std::vector<Shape>& shapes);
  /// As reshape(), of which turn_to() has nothing; keeps the face of now.
  Status leave_for(const std::vector<Shape>& shapes);
  void publish();
  TensorDesc input_desc(std::size_t index) const;
  TensorDesc output_desc(std::size_t index) const;
  /// The type in output_desc(), without making its texts: asked for in every run.
  DType output_dtype(std::size_t index) const;

  // context_bind.cpp: slots to the device. All need the call lock.
  Status apply_input(std::size_t index);
  Status apply_output(std::size_t index);
  /// Replaces a slot and applies it; the old one is restored when that fails.
  template <class Apply>
  Status exchange(runtime::Slot& place, runtime::Slot slot, const Apply& apply);
  Status take_shape(std::size_t index, const Shape& shape);
  /// Other memory for a slot whose form stays.
  template <class Apply>
  Status redirect(runtime::Slot& place, void* data, const Apply& apply);
  // bind_input() and bind_output() in a call that has the lock.
  Status bind_input_view(std::size_t index, const TensorView& view, const ConvertOptions& convert);
  Status bind_output_view(std::size_t index, const MutableTensorView& view);
  void forget_from(std::size_t input, std::size_t output) noexcept;
  Status put_input(std::size_t index, runtime::Slot slot);
  Status put_output(std::size_t index, runtime::Slot slot);
  Result<device::TensorRef> own_input(std::size_t index);
  /// Recomputes `converts_`, `user_memory_` and `ready_` from the slots.
  void refresh();

  // State on the device: context_bind.cpp, and begin_states() and its parts in context_run.cpp.
  /// Once, when the slots are there.
  void init_states();
  /// What a slot is where its user gives nothing.
  runtime::Slot free_input(std::size_t index) const;
  runtime::Slot free_output(std::size_t index) const;
  /// Binds what a run reads and writes of the state; nothing where it uses none.
  Status begin_states(const RunOptions& options, runtime::StateTurn& turn);
  /// The slices of the options, checked.
  Result<std::vector<runtime::StateStore::Slice>> state_slices(
      const RunOptions& options, std::span<const runtime::StateStore::Use> uses) const;
  Result<runtime::StateStore::Slice> state_slice(
      const StateSlice& given, std::span<const runtime::StateStore::Use> uses) const;
  Result<runtime::StateStore::Use> state_use(const runtime::KeptStates::Link& link) const;
  /// True where the device cannot write it to the state's memory: the shape is known only after the
  /// run.
  bool is_open_output(std::size_t index) const;
  /// Adds the outputs of begin_states() that are copied to the state after the run.
  void add_state_copies(const runtime::StateTurn& turn,
                        std::vector<runtime::OutputCopy>& copies) const;
  Status check_state(std::size_t index) const;
  /// The same, and that it has that many bytes, of a shape that is chosen.
  Status check_state(std::size_t index, std::size_t bytes) const;

  // context_run.cpp
  Status not_ready() const;
  /// Prepares for shapes that are all chosen; fails where they are not, or are refused.
  Status make_ready();
  /// It begins now; stamps both ends where an input is converted.
  Status copy_in(TimePoint begin);
  /// The stamps of the last run, as far as it got.
  RunStamps last_stamps() const;
  std::vector<runtime::OutputCopy> output_copies(const runtime::StateTurn& turn) const;
  const device::CoreSet& cores_of(const RunOptions& options) const;
  device::Submission submission(const RunOptions& options, TimePoint now) const;
  /// True when `job`, once abandoned, would go on using memory of the caller.
  bool reaches_outside(const device::Submission& job) const;
  Status enter_activation(const RunOptions& options, device::Submission& job, ActivationRun& run);
  Status run_plainly(const RunOptions& options);
  Status run_slowly(const RunOptions& options, runtime::StateTurn& states);

  std::shared_ptr<ProgramState> program_;
  std::shared_ptr<ActivationState> activation_;
  mutable std::atomic<bool> in_call_{false};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<TensorDesc> published_inputs_ CORELANE_GUARDED_BY(mutex_);
  std::vector<TensorDesc> published_outputs_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Shape> shapes_;
  runtime::ExecutableSet::Entry entry_;
  std::shared_ptr<device::Bindings> bindings_;

  std::vector<runtime::Slot> inputs_;
  std::vector<runtime::Slot> outputs_;
  bool ready_ = false;        ///< Every shape is chosen and every tensor has its memory.
  bool converts_ = false;     ///< Some slot is in mode kConverted.
  bool user_memory_ = false;  ///< The device sees memory that its user may free.
  runtime::FormBindings forms_;
  runtime::KeptStates states_;
  static constexpr auto kLookAgain = ~std::uint64_t{0};
  static constexpr std::uint32_t kRunsToFollow = 64;
  /// The change of the program's executables that it has followed last.
  struct Followed {
    std::uint64_t generation = 0;  ///< Of ExecutableSet::generation().
    /// Runs until the change is tried again for which there was no memory; 0: there was.
    std::uint32_t again_in = 0;
  };
  Followed followed_;
  /// There is a static form for its shapes, and what is bound to an output does not fit that.
  bool form_misfits_ = false;
  /// Where the program's engines are timed: it runs on what the program prepared first.
  bool on_first_entry_ = false;
  std::uint32_t runs_since_look_ = 0;  ///< See kRunsPerLook.
  device::Submission job_;             ///< The part of a submission that does not change.

  struct LastJob {
    /// While it is not taken over: it was submitted, or has not released its memory and there are
    /// no new bindings yet.
    std::shared_ptr<device::Completion> job;
    std::shared_ptr<runtime::OutputConversion> conversion;
    bool outside = false;  ///< It uses memory of the caller without a shield.
  };
  LastJob last_;
  bool has_result_ = false;
  device::JobRecord record_;
  RunStamps stamps_;
};

}  // namespace corelane
