#include <fmt/format.h>

#include <algorithm>

#include "base/guard.h"
#include "base/later.h"
#include "base/reserve.h"
#include "device/fence_list.h"
#include "runtime/activation/activation_state.h"
#include "runtime/context/context_state.h"
#include "runtime/context/inference_state.h"
#include "runtime/program/program_state.h"
#include "runtime/program/shape_choice.h"

namespace corelane {

using runtime::OutputConversion;
using runtime::OutputCopy;
using runtime::Slot;
using runtime::SlotMode;
using runtime::StateStore;

namespace {

TimePoint deadline_of(const RunOptions& options, TimePoint now) {
  return options.timeout == Duration{0} ? kNever : later(now, options.timeout);
}

/// The options that this thread acts on itself; the queue checks the rest. Fences are its own where
/// it `converts`: it waits before it reads, and signals after it has written.
Status check_options(const RunOptions& options, bool converts) {
  if (options.timeout < Duration{0}) {
    return error(Code::kInvalidArgument, "the timeout is {} ns; 0 means none",
                 options.timeout.count());
  }
  if (!converts) return {};
  CORELANE_TRY(device::check_fences(options.wait, "wait"));
  return device::check_fences(options.signal, "signal");
}

/// The fences a job waits for before memory it depends on is read in this thread.
Status wait_for(const std::vector<std::shared_ptr<device::Fence>>& fences, TimePoint until) {
  for (const auto& fence : fences) {
    if (!fence->wait(until))
      return error(Code::kTimeout, "the deadline passed while waiting for a fence");
    CORELANE_TRY(fence->status().wrap("a fence to wait for was signalled as failed"));
  }
  return {};
}

void signal_all(const std::vector<std::shared_ptr<device::Fence>>& fences, const Status& status) {
  for (const auto& fence : fences) fence->signal(status);
}

}  // namespace

Status Context::run(const RunOptions& options) {
  return no_throw("a run", [&] { return state().run(options); });
}

Result<Inference> Context::submit(const RunOptions& options) {
  return no_throw("a run", [&]() -> Result<Inference> {
    Inference inference;
    CORELANE_ASSIGN(inference.state_, state().submit(state_, options));
    return inference;
  });
}

device::JobRecord Context::record() const { return state().record(); }

RunTimes Context::times() const { return state().times(); }

RunStamps Context::stamps() const { return state().stamps(); }

Result<std::vector<device::LayerTime>> Context::layer_times() const {
  return state().layer_times();
}

Status ContextState::not_ready() const {
  return error(Code::kWrongState,
               "program '{}' cannot run while input dimensions are open; call set_input_shapes or "
               "bind every input, allowed: {}",
               program_->description.name, runtime::allowed_shapes(program_->description));
}

/// Sizes that did not go together when they were bound may do so now.
Status ContextState::make_ready() {
  if (entry_.executable != nullptr || !runtime::all_static(shapes_)) return not_ready();
  return reshape(shapes_);
}

/// The program's own wish applies where a run asks for "any".
const device::CoreSet& ContextState::cores_of(const RunOptions& options) const {
  return options.cores == device::CoreSet() ? program_->default_cores : options.cores;
}

/// Only what changes from run to run is set; the rest is in `job_`.
device::Submission ContextState::submission(const RunOptions& options, TimePoint now) const {
  device::Submission job = job_;
  job.cores = cores_of(options);
  job.deadline = deadline_of(options, now);
  job.room_until = options.room_until;
  job.priority = options.priority;
  job.tag = options.tag;
  job.wait = options.wait;
  job.signal = options.signal;
  job.here_if_brief = options.here_if_brief;
  job.from_callback = options.from_callback;
  job.brief_callbacks = options.brief_callbacks;
  job.give_up = options.give_up;
  // The context's own memory lives as long as the job, so an abandoned job may go on using it. The
  // device shields memory of the caller, unless the caller opted out.
  job.direct_user_memory = options.direct_user_memory || !user_memory_;
  return job;
}

/// Buffers count too: the device writes them without a copy in between.
bool ContextState::reaches_outside(const device::Submission& job) const {
  const bool shielded = job.deadline != kNever && !job.direct_user_memory;
  if (user_memory_ && !shielded) return true;
  return std::any_of(outputs_.begin(), outputs_.end(), [](const Slot& slot) {
    return slot.mode == SlotMode::kBuffer;  // Device memory is never shielded.
  });
}

/// Into own memory, which nothing else uses: no job is pending.
Status ContextState::copy_in(TimePoint begin) {
  bool any = false;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = inputs_[i];
    if (slot.mode != SlotMode::kConverted) continue;
    any = true;
    CORELANE_ASSIGN(const device::TensorRef own, own_input(i));
    const MutableTensorView to{own.data,  own.size, entry_.executable->inputs()[i].dtype,
                               own.shape, {},       {}};
    if (const Status status = convert(slot.view, to, slot.convert); !status.ok())
      return status.wrap(fmt::format("input '{}'", input_desc(i).name));
  }
  if (!any) return {};
  stamps_.copy_in = begin;
  stamps_.copied_in = program_->device->clock()->now();
  return {};
}

