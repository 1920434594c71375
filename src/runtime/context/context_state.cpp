#include "runtime/context/context_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/guard.h"
#include "base/leaked.h"
#include "corelane/base/log.h"
#include "runtime/activation/activation_state.h"
#include "runtime/context/inference_state.h"
#include "runtime/program/program_state.h"
#include "runtime/program/shape_choice.h"

namespace corelane {
namespace {

Result<std::size_t> index_of(const std::vector<TensorDesc>& descs, std::string_view name,
                             std::string_view what) {
  std::string names;
  for (std::size_t i = 0; i < descs.size(); ++i) {
    if (descs[i].name == name) return i;
    names += (i == 0 ? "'" : ", '") + descs[i].name + "'";
  }
  return error(Code::kNotFound, "there is no {} '{}'; the program has {}", what, name,
               names.empty() ? "none" : names);
}

/// The context's share of the memory of an executable that it uses; `entry` is the caller's copy.
device::MemoryFigures share_of(const runtime::ExecutableSet::Entry& entry) {
  device::MemoryFigures figures = entry.executable->memory();
  // The set holds one reference, `entry` a second; the rest are contexts, all alike.
  const auto contexts = static_cast<std::size_t>(std::max(1L, entry.users.use_count() - 2));
  figures.internal /= contexts;
  figures.buffers /= contexts;
  return figures;
}

}  // namespace

ContextState& Context::state() const noexcept {
  return state_ == nullptr ? ContextState::none() : *state_;
}

Result<Context> Context::duplicate() const {
  Context copy;
  CORELANE_ASSIGN(copy.state_, state().duplicate());
  return copy;
}

Status Context::set_input_shapes(const std::vector<Shape>& shapes) {
  return no_throw("setting shapes", [&] { return state().set_input_shapes(shapes); });
}

std::vector<TensorDesc> Context::inputs() const { return state().input_descs(); }

std::vector<TensorDesc> Context::outputs() const { return state().output_descs(); }

Result<std::size_t> Context::input_index(std::string_view name) const {
  return index_of(inputs(), name, "input");
}

Result<std::size_t> Context::output_index(std::string_view name) const {
  return index_of(outputs(), name, "output");
}

device::MemoryFigures Context::memory() const { return state().memory(); }

ContextState& ContextState::none() noexcept {
  static Leaked<ContextState> none;
  none->in_call_.store(true, std::memory_order_relaxed);
  return *none;
}

/// Prepares nothing: the program has its first executable since it was loaded.
Result<std::shared_ptr<ContextState>> ContextState::create(
    std::shared_ptr<ProgramState> program, std::shared_ptr<ActivationState> activation,
    const ContextOptions& options) {
  auto state = std::make_shared<ContextState>();
  state->program_ = std::move(program);
  state->activation_ = std::move(activation);
  const ProgramDescription& description = state->program_->description;
  state->inputs_.resize(description.inputs.size());
  state->outputs_.resize(description.outputs.size());
  if (options.keep_states) state->init_states();
  runtime::ExecutableSet::Entry first = state->program_->executables->first();
  std::vector<Shape> shapes =
      first.executable == nullptr ? runtime::declared_shapes(description) : first.shapes;
  CORELANE_TRY(state->use(std::move(first), std::move(shapes)));
  return state;
}

/// The copy has the shapes, not the bindings; it does not wait for a run of the original.
Result<std::shared_ptr<ContextState>> ContextState::duplicate() const {
  if (program_ == nullptr) return error(busy());
  auto copy = std::make_shared<ContextState>();
  copy->program_ = program_;
  copy->activation_ = activation_;
  copy->inputs_.resize(program_->description.inputs.size());
  copy->outputs_.resize(program_->description.outputs.size());
  if (!states_.links.empty()) copy->init_states();
  runtime::ExecutableSet::Entry entry;
  std::vector<Shape> shapes;
  {
    const MutexLock lock(mutex_);
    entry = entry_;
    shapes = shapes_;
  }
  CORELANE_TRY(copy->use(std::move(entry), std::move(shapes)));
  return copy;
}

Status ContextState::busy() const {
  if (program_ == nullptr)
    return error(Code::kWrongState, "this context was never made; use Program::new_context");
  return error(Code::kBusy,
               "the context of program '{}' is in use by another call; give each thread a context "
               "of its own (duplicate)",
               program_->description.name);
}

Status ContextState::enter(const CallLock& call) { return call ? take_pending() : busy(); }

/// A job that was abandoned keeps its bindings, so new ones are made for the next run. Where that
/// fails, because the device is still lost, the job stays and the next call tries again.
Status ContextState::take_pending() {
  if (last_.job == nullptr) return {};
  const bool done =
      last_.job->done() && (last_.conversion == nullptr || last_.conversion->finished());
  const bool released = done && last_.job->released();
  if (!done || (!released && last_.outside)) {
    return error(Code::kBusy,
                 "an earlier inference of this context of program '{}' {}; wait for it "
                 "({}), or use another context",
                 program_->description.name,
                 done ? "was abandoned and still holds memory of its caller" : "is not done",
                 done ? "wait_released" : "wait");
  }
  record_ = last_.job->record();
  const Status status =
      last_.conversion != nullptr ? last_.conversion->status() : last_.job->status();
  has_result_ = status.ok();
  stamps_ = runtime::stamps_of(stamps_, last_.conversion.get());
  if (!released) CORELANE_TRY(entry_.executable->lost() ? renew() : use(entry_, shapes_, true));
  last_ = {};
  return {};
}

/// Makes an executable current. New bindings come first, since they may fail; from then on the
/// context changes, and it is ready only when every slot is applied.
Status ContextState::use(runtime::ExecutableSet::Entry entry, std::vector<Shape> shapes,
                         bool fresh) {
  const bool changed = fresh || entry.executable != entry_.executable || bindings_ == nullptr;
  std::shared_ptr<device::Bindings> bindings = bindings_;
  if (changed) {
    // The macro is two statements.
    CORELANE_ASSIGN(bindings, bindings_for(entry.executable, fresh));
  }
  const bool keep = changed && !fresh && release_buffers();
  // New bindings have memory of their own, so what the context's inputs hold is copied over, where
  // the shape stays; `before` keeps the old memory until then.
  const std::shared_ptr<device::Bindings> before = bindings_;
  std::vector<device::TensorRef> kept(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size() && i < shapes_.size(); ++i) {
    runtime::Slot& slot = inputs_[i];
    const bool same = shapes_[i] == shapes[i];
    if (same && slot.mode == runtime::SlotMode::kOwn) kept[i] = slot.own;
    if (!same && slot.given()) slot = free_input(i);
    // Bindings of a static executable have memory of their own; content moves there from `kept`.
    const bool theirs = entry.executable != nullptr && inputs_in_bindings(*entry.executable, i);
    if (!same && !fresh && resize_own(slot, shapes[i], i)) continue;
    if (!same || fresh || (changed && (theirs || !slot.foreign_own))) {
      slot.own = {};
      slot.foreign_own = false;
    }
  }
  {
    // The earlier values are freed after the lock: they may hold the last reference to an
    // executable.
    const MutexLock lock(mutex_);
    std::swap(entry_, entry);
    std::swap(shapes_, shapes);
    std::swap(bindings_, bindings);
  }
  if (keep) forms_.keep(std::move(entry), std::move(bindings));
  if (program_->executables->trial() != nullptr)
    on_first_entry_ = entry_.shapes == program_->executables->first().shapes;
  has_result_ = false;
  forms_.use.reset();
  job_.executable = entry_.executable;
  job_.bindings = bindings_;
  job_.batch = runtime::samples_of(program_->description, shapes_);
  outputs_.resize(entry_.executable != nullptr ? entry_.executable->outputs().size()
                                               : program_->description.outputs.size());
  ready_ = false;  // Half applied bindings must not run.
  CORELANE_TRY(apply_all(kept));
  refresh();
  publish();
  return {};
}

bool ContextState::inputs_in_bindings(const device::Executable& executable,
                                      std::size_t index) const {
  // Of a program with forms by shape the bindings change with the form, while its user writes on.
  return executable.inputs()[index].shape.is_static() && !program_->executables->may_change();
}

Result<std::shared_ptr<device::Bindings>> ContextState::bindings_for(
    const std::shared_ptr<device::Executable>& executable, bool fresh) {
  if (executable == nullptr) return std::shared_ptr<device::Bindings>();
  if (!fresh)
    if (auto kept = forms_.take(executable.get())) return kept;
  // One that was lost joins once it is prepared again.
  if (activation_ != nullptr && !executable->lost()) CORELANE_TRY(activation_->admit(executable));
  return executable->new_bindings();
}

/// A buffer is held by the context, not by bindings that it may never use again.
bool ContextState::release_buffers() {
  // A program with a list of shapes goes from one to another, and back.
  const bool returns =
      program_->executables->forms() != nullptr || program_->description.shape_sets.size() > 1;
  if (bindings_ == nullptr || !returns) return false;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].buffer != nullptr && !bindings_->set_input(i, {}).ok()) return false;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].buffer != nullptr && !bindings_->set_output(i, {}).ok()) return false;
  return true;
}

