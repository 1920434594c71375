#include <fmt/format.h>

#include <cstdint>

#include "base/guard.h"
#include "corelane/base/log.h"
#include "runtime/activation/activation_state.h"
#include "runtime/context/context_state.h"
#include "runtime/context/own_memory.h"
#include "runtime/program/program_state.h"
#include "runtime/program/shape_choice.h"

namespace corelane {

using runtime::Slot;
using runtime::SlotMode;

namespace {

/// The device reads inputs only; its references are the same for both directions.
MutableTensorView writable(const TensorView& v) {
  return {const_cast<void*>(v.data), v.size, v.dtype, v.shape, v.layout, v.quant};
}

/// The device holds a buffer while it uses it. A buffer over user memory is passed without an
/// owner, so that the device shields it from abandoned jobs like any memory that nothing keeps
/// alive.
device::TensorRef ref_of(const Slot& slot) {
  const bool held = slot.buffer != nullptr && slot.buffer->origin() != device::BufferOrigin::kUser;
  return {slot.view.data, slot.view.size, slot.view.shape, held ? slot.buffer : nullptr};
}

/// True when the device has memory in this form, wherever it lies: the form was checked before. For
/// either view as it is: making one of the other copies its shape.
template <class View>
bool has_form(const Slot& slot, const View& view) {
  return slot.mode == SlotMode::kDirect && view.data != nullptr &&
         runtime::is_aligned(view.data, view.dtype) && slot.view.size == view.size &&
         slot.view.shape == view.shape && slot.view.dtype == view.dtype &&
         slot.view.layout == view.layout && view.quant.kind == QuantKind::kNone;
}

/// A buffer in its place. Where the shape is open, the size is known only after the run: the result
/// is copied where it fits.
Result<Slot> buffer_slot(const TensorDesc& desc, std::shared_ptr<device::Buffer> buffer,
                         std::size_t offset, Detail side) {
  Slot slot;
  CORELANE_ASSIGN(slot.view, runtime::buffer_view(desc, buffer, offset, side));
  const bool sized = desc.shape.is_static();
  if (sized) CORELANE_TRY(runtime::check_view(desc, slot.view, side));
  const bool in_place = sized && runtime::is_program_form(desc, slot.view);
  slot.mode = in_place ? SlotMode::kBuffer : SlotMode::kConverted;
  slot.buffer = std::move(buffer);
  return slot;
}

/// Apart, so that binding does not carry what it takes.
[[gnu::noinline]] Failure output_misfit(const TensorDesc& desc, const Shape& given) {
  return error(Code::kShapeMismatch, "output '{}' is {}, the bound memory is {}", desc.name,
               desc.shape.to_string(), given.to_string())
      .with(Detail::kOutput, desc.name)
      .with(Detail::kGiven, given.to_string())
      .with(Detail::kAllowed, desc.shape.to_string());
}

}  // namespace

Status Context::bind_input(std::size_t index, const TensorView& view,
                           const ConvertOptions& convert) {
  return no_throw("binding an input", [&] { return state().bind_input(index, view, convert); });
}

Status Context::bind_output(std::size_t index, const MutableTensorView& view) {
  return no_throw("binding an output", [&] { return state().bind_output(index, view); });
}

Status Context::bind_input(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                           std::size_t offset) {
  return no_throw("binding an input",
                  [&] { return state().bind_input(index, std::move(buffer), offset); });
}

Status Context::bind_output(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                            std::size_t offset) {
  return no_throw("binding an output",
                  [&] { return state().bind_output(index, std::move(buffer), offset); });
}

Status Context::bind_all(const std::vector<Shape>& shapes, std::span<const TensorView> inputs,
                         std::span<const MutableTensorView> outputs) {
  return no_throw("binding all tensors", [&] { return state().bind_all(shapes, inputs, outputs); });
}

Status Context::set_input(std::size_t index, const TensorView& view,
                          const ConvertOptions& convert) {
  return no_throw("setting an input", [&] { return state().set_input(index, view, convert); });
}

Status Context::unbind_input(std::size_t index) { return state().unbind_input(index); }

Status Context::unbind_output(std::size_t index) { return state().unbind_output(index); }

Result<MutableTensorView> Context::input(std::size_t index) {
  return no_throw("an input", [&] { return state().input(index); });
}

Result<TensorView> Context::output(std::size_t index) const {
  return no_throw("an output", [&] { return state().output(index); });
}

Result<std::vector<KeptState>> Context::states() const {
  return no_throw("the state", [&] { return state().states(); });
}

Status Context::reset_states() {
  return no_throw("resetting the state", [&] { return state().reset_states(); });
}

Status Context::reset_state(std::size_t index) {
  return no_throw("resetting the state", [&] { return state().reset_state(index); });
}

Status Context::set_state(std::size_t index, ByteSpan bytes) {
  return no_throw("setting the state", [&] { return state().set_state(index, bytes); });
}

Status Context::copy_state(std::size_t index, MutableByteSpan to) const {
  return no_throw("copying the state", [&] { return state().copy_state(index, to); });
}

/// What the calls on one tensor begin with: `slots` is inputs_ or outputs_.
Status ContextState::enter(const CallLock& call, const std::vector<Slot>& slots,
                           std::size_t index) {
  CORELANE_TRY(enter(call));
  if (index < slots.size()) return {};
  return error(Code::kOutOfRange, "{0} {1} of program '{2}': it has {3} {0}s, counted from 0",
               &slots == &inputs_ ? "input" : "output", index, program_->description.name,
               slots.size());
}

/// From the bindings where the executable's shape is static. Bindings of an executable with open
/// dimensions have no memory for them, so it is allocated here; so it is where the sizes that are
/// bound go with no executable yet.
Result<device::TensorRef> ContextState::own_input(std::size_t index) {
  Slot& slot = inputs_[index];
  if (slot.own.data != nullptr) return slot.own;
  const Shape& shape = shapes_[index];
  if (!shape.is_static()) {
    return error(Code::kWrongState,
                 "input '{}' has no memory while shapes are open; call set_input_shapes first, "
                 "allowed: {}",
                 program_->description.inputs[index].desc.name,
                 runtime::allowed_shapes(program_->description));
  }
  if (bindings_ != nullptr && inputs_in_bindings(*entry_.executable, index)) {
    CORELANE_ASSIGN(slot.own, bindings_->input(index));
    slot.foreign_own = false;
    return slot.own;
  }
  const DType dtype = input_desc(index).dtype;
  CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(shape, dtype, {}));
  // Of a batch range: for its largest size, so that the memory stays while sizes change.
  std::size_t room = bytes;
  if (program_->executables->has_batch_forms()) {
    const auto largest =
        runtime::batch_shapes(program_->description, program_->description.batch_range->high);
    CORELANE_ASSIGN(room, storage_bytes(largest[index], dtype, {}));
  }
  CORELANE_ASSIGN(auto block, runtime::allocate_own(room, program_->context_bytes));
  slot.own = {block.get(), bytes, shape, block};
  slot.foreign_own = true;
  return slot.own;
}