/// By value: the slots may change before an abandoned job ends.
std::vector<OutputCopy> ContextState::output_copies(const runtime::StateTurn& turn) const {
  std::vector<OutputCopy> copies;
  add_state_copies(turn, copies);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Slot& slot = outputs_[i];
    if (slot.mode != SlotMode::kConverted) continue;
    copies.push_back({i, output_desc(i), slot.view, slot.buffer});
  }
  return copies;
}

Result<StateStore::Use> ContextState::state_use(const runtime::KeptStates::Link& link) const {
  StateStore::Use use;
  use.reads = inputs_[link.input].mode == SlotMode::kKept;
  use.writes = outputs_[link.output].mode == SlotMode::kKept;
  if (!use.reads && !use.writes) return use;
  const TensorDesc& in = entry_.executable->inputs()[link.input];
  const TensorDesc& out = entry_.executable->outputs()[link.output];
  use.shape = shapes_[link.input];
  CORELANE_ASSIGN(use.bytes, storage_bytes(use.shape, in.dtype, {}));
  if (in.dtype == out.dtype && (out.shape == use.shape || out.shape.accepts(use.shape))) return use;
  return error(Code::kShapeMismatch,
               "state '{}={}' is {} {} in these shapes, and the output {} {}; a state keeps its "
               "form, so choose other shapes, or bind both",
               output_desc(link.output).name, input_desc(link.input).name, dtype_name(in.dtype),
               use.shape.to_string(), dtype_name(out.dtype), out.shape.to_string());
}

Result<StateStore::Slice> ContextState::state_slice(const StateSlice& given,
                                                    std::span<const StateStore::Use> uses) const {
  const auto link =
      std::ranges::find(states_.links, given.input, &runtime::KeptStates::Link::input);
  if (given.input >= inputs_.size() || link == states_.links.end())
    return error(Code::kNotFound,
                 "a slice of input {} of program '{}', which is not a state; states are declared "
                 "by compile --state",
                 given.input, program_->description.name);
  const auto index = static_cast<std::size_t>(link - states_.links.begin());
  const TensorDesc desc = input_desc(given.input);
  if (!uses[index].reads)
    return error(Code::kWrongState,
                 "a slice of state '{}', whose input is bound for the next runs; unbind it first",
                 desc.name);
  const std::size_t bits = dtype_bits(desc.dtype);
  if (bits % 8 != 0)
    return error(Code::kUnsupported,
                 "a slice of state '{}' of {}, whose elements share bytes; set it whole", desc.name,
                 dtype_name(desc.dtype));
  StateStore::Slice slice{
      index, {uses[index].shape, given.start, given.extent, bits / 8}, given.bytes};
  if (const Status fits = slice.box.check(); !fits.ok())
    return error(fits.wrap(fmt::format("a slice of state '{}'", desc.name)));
  if (slice.box.bytes() == given.bytes.size()) return slice;
  return error(Code::kInvalidArgument, "a slice {} of state '{}' has {} bytes, {} are given",
               given.extent.to_string(), desc.name, slice.box.bytes(), given.bytes.size());
}

Result<std::vector<StateStore::Slice>> ContextState::state_slices(
    const RunOptions& options, std::span<const StateStore::Use> uses) const {
  std::vector<StateStore::Slice> slices;
  for (const StateSlice& given : options.state_slices) {
    CORELANE_ASSIGN(StateStore::Slice slice, state_slice(given, uses));
    slices.push_back(std::move(slice));
  }
  return slices;
}