/// Own memory of a batch range has room for its largest size.
bool ContextState::resize_own(runtime::Slot& slot, const Shape& shape, std::size_t index) const {
  if (!program_->executables->has_batch_forms() || !slot.foreign_own) return false;
  const DType dtype = program_->description.inputs[index].desc.dtype;
  const auto bytes = storage_bytes(shape, dtype, {});
  if (!bytes) return false;
  slot.own.shape = shape;
  slot.own.size = *bytes;
  return true;
}

bool ContextState::fits_output(const runtime::ExecutableSet::Entry& entry, std::size_t index,
                               const runtime::Slot& slot) const {
  if (!slot.in_place()) return true;
  const Shape& shape = entry.executable->outputs()[index].shape;
  return shape == slot.view.shape || shape.accepts(slot.view.shape);
}

bool ContextState::fits_outputs(const runtime::ExecutableSet::Entry& entry) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (!fits_output(entry, i, outputs_[i])) return false;
  return true;
}

/// A form may need cores that an activation does not get, and its outputs have one size: the open
/// one serves then too.
Status ContextState::use_or_open(runtime::ExecutableSet::Entry entry, std::vector<Shape> shapes) {
  const runtime::ExecutableSet& set = *program_->executables;
  form_misfits_ = false;
  if (set.forms() == nullptr || set.is_open_form(entry))
    return use(std::move(entry), std::move(shapes));
  form_misfits_ = set.hides_forms() && !fits_outputs(entry);
  if (!form_misfits_) {
    Status status = use(std::move(entry), shapes);
    if (status.ok()) return status;
    log::debug("runtime", "program '{}': a static form is not taken: {}",
               program_->description.name, status.to_string());
  }
  return use(set.first(), std::move(shapes));
}