/// Brings the bindings in line with a slot; called again for every slot when bindings are new.
Status ContextState::apply_input(std::size_t index) {
  Slot& slot = inputs_[index];
  if (bindings_ == nullptr || slot.mode == SlotMode::kKept) return {};
  if (slot.in_place()) return bindings_->set_input(index, ref_of(slot));
  // A static input goes back to the memory of the bindings, which is allocated when it is needed.
  if (inputs_in_bindings(*entry_.executable, index)) return bindings_->set_input(index, {});
  if (!shapes_[index].is_static()) return {};
  CORELANE_ASSIGN(const device::TensorRef own, own_input(index));
  return bindings_->set_input(index, own);
}

/// A converted output is computed in the bindings' own memory first.
Status ContextState::apply_output(std::size_t index) {
  if (bindings_ == nullptr) return {};
  const Slot& slot = outputs_[index];
  return bindings_->set_output(index, slot.in_place() ? ref_of(slot) : device::TensorRef{});
}

/// The slot is the truth and the bindings follow it, so that a refused binding leaves the earlier
/// one in force. Where even that cannot be restored, the context is not ready until it is bound
/// again.
template <class Apply>
Status ContextState::exchange(Slot& place, Slot slot, const Apply& apply) {
  std::swap(place, slot);
  Status status;
  try {
    status = apply();
  } catch (...) {
    std::swap(place, slot);  // There was no memory to bind: the earlier binding is in force.
    throw;
  }
  bool bound = status.ok();
  if (!bound) {
    std::swap(place, slot);
    const Status restored = apply();
    bound = restored.ok();
    if (!bound) {
      status =
          restored.wrap("the earlier binding could not be restored after: " + status.to_string());
    }
  }
  refresh();
  ready_ = ready_ && bound;
  return status;
}

