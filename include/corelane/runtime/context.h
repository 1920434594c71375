/// A context: the tensors and settings of inferences that run one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "corelane/device/figures.h"
#include "corelane/runtime/run_times.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/desc.h"

namespace corelane {

namespace device {
class Buffer;
class Fence;
}  // namespace device

struct ContextState;
struct InferenceState;

/// A value that a program keeps from one run to the next (`corelane compile --state`): what a run
/// writes to the output, the next one reads from the input.
struct KeptState {
  std::string input;
  std::string output;
  std::size_t input_index = 0;
  std::size_t output_index = 0;
  TensorDesc desc;  ///< Of the input, with the shape of now; may have open dimensions.
  /// Whether the next run takes it from the device, and leaves it there. False: the user has bound
  /// or set that one.
  bool input_kept = true;
  bool output_kept = true;
};

/// A part of a state that a run writes before it reads the state; the rest stays as it was.
struct StateSlice {
  std::size_t input = 0;            ///< The state's input, by its position.
  std::vector<std::int64_t> start;  ///< Where it begins, one for each dimension.
  Shape extent;                     ///< How many elements of each dimension; static.
  ByteSpan bytes;                   ///< Dense, in the state's element type; read by the call.
};

/// What a context does with what its user does not bind.
struct ContextOptions {
  /// The program's states (ProgramDescription::states) stay with the context from run to run.
  /// False: their inputs and outputs are ordinary ones, for users that bring and take the values.
  bool keep_states = true;
};

/// How one inference runs. The defaults: the program's cores, no deadline, no fences.
struct RunOptions {
  /// Default: any core; a program's own wish is applied to "any". Of a context that an Activation
  /// made: of its cores.
  device::CoreSet cores;
  Duration timeout{0};  ///< 0: none. Else the deadline is now + timeout.
  /// A point of the device's clock: until then, or the deadline, a submission waits for room where
  /// the device's line is full (DeviceInfo::depth_limit), and then fails with kBusy. One that has
  /// passed, the default: it does not wait. Not in a callback of the device or a set.
  TimePoint room_until{};
  std::int32_t priority = 0;  ///< -128..127, higher first.
  std::vector<std::shared_ptr<device::Fence>> wait;
  std::vector<std::shared_ptr<device::Fence>> signal;
  std::uint64_t tag = 0;
  bool direct_user_memory = false;  ///< See device::Submission.
  /// For submit(): its caller waits next, and an inference of some microseconds may run in the
  /// calling thread before submit() returns (device::Submission). run() always lets it.
  bool here_if_brief = false;
  /// For submit(): its caller is a callback of another inference on the device that returns soon
  /// and waits for nothing, so that its thread may run this one next (device::Submission).
  bool from_callback = false;
  /// For submit(): what its completion calls returns soon and waits for no job
  /// (device::Submission). Ignored where outputs are converted then, and in a turn group, where the
  /// inferences of others are begun then.
  bool brief_callbacks = false;
  /// Ends the wait for room (device::Submission).
  std::shared_ptr<const std::atomic<bool>> give_up;
  /// Written in this order. A run that fails takes them back. kNotFound (an input that is no
  /// state), kWrongState (one that is bound), kOutOfRange, kInvalidArgument (the size).
  std::vector<StateSlice> state_slices;
};

/// One submitted inference. Dropping it does not cancel the work.
class CORELANE_API Inference {
 public:
  /// True once the result, or the failure, is there. Any thread.
  bool done() const noexcept;
  /// Waits for the result (until `until`); kTimeout when the time came first and the work goes on.
  Status wait(TimePoint until = kNever);
  /// Runs it in the calling thread where nothing has begun to run it and it has no timeout; then it
  /// is done. False where it does not run it. Does not wait.
  bool run_here();
  /// Waits until the device has released the bound memory; false when `until` came first.
  bool wait_released(TimePoint until = kNever);
  /// True when it was removed before it started; it then completes with kCancelled.
  bool cancel();
  /// Called once when done, in the completing thread (outputs are already converted).
  void on_done(std::function<void(const Status&)> f);
  /// When and where it ran; empty before it is done.
  device::JobRecord record() const;
  /// Where the time went; zeros before it is done.
  RunTimes times() const;
  /// When it got where; those of the outputs are there once it is done.
  RunStamps stamps() const;

 private:
  friend class Context;
  std::shared_ptr<InferenceState> state_;
};

/// The tensors of one inference of a program, and its runs. A cheap handle; a default-made one
/// stands for no context (kWrongState). One caller at a time, a second one gets kBusy.
///
/// When the device is lost, inferences end with kDeviceLost, and new ones fail so until it is back.
/// The next one then prepares the program again, which takes as long as its first load did.
class CORELANE_API Context {
 public:
  /// A context of the same program with tensors of its own; weights are shared.
  Result<Context> duplicate() const;

  /// Chooses the shapes of all inputs, by position: one of the program's sets, or any that the
  /// open dimensions accept. kShapeMismatch lists the allowed ones. Keeps memory that still fits;
  /// other bindings are dropped. Static programs accept their own shapes only.
  Status set_input_shapes(const std::vector<Shape>& shapes);
  /// Current shapes; open dimensions remain where nothing was chosen or bound.
  std::vector<TensorDesc> inputs() const;
  /// The same of the outputs; open dimensions remain where the result decides them.
  std::vector<TensorDesc> outputs() const;
  /// Position by name; kNotFound lists the names.
  Result<std::size_t> input_index(std::string_view name) const;
  /// The same of an output.
  Result<std::size_t> output_index(std::string_view name) const;