Status ContextState::follow_change() {
  followed_.again_in = 0;
  followed_.generation = program_->executables->generation();
  CORELANE_ASSIGN(auto entry, program_->executables->for_shapes(shapes_));
  if (entry.executable == entry_.executable) {
    const MutexLock lock(mutex_);
    std::swap(entry_.users, entry.users);
  } else if (Status followed = use_or_open(std::move(entry), shapes_); !followed.ok()) {
    // Without bindings nothing has changed: the one in use serves on.
    if (!ready_ || entry_.executable->lost()) return followed;
    followed_.again_in = kRunsToFollow;
    log::debug("runtime", "program '{}': a context keeps what it runs on: {}",
               program_->description.name, followed.to_string());
  }
  forms_.follow(*program_->executables);
  return {};
}

runtime::TimedRun ContextState::kind_of_run(const RunOptions& options) const {
  const device::DeviceInfo& device = program_->device->info();
  runtime::TimedRun run;
  run.cores = device::CoreSet::any(1);
  run.priority = options.priority;
  // Those of an activation are held for the engine that it runs on.
  if (activation_ != nullptr) return run;
  if (device.capabilities.multi_core_jobs)
    run.cores = runtime::trial_cores(cores_of(options), device.cores.size());
  if (run.kind() == runtime::TimedOn::kSeveralCores || device.cores.size() < 2) return run;
  // Its own job is not submitted yet. One that waits for the same core does not run beside it.
  const device::CoreSet& asked = cores_of(options);
  const std::uint64_t busy = program_->device->counters().busy_cores;
  const std::uint64_t idle =
      device::CoreSet::first(device.cores.size()).bits() & asked.among() & ~busy;
  // The core that it names, or one that is idle.
  const std::uint64_t own = asked.is_mask() ? asked.bits() : idle & (~idle + 1);
  const std::uint64_t others = busy & ~own;
  if (others == 0) return run;
  run.at_once = std::min({runtime::kMostAtOnce, device.cores.size(),
                          static_cast<std::size_t>(std::popcount(others)) + 1});
  // The machine may have no CPU for another core.
  run.cores = device::CoreSet::any_of(device::CoreSet::mask(others | own));
  return run;
}