/// The shape of what is bound to an input with open dimensions becomes the input's. If the program
/// refuses the sizes, but the shape of another open input may still change, the run asks again.
Status ContextState::take_shape(std::size_t index, const Shape& shape) {
  if (shape == shapes_[index]) return {};
  CORELANE_ASSIGN(auto shapes,
                  runtime::shapes_with_input(program_->description, shapes_, index, shape));
  Status taken = reshape(shapes);
  const bool sizes =
      taken.code() == Code::kShapeMismatch || taken.code() == Code::kUnsupportedModel;
  if (!sizes || !runtime::has_several_open(program_->description)) return taken;
  log::debug("runtime", "program '{}': {}", program_->description.name, taken.to_string());
  return use({}, std::move(shapes));
}

/// Own memory that is still valid goes along to the new slot, and is there again after unbinding.
Status ContextState::put_input(std::size_t index, Slot slot) {
  Slot& place = inputs_[index];
  // The bindings may have freed their memory while other memory was bound: then it is asked for
  // again.
  if (!place.in_place() || place.foreign_own) {
    slot.own = place.own;
    slot.foreign_own = place.foreign_own;
  }
  return exchange(place, std::move(slot), [&] { return apply_input(index); });
}

/// The result of the last run lies in memory that may be gone, so it is dropped. Where a static
/// form runs without the user's knowledge and cannot use the memory, the open form takes over.
Status ContextState::put_output(std::size_t index, Slot slot) {
  has_result_ = false;
  if (form_misfits_) followed_.generation = kLookAgain;
  if (program_->executables->hides_forms() && entry_.executable != nullptr &&
      !fits_output(entry_, index, slot)) {
    CORELANE_TRY(use(program_->executables->first(), shapes_));
    form_misfits_ = true;
  }
  Status status = exchange(outputs_[index], std::move(slot), [&] { return apply_output(index); });
  // A static output's description never changes.
  const bool open = entry_.executable == nullptr || !output_desc(index).shape.is_static();
  if (open) publish();
  return status;
}

void ContextState::refresh() {
  converts_ = false;
  user_memory_ = false;
  ready_ = bindings_ != nullptr && runtime::all_static(shapes_);
  states_.used = false;
  const auto look = [this](const Slot& slot) {
    states_.used |= slot.mode == SlotMode::kKept;
    converts_ |= slot.mode == SlotMode::kConverted;
    user_memory_ |=
        slot.mode == SlotMode::kDirect ||
        (slot.mode == SlotMode::kBuffer && slot.buffer->origin() == device::BufferOrigin::kUser);
  };
  for (const Slot& slot : inputs_) look(slot);
  for (const Slot& slot : outputs_) look(slot);
  for (const auto& link : states_.links) converts_ |= is_open_output(link.output);
}

/// As exchange(), of which this is the short way: what was checked of the slot holds.
template <class Apply>
Status ContextState::redirect(Slot& place, void* data, const Apply& apply) {
  if (place.view.data == data) return {};
  std::swap(place.view.data, data);
  Status status;
  try {
    status = apply();
  } catch (...) {
    std::swap(place.view.data, data);
    throw;
  }
  if (!status.ok()) {
    std::swap(place.view.data, data);
    ready_ = ready_ && apply().ok();
  } else if (!ready_) {
    refresh();
  }
  return status;
}

Status ContextState::bind_input(std::size_t index, const TensorView& view,
                                const ConvertOptions& convert) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, inputs_, index));
  return bind_input_view(index, view, convert);
}

/// Memory in the program's form is passed to the device as it is; anything else goes through own
/// memory and a conversion at each run.
Status ContextState::bind_input_view(std::size_t index, const TensorView& view,
                                     const ConvertOptions& convert) {
  const bool plain = convert.mean.empty() && convert.std.empty();
  if (plain && has_form(inputs_[index], view))
    return redirect(inputs_[index], const_cast<void*>(view.data),
                    [&] { return apply_input(index); });
  CORELANE_TRY(runtime::check_view(input_desc(index), view, Detail::kInput));
  CORELANE_TRY(take_shape(index, view.shape));
  const bool direct = plain && runtime::is_program_form(input_desc(index), view);
  Slot slot;
  slot.mode = direct ? SlotMode::kDirect : SlotMode::kConverted;
  slot.view = writable(view);
  if (!direct) slot.convert = convert;
  return put_input(index, std::move(slot));
}

/// Buffers have no shape of their own, so the input's must be known.
Status ContextState::bind_input(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                                std::size_t offset) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, inputs_, index));
  const TensorDesc desc = input_desc(index);
  if (!desc.shape.is_static()) {
    return error(Code::kWrongState,
                 "input '{}' has open dimensions; call set_input_shapes before binding a buffer, "
                 "allowed: {}",
                 desc.name, runtime::allowed_shapes(program_->description));
  }
  CORELANE_ASSIGN(Slot slot, buffer_slot(desc, std::move(buffer), offset, Detail::kInput));
  return put_input(index, std::move(slot));
}