Status ContextState::begin_states(const RunOptions& options, runtime::StateTurn& turn) {
  std::vector<StateStore::Use> uses;
  for (const auto& link : states_.links) {
    CORELANE_ASSIGN(StateStore::Use use, state_use(link));
    uses.push_back(std::move(use));
  }
  CORELANE_ASSIGN(const auto slices, state_slices(options, uses));
  CORELANE_ASSIGN(turn, runtime::StateTurn::begin(states_.store, uses, slices));
  for (std::size_t i = 0; i < states_.links.size(); ++i) {
    const auto& [input, output] = states_.links[i];
    const StateStore::Memory& memory = turn.memory()[i];
    if (uses[i].reads) CORELANE_TRY(bindings_->set_input(input, memory.from));
    if (uses[i].writes && !is_open_output(output))
      CORELANE_TRY(bindings_->set_output(output, memory.to));
  }
  return {};
}

void ContextState::add_state_copies(const runtime::StateTurn& turn,
                                    std::vector<runtime::OutputCopy>& copies) const {
  for (std::size_t i = 0; i < turn.memory().size(); ++i) {
    const std::size_t output = states_.links[i].output;
    if (!is_open_output(output)) continue;
    const device::TensorRef& to = turn.memory()[i].to;
    const DType dtype = output_dtype(output);
    copies.push_back(
        {output, output_desc(output), {to.data, to.size, dtype, to.shape, {}, {}}, to.keep_alive});
  }
}

/// Without conversions, fences or a deadline, and not on an activation's cores.
bool ContextState::is_plain(const RunOptions& options) const {
  return !converts_ && activation_ == nullptr && options.timeout == Duration{0} &&
         options.wait.empty() && options.signal.empty();
}

bool ContextState::is_settled(const RunOptions& options) const {
  return !entry_.executable->lost() && !program_->executables->may_change() && !states_.used &&
         options.state_slices.empty();
}

Status ContextState::settle_executable(const RunOptions& options, runtime::StateTurn& turn) {
  if (entry_.executable->lost()) CORELANE_TRY(renew());
  const bool may_change = program_->executables->may_change();
  const bool retries = followed_.again_in > 0 && --followed_.again_in == 0;
  if (may_change && (retries || followed_.generation != program_->executables->generation()))
    CORELANE_TRY(follow_change());
  if (states_.used || !options.state_slices.empty()) CORELANE_TRY(begin_states(options, turn));
  if (may_change) note_run(options);
  return {};
}

/// Nothing is allocated, copied or locked here.
inline Status ContextState::run_plainly(const RunOptions& options) {
  has_result_ = false;
  job_.cores = cores_of(options);
  job_.priority = options.priority;
  job_.tag = options.tag;
  job_.room_until = options.room_until;
  stamps_ = {};
  // The call lock is held, so `job_` and `record_` are this call's.
  Status status = program_->queue->run(job_, &record_);
  has_result_ = status.ok();
  return status;
}

Status ContextState::run(const RunOptions& options) {
  const CallLock call(*this);
  if (!call) return busy();
  if (last_.job != nullptr) CORELANE_TRY(take_pending());
  if (!ready_) CORELANE_TRY(make_ready());
  if (is_settled(options) && is_plain(options)) return run_plainly(options);
  runtime::StateTurn states;
  CORELANE_TRY(settle_executable(options, states));
  if (!is_plain(options)) return run_slowly(options, states);
  Status status = run_plainly(options);
  states.end(has_result_);
  return status;
}

/// A context of an activation.
Status ContextState::enter_activation(const RunOptions& options, device::Submission& job,
                                      ActivationRun& run) {
  record_ = {};  // A refused job must leave no record of an earlier one.
  CORELANE_ASSIGN(run, ActivationRun::begin(activation_, options.cores, job));
  return {};
}