Status ContextState::copy_inputs(runtime::TimedRun& run) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    CORELANE_ASSIGN(const device::TensorRef tensor, bindings_->input(i));
    const auto* const data = static_cast<const std::byte*>(tensor.data);
    run.inputs.push_back({tensor.shape, {data, data + (data == nullptr ? 0 : tensor.size)}});
  }
  return {};
}

/// A trial comes first: forms have to win against the engine that it has chosen. The run does not
/// fail because what comes after it finds no memory.
void ContextState::note_run(const RunOptions& options) noexcept {
  const runtime::ExecutableSet& set = *program_->executables;
  runtime::EngineTrial* const trial = set.trial();
  if (trial != nullptr && !trial->is_of_this_process()) return;
  const bool timed = trial == nullptr || trial->over();
  if (timed) note_shapes(options);
  if (trial == nullptr || !options.wait.empty()) return;
  // A trial compares what was prepared first: neither a static form nor another set of shapes.
  if (!on_first_entry_) return;
  if (!timed) {
    if (!trial->note_run()) return;
  } else {
    if (++runs_since_look_ < runtime::kRunsPerLook) return;
    runs_since_look_ = 0;
  }
  const Status begun = no_throw("timing the engines", [&]() -> Status {
    runtime::TimedRun run = kind_of_run(options);
    if (timed) {
      if (!trial->note_runs(run.kind(), runtime::kRunsPerLook)) return {};
      // A form that is under way would be timed beside the engines, and against the one of before.
      if (set.forms() != nullptr && set.forms()->is_busy()) return {};
    }
    CORELANE_TRY(copy_inputs(run));
    trial->begin(std::move(run));
    return {};
  });
  if (!begun.ok()) trial->give_up(begun);
}

void ContextState::note_shapes(const RunOptions& options) noexcept {
  runtime::StaticForms* const forms = program_->executables->forms();
  if (forms == nullptr) return;
  const bool batches = !forms->rule().open_ended;
  // Engines divide by sizes while they compile.
  const auto empty = [](const Shape& shape) { return shape.elements().value_or(1) == 0; };
  if (std::ranges::any_of(shapes_, empty)) return;
  if (batches && runtime::batch_of(program_->description, shapes_) == 0) return;
  const Status counted = no_throw("counting the runs of a shape", [&] {
    if (forms_.use == nullptr) forms_.use = forms->use_of(shapes_);
    return Status();
  });
  if (!counted.ok() || !forms->note_run(forms_.use, options.wait.empty() || batches)) return;
  runtime::TimedRun run;
  const Status copied = no_throw("copying the inputs of a run", [&]() -> Status {
    if (batches) return {};
    run = kind_of_run(options);
    return copy_inputs(run);
  });
  if (copied.ok())
    forms->begin(forms_.use, std::move(run));
  else
    forms->give_up(forms_.use);
}