Status ContextState::bind_output(std::size_t index, const MutableTensorView& view) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, outputs_, index));
  return bind_output_view(index, view);
}

/// A view of unknown shape takes whatever the run produces, as far as it fits.
Status ContextState::bind_output_view(std::size_t index, const MutableTensorView& view) {
  Slot& place = outputs_[index];
  if (has_form(place, view)) {
    if (place.view.data == view.data) return {};
    has_result_ = false;
    if (form_misfits_) followed_.generation = kLookAgain;
    return redirect(place, view.data, [&] { return apply_output(index); });
  }
  const TensorDesc desc = output_desc(index);
  if (desc.shape != view.shape && !desc.shape.accepts(view.shape))
    return output_misfit(desc, view.shape);
  Slot slot;
  slot.view = view;
  if (view.shape.is_static()) {
    CORELANE_TRY(runtime::check_view(desc, view, Detail::kOutput));
    slot.mode = runtime::is_program_form(desc, view) ? SlotMode::kDirect : SlotMode::kConverted;
  } else {
    // The size is known only after the run: the result is copied where it fits.
    if (view.data == nullptr)
      return error(Code::kInvalidArgument, "output '{}': the memory is null", desc.name);
    slot.mode = SlotMode::kConverted;
  }
  return put_output(index, std::move(slot));
}

Status ContextState::bind_output(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                                 std::size_t offset) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, outputs_, index));
  CORELANE_ASSIGN(Slot slot,
                  buffer_slot(output_desc(index), std::move(buffer), offset, Detail::kOutput));
  return put_output(index, std::move(slot));
}

Status ContextState::bind_all(const std::vector<Shape>& shapes, std::span<const TensorView> inputs,
                              std::span<const MutableTensorView> outputs) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  if (inputs.size() != inputs_.size() || outputs.size() > outputs_.size())
    return error(Code::kInvalidArgument,
                 "{} input and {} output views are given; program '{}' has {} and {}",
                 inputs.size(), outputs.size(), program_->description.name, inputs_.size(),
                 outputs_.size());
  const bool same = ready_ && shapes == shapes_;
  const bool back = !same && turn_to(shapes);
  if (!same && !back) {
    CORELANE_TRY(runtime::check_shapes(program_->description, shapes));
    CORELANE_TRY(leave_for(shapes));
  }
  std::size_t input = 0;
  std::size_t output = 0;
  const auto bind = [&]() -> Status {
    for (; input < inputs.size(); ++input) CORELANE_TRY(bind_input_view(input, inputs[input], {}));
    for (; output < outputs.size(); ++output)
      CORELANE_TRY(bind_output_view(output, outputs[output]));
    return {};
  };
  if (!back) return bind();
  Status status;
  try {
    status = bind();
  } catch (...) {
    forget_from(input, output);
    throw;
  }
  if (input == inputs_.size() && output == outputs_.size()) return status;
  forget_from(input, output);
  Status renewed = reshape(shapes);
  return status.ok() ? std::move(renewed) : std::move(status);
}

/// The tensors from `input` and `output` on that turn_to() has brought back, and that the user has
/// not bound again, may lie in memory that is gone: they are freed, and their bindings given up.
void ContextState::forget_from(std::size_t input, std::size_t output) noexcept {
  for (; input < inputs_.size(); ++input) inputs_[input] = free_input(input);
  for (; output < outputs_.size(); ++output) outputs_[output] = free_output(output);
  std::shared_ptr<device::Bindings> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(bindings_);
  }
  job_.bindings.reset();
  ready_ = false;
}

/// Converted now, so `view` may go when this returns.
Status ContextState::set_input(std::size_t index, const TensorView& view,
                               const ConvertOptions& convert) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, inputs_, index));
  CORELANE_TRY(runtime::check_view(input_desc(index), view, Detail::kInput));
  CORELANE_TRY(take_shape(index, view.shape));
  if (inputs_[index].mode != SlotMode::kOwn) CORELANE_TRY(put_input(index, {}));
  CORELANE_ASSIGN(const device::TensorRef own, own_input(index));
  const TensorDesc desc = input_desc(index);
  const Status status =
      corelane::convert(view, {own.data, own.size, desc.dtype, own.shape, {}, {}}, convert);
  return status.wrap(fmt::format("input '{}'", desc.name));
}

Status ContextState::unbind_input(std::size_t index) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, inputs_, index));
  return put_input(index, free_input(index));
}

Status ContextState::unbind_output(std::size_t index) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, outputs_, index));
  return put_output(index, free_output(index));
}