/// With conversions, fences or a deadline, or on an activation's cores. The call lock is held
/// throughout: a second caller gets kBusy and does not wait.
Status ContextState::run_slowly(const RunOptions& options, runtime::StateTurn& states) {
  has_result_ = false;
  CORELANE_TRY(check_options(options, converts_));
  const std::shared_ptr<Clock>& clock = program_->device->clock();
  stamps_ = {};
  stamps_.enqueued = clock->now();
  device::Submission job = submission(options, stamps_.enqueued);
  if (converts_) {
    Status prepared = wait_for(job.wait, job.deadline);
    const TimePoint begin = job.wait.empty() ? stamps_.enqueued : clock->now();
    job.wait.clear();
    if (prepared.ok()) prepared = copy_in(begin);
    if (!prepared.ok()) {
      // As the device does for a job that fails, so that no waiter is left behind.
      signal_all(job.signal, prepared);
      return prepared;
    }
  }
  const std::vector<OutputCopy> copies = output_copies(states);
  std::vector<std::shared_ptr<device::Fence>> signal;
  if (!copies.empty()) signal.swap(job.signal);  // Signalled when the outputs are there.

  ActivationRun turn;
  if (activation_ != nullptr) CORELANE_TRY(enter_activation(options, job, turn));
  Status status;
  if (job.deadline == kNever) {
    status = program_->queue->run(job, &record_);
  } else {
    job.here_if_brief = true;
    CORELANE_ASSIGN(const auto completion, program_->queue->submit(job));
    if (!completion->wait())
      return error(Code::kInternal, "a wait without a time limit returned before the job was done");
    status = completion->status();
    record_ = completion->record();
    // An abandoned job holds its memory until the engine returns.
    if (!completion->released()) {
      last_.job = completion;
      last_.outside = reaches_outside(job);
      states.submitted(completion, nullptr);
    }
  }
  turn.end(record_);
  if (status.ok() && !copies.empty()) {
    stamps_.copy_out = clock->now();
    status = runtime::copy_out(*bindings_, copies);
    stamps_.copied_out = clock->now();
  }
  has_result_ = status.ok();
  states.end(has_result_);
  signal_all(signal, status);
  return status;
}

/// What must be read before the job starts is read here, in the caller's thread; outputs are
/// converted in the thread that completes the job.
Result<std::shared_ptr<InferenceState>> ContextState::submit(std::shared_ptr<ContextState> self,
                                                             const RunOptions& options) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  if (!ready_) CORELANE_TRY(make_ready());
  runtime::StateTurn states;
  if (!is_settled(options)) CORELANE_TRY(settle_executable(options, states));
  CORELANE_TRY(check_options(options, converts_));
  const std::shared_ptr<Clock>& clock = program_->device->clock();
  auto inference = std::make_shared<InferenceState>();
  stamps_ = {};
  stamps_.enqueued = clock->now();
  device::Submission job = submission(options, stamps_.enqueued);
  has_result_ = false;
  if (converts_) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (job.wait.empty() || inputs_[i].mode != SlotMode::kConverted) continue;
      return error(
          Code::kUnsupported,
          "input '{}' is converted when the inference is submitted, so it cannot wait for a "
          "fence; bind it in the program's own form ({}), or use run()",
          input_desc(i).name, input_desc(i).to_string());
    }
    CORELANE_TRY(copy_in(stamps_.enqueued));
    if (std::vector<OutputCopy> copies = output_copies(states); !copies.empty()) {
      inference->conversion = std::make_shared<OutputConversion>(
          clock, bindings_, std::move(copies), std::move(job.signal));
      job.signal.clear();
      job.brief_callbacks = false;  // Conversions take their time.
    }
  }
  ActivationRun turn;
  if (activation_ != nullptr) CORELANE_TRY(enter_activation(options, job, turn));
  CORELANE_ASSIGN(inference->completion, program_->queue->submit(job));
  // From here on the job runs: nothing below may fail.
  last_.outside = reaches_outside(job);
  inference->stamps = stamps_;
  last_.job = inference->completion;
  last_.conversion = inference->conversion;
  states.submitted(last_.job, last_.conversion);
  inference->context = std::move(self);
  // Before the callbacks of users, which may submit again.
  if (activation_ != nullptr) inference->run_end = std::move(turn).end_with(*inference->completion);
  if (inference->conversion != nullptr) {
    inference->completion->on_done(sure_once<void(device::Completion&)>(
        [conversion = inference->conversion, end = inference->run_end](device::Completion& c) {
          runtime::end_run(end, c);
          conversion->run(c);
        }));
  }
  return inference;
}

/// The record of the pending job as far as it got; empty while another call holds the context.
device::JobRecord ContextState::record() const {
  const CallLock call(*this);
  if (!call) return {};
  return last_.job != nullptr ? last_.job->record() : record_;
}

RunStamps ContextState::last_stamps() const {
  return runtime::stamps_of(stamps_, last_.conversion.get());
}

RunTimes ContextState::times() const {
  const CallLock call(*this);
  if (!call) return {};
  return runtime::run_times(last_.job != nullptr ? last_.job->record() : record_, last_stamps());
}

RunStamps ContextState::stamps() const {
  const CallLock call(*this);
  return call ? last_stamps() : RunStamps{};
}

Result<std::vector<device::LayerTime>> ContextState::layer_times() {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  if (bindings_ == nullptr) return error(not_ready());
  return bindings_->layer_times();
}

}  // namespace corelane