/// Outputs give way where inputs must not: a caller that changes shapes expects to bind outputs
/// anew.
Status ContextState::apply_all(const std::vector<device::TensorRef>& kept) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    CORELANE_TRY(apply_input(i));
    if (kept[i].data == nullptr) continue;
    if (inputs_[i].own.data == kept[i].data) continue;
    CORELANE_ASSIGN(const device::TensorRef own, own_input(i));
    std::memcpy(own.data, kept[i].data, std::min(own.size, kept[i].size));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Shape& bound = outputs_[i].view.shape;
    const bool other_size =
        bound.is_static() && outputs_[i].given() && !output_desc(i).shape.accepts(bound);
    if (!other_size && apply_output(i).ok()) continue;
    outputs_[i] = free_output(i);  // Bound memory that no longer fits is dropped.
    CORELANE_TRY(apply_output(i));
  }
  return {};
}

Status ContextState::renew() {
  auto entry = program_->executables->for_shapes(shapes_);
  if (!entry)
    return std::move(entry).error().wrap(fmt::format(
        "program '{}' was lost with its device and cannot run yet", program_->description.name));
  return use(*std::move(entry), shapes_, true);
}

/// An executable for all static shapes may be prepared here, which takes long and holds no lock but
/// this context's.
Status ContextState::reshape(std::vector<Shape> shapes) {
  if (shapes == shapes_ && entry_.executable != nullptr && ready_) return {};
  if (!runtime::all_static(shapes)) {
    // Not all shapes are chosen yet: a dynamic executable stays, a static one is found with the
    // last.
    const bool fits = entry_.executable != nullptr && runtime::accepts_all(entry_.shapes, shapes);
    return use(fits ? entry_ : runtime::ExecutableSet::Entry{}, std::move(shapes));
  }
  auto entry = program_->executables->for_shapes(shapes);
  if (!entry) return std::move(entry).error();
  return use_or_open(std::move(*entry), std::move(shapes));
}

std::uint64_t ContextState::face_generation() const {
  return program_->executables->may_change() ? followed_.generation
                                             : program_->executables->generation();
}

bool ContextState::has_face() const {
  const auto direct = [](const runtime::Slot& slot) {
    return slot.mode == runtime::SlotMode::kDirect;
  };
  // One that waits for its program's executables to be looked at again has none.
  return ready_ && program_->description.shape_sets.size() > 1 && states_.links.empty() &&
         program_->executables->forms() == nullptr &&
         face_generation() == program_->executables->generation() &&
         std::ranges::all_of(inputs_, direct) && std::ranges::all_of(outputs_, direct) &&
         !entry_.executable->lost();
}

/// Everything of now changes places with everything of then: nothing is made, checked or copied.
bool ContextState::turn_to(const std::vector<Shape>& shapes) {
  if (!has_face()) return false;
  runtime::FormBindings::Kept* const then = forms_.find_face(shapes, face_generation());
  if (then == nullptr) return false;
  runtime::Face& face = *then->face;
  inputs_.swap(face.inputs);
  outputs_.swap(face.outputs);
  {
    const MutexLock lock(mutex_);
    std::swap(entry_, then->entry);
    std::swap(bindings_, then->bindings);
    shapes_.swap(face.shapes);
    published_inputs_.swap(face.published_inputs);
    published_outputs_.swap(face.published_outputs);
  }
  then->hash = runtime::FormBindings::hash_of(face.shapes);
  has_result_ = false;
  forms_.use.reset();
  job_.executable = entry_.executable;
  job_.bindings = bindings_;
  job_.batch = runtime::samples_of(program_->description, shapes_);
  refresh();
  return true;
}