Result<MutableTensorView> ContextState::input(std::size_t index) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, inputs_, index));
  // Who asks for the memory of a state brings its value.
  if (inputs_[index].mode == SlotMode::kKept) CORELANE_TRY(put_input(index, {}));
  const Slot& slot = inputs_[index];
  if (slot.mode != SlotMode::kOwn) return slot.view;
  CORELANE_ASSIGN(const device::TensorRef own, own_input(index));
  return MutableTensorView{own.data, own.size, input_desc(index).dtype, own.shape, {}, {}};
}

/// A result belongs to the bindings until the next run or binding, so it is not copied.
Result<TensorView> ContextState::output(std::size_t index) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call, outputs_, index));
  if (!has_result_) {
    return error(Code::kWrongState,
                 "output '{}' has no result: run the context first (a failed run, new bindings and "
                 "new shapes drop the result before)",
                 output_desc(index).name);
  }
  CORELANE_ASSIGN(const device::TensorRef result, bindings_->output(index));
  const Slot& slot = outputs_[index];
  if (slot.mode == SlotMode::kConverted) {
    MutableTensorView view = slot.view;
    view.shape = result.shape;
    return view;
  }
  return TensorView{result.data, result.size, output_dtype(index), result.shape, {}, {}};
}

void ContextState::init_states() {
  states_.begin(program_->description, activation_ == nullptr ? nullptr : activation_->states(),
                program_->context_bytes);
  for (const auto& link : states_.links) {
    inputs_[link.input].mode = SlotMode::kKept;
    outputs_[link.output].mode = SlotMode::kKept;
  }
}

Slot ContextState::free_input(std::size_t index) const {
  Slot slot;
  if (states_.has_input(index)) slot.mode = SlotMode::kKept;
  return slot;
}

Slot ContextState::free_output(std::size_t index) const {
  Slot slot;
  if (states_.has_output(index)) slot.mode = SlotMode::kKept;
  return slot;
}

bool ContextState::is_open_output(std::size_t index) const {
  return outputs_[index].mode == SlotMode::kKept && entry_.executable != nullptr &&
         !entry_.executable->outputs()[index].shape.is_static();
}

Result<std::vector<KeptState>> ContextState::states() const {
  const CallLock call(*this);
  if (!call) return error(busy());
  std::vector<KeptState> found;
  for (const auto& [input, output] : states_.links) {
    KeptState& state = found.emplace_back();
    state.input = program_->description.inputs[input].desc.name;
    state.output = program_->description.outputs[output].desc.name;
    state.input_index = input;
    state.output_index = output;
    state.desc = input_desc(input);
    state.input_kept = inputs_[input].mode == SlotMode::kKept;
    state.output_kept = outputs_[output].mode == SlotMode::kKept;
  }
  return found;
}

Status ContextState::check_state(std::size_t index) const {
  if (index < states_.links.size()) return {};
  return error(Code::kOutOfRange, "state {} of program '{}': it keeps {}, counted from 0{}", index,
               program_->description.name, states_.links.size(),
               states_.links.empty() ? "; compile it with --state OUTPUT=INPUT" : "");
}

Status ContextState::check_state(std::size_t index, std::size_t bytes) const {
  CORELANE_TRY(check_state(index));
  const TensorDesc desc = input_desc(states_.links[index].input);
  if (!desc.shape.is_static())
    return error(Code::kWrongState,
                 "the state of input '{}' has open dimensions; call set_input_shapes first, "
                 "allowed: {}",
                 desc.name, runtime::allowed_shapes(program_->description));
  CORELANE_ASSIGN(const std::size_t needed, storage_bytes(desc.shape, desc.dtype, {}));
  if (bytes == needed) return {};
  return error(Code::kInvalidArgument, "the state of input '{}' has {} bytes, {} are given",
               desc.name, needed, bytes);
}

Status ContextState::reset_states() {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  return states_.store == nullptr ? Status() : states_.store->reset_all();
}

Status ContextState::reset_state(std::size_t index) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  CORELANE_TRY(check_state(index));
  return states_.store->reset(index);
}

Status ContextState::set_state(std::size_t index, ByteSpan bytes) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  CORELANE_TRY(check_state(index, bytes.size()));
  return states_.store->write(index, shapes_[states_.links[index].input], bytes);
}

Status ContextState::copy_state(std::size_t index, MutableByteSpan to) {
  const CallLock call(*this);
  CORELANE_TRY(enter(call));
  CORELANE_TRY(check_state(index, to.size()));
  return states_.store->read(index, shapes_[states_.links[index].input], to);
}

}  // namespace corelane