  /// Memory to read at each run. In the program's own form (desc dtype, plain layout, no
  /// quantization) the device reads it directly, without a copy; other dtypes, layouts or
  /// quantizations are converted at each run (with mean/std when `convert` says so). An input with
  /// open dimensions takes the view's shape; sizes of several inputs that do not go together fail
  /// at the run. The memory must stay valid until the inference is released. Errors: kOutOfRange,
  /// kShapeMismatch, kTypeMismatch, kInvalidArgument (size).
  Status bind_input(std::size_t index, const TensorView& view, const ConvertOptions& convert = {});
  /// Memory to write at each successful run, same rules.
  Status bind_output(std::size_t index, const MutableTensorView& view);
  /// Device memory, in the program's own form; the context holds the buffer.
  Status bind_input(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                    std::size_t offset = 0);
  /// The same for an output. kOutOfRange when the offset lies past the buffer.
  Status bind_output(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                     std::size_t offset = 0);
  /// set_input_shapes(), and the functions above for all inputs and as many outputs as are given,
  /// in one call: to return to shapes, of a program with a list of them, costs a part of what the
  /// single calls do. Errors as theirs, and kInvalidArgument (not one view for each input); tensors
  /// before the one that failed are bound.
  Status bind_all(const std::vector<Shape>& shapes, std::span<const TensorView> inputs,
                  std::span<const MutableTensorView> outputs);
  /// Copies (converting as needed) into the context's own input memory now.
  Status set_input(std::size_t index, const TensorView& view, const ConvertOptions& convert = {});
  /// Back to the context's own memory. kOutOfRange.
  Status unbind_input(std::size_t index);
  /// Back to the context's own memory. kOutOfRange.
  Status unbind_output(std::size_t index);

  /// The context's own input memory (allocated at first use) or what is bound, to be filled. Valid
  /// until the input is rebound, its shape changes, an inference is abandoned, or the program is
  /// prepared again after a loss of the device (then the content is kept, the place is not).
  Result<MutableTensorView> input(std::size_t index);
  /// The result of the last successful run in the program's own form, or as bound. Valid until the
  /// next run or rebinding.
  Result<TensorView> output(std::size_t index) const;

  /// State on the device (KeptState), in the order of the program.
  ///
  /// It belongs to the context's activation, whose contexts share it, or to the context where it is
  /// of none; a duplicate of such a context has its own. Zeros at first. An input that is state and
  /// was never bound or set is what the last run left; an output that is not bound stays for the
  /// next. After a failed run the state is what it was before. If the user binds the input, runs
  /// read that memory until unbind_input(); if the user binds the output, the new value goes to
  /// that memory and the kept state is unchanged. input() and set_input() of a state bind the
  /// context's own memory in the same way.
  ///
  /// While a run uses the state, other runs that do, and the functions below, get kBusy at once:
  /// runs of one activation follow each other. kBusy also while another call holds the context.
  Result<std::vector<KeptState>> states() const;
  /// Makes all of it zeros. The next run may have other shapes. kBusy.
  Status reset_states();
  /// The same of one. kOutOfRange.
  Status reset_state(std::size_t index);
  /// Sets one to the bytes, in the form of its desc; the next run may have other shapes.
  /// kOutOfRange, kInvalidArgument (the size), kWrongState (open dimensions), kBusy, kOutOfMemory.
  Status set_state(std::size_t index, ByteSpan bytes);
  /// Copies one out, as the last run that ended well left it. kOutOfRange, kInvalidArgument (the
  /// size), kWrongState (open dimensions), kShapeMismatch (kept in another shape), kBusy.
  Status copy_state(std::size_t index, MutableByteSpan to) const;

  /// Runs and waits. In the calling thread when the core is idle and there is no timeout, or the
  /// inference takes some microseconds only.
  Status run(const RunOptions& options = {});
  /// Submits and returns. kBusy while an earlier inference of this context is not done, or was
  /// abandoned and still holds memory of its caller (bound without a deadline, with
  /// direct_user_memory, or an output buffer). Inputs that are converted are read now: with `wait`
  /// fences they are refused with kUnsupported.
  Result<Inference> submit(const RunOptions& options = {});

  /// When and where the last run ran; empty before it.
  device::JobRecord record() const;
  /// Where the time of the last run went.
  RunTimes times() const;
  /// When the last run got where.
  RunStamps stamps() const;
  /// Time of each layer in the last run. kUnsupported without LoadOptions::profile_layers.
  Result<std::vector<device::LayerTime>> layer_times() const;
  /// Bytes that this context holds: its share of activations, and its buffers.
  device::MemoryFigures memory() const;

 private:
  friend class Program;
  friend class Activation;
  /// The state, or the one that stands for no context and refuses every call.
  ContextState& state() const noexcept;
  std::shared_ptr<ContextState> state_;
};

}  // namespace corelane