Status ContextState::leave_for(const std::vector<Shape>& shapes) {
  std::optional<runtime::Face> face;
  const std::shared_ptr<device::Executable> before = entry_.executable;
  if (has_face()) {
    const MutexLock lock(mutex_);
    face = {shapes_, inputs_, outputs_, published_inputs_, published_outputs_, face_generation()};
  }
  CORELANE_TRY(reshape(shapes));
  if (face && before != entry_.executable) forms_.set_face(before.get(), std::move(*face));
  return {};
}

Status ContextState::set_input_shapes(const std::vector<Shape>& shapes) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  CORELANE_TRY(runtime::check_shapes(program_->description, shapes));
  return reshape(shapes);
}

/// With the shapes of now, and the dtype that the device computes with.
TensorDesc ContextState::input_desc(std::size_t index) const {
  TensorDesc desc = program_->description.inputs[index].desc;
  if (entry_.executable != nullptr) desc.dtype = entry_.executable->inputs()[index].dtype;
  desc.shape = shapes_[index];
  return desc;
}

/// Exposed values come after the declared outputs and are known to the executable alone.
TensorDesc ContextState::output_desc(std::size_t index) const {
  const auto& declared = program_->description.outputs;
  const std::string name = index < declared.size() ? declared[index].desc.name : "";
  if (entry_.executable == nullptr) return declared[index].desc;
  const runtime::ExecutableSet& set = *program_->executables;
  TensorDesc desc =
      set.hides_forms() ? set.open_outputs()[index] : entry_.executable->outputs()[index];
  if (index < declared.size()) {
    desc.name = declared[index].desc.name;
    desc.dim_names = declared[index].desc.dim_names;
    desc.shape = runtime::with_batch(program_->description, desc, shapes_);
  }
  return desc;
}

DType ContextState::output_dtype(std::size_t index) const {
  if (entry_.executable == nullptr) return program_->description.outputs[index].desc.dtype;
  const runtime::ExecutableSet& set = *program_->executables;
  return set.hides_forms() ? set.open_outputs()[index].dtype
                           : entry_.executable->outputs()[index].dtype;
}

/// For readers of descriptions, which do not take the call lock and so never see a call half done.
void ContextState::publish() {
  std::vector<TensorDesc> in;
  std::vector<TensorDesc> out;
  for (std::size_t i = 0; i < inputs_.size(); ++i) in.push_back(input_desc(i));
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    out.push_back(output_desc(i));
    const runtime::Slot& slot = outputs_[i];
    if (slot.given() && slot.view.shape.is_static()) out.back().shape = slot.view.shape;
  }
  const MutexLock lock(mutex_);
  published_inputs_.swap(in);
  published_outputs_.swap(out);
}

std::vector<TensorDesc> ContextState::input_descs() const {
  const MutexLock lock(mutex_);
  return published_inputs_;
}

std::vector<TensorDesc> ContextState::output_descs() const {
  const MutexLock lock(mutex_);
  return published_outputs_;
}

/// Activations and weights belong to the executable: each of its contexts counts an equal part.
device::MemoryFigures ContextState::memory() const {
  runtime::ExecutableSet::Entry entry;
  std::vector<runtime::ExecutableSet::Entry> left;  // Forms of other sizes, to which it may return.
  std::size_t own = 0;
  {
    const CallLock call(*this);
    const MutexLock lock(mutex_);
    entry = entry_;
    if (call) {
      for (const runtime::Slot& slot : inputs_) own += slot.foreign_own ? slot.own.size : 0;
      for (const auto& kept : forms_.all()) left.push_back(kept.entry);
      if (states_.own) own += states_.store->bytes();
    }
  }
  device::MemoryFigures figures;
  if (entry.executable == nullptr) return figures;
  figures = share_of(entry);
  figures.buffers += own;
  for (const runtime::ExecutableSet::Entry& form : left) {
    const device::MemoryFigures share = share_of(form);
    figures.internal += share.internal;
    figures.buffers += share.buffers;
  }
  return figures;
}

}  // namespace corelane
