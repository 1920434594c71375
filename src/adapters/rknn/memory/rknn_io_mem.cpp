#include "adapters/rknn/memory/rknn_io_mem.h"

#include <algorithm>
#include <cstring>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/model/rknn_frame.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"

namespace corelane::rknn {
namespace {

/// Programs may fill all of the name and leave out its zero.
std::string name_of(const rknn_tensor_attr& attr) {
  return std::string(attr.name, strnlen(attr.name, sizeof attr.name));
}

/// How well what the caller says fits a tensor: 0 not at all.
int likeness(const rknn_tensor_attr& attr, const IoTensor& io, const Chip& chip) {
  int best = 0;
  for (const rknn_tensor_attr& own :
       {normal_attr(io, chip), native_attr(io, chip), native_nhwc_attr(io, chip)}) {
    if (!same_dims(attr, own)) continue;
    int points = 1;
    points += attr.fmt == own.fmt ? 1 : 0;
    points += attr.type == own.type ? 1 : 0;
    points += attr.w_stride == own.w_stride ? 1 : 0;
    points += attr.size_with_stride == own.size_with_stride ? 1 : 0;
    best = std::max(best, points);
  }
  return best;
}

/// Whose the row pitch of a caller is.
Pitch pitch_of(std::uint32_t stride, const IoTensor& io, const Chip& chip) {
  if (stride == 0 || io.shape.rank() != 4) return Pitch::kOwn;
  if (stride == normal_attr(io, chip).w_stride) return Pitch::kReported;
  return stride == static_cast<std::uint64_t>(io.shape[3]) ? Pitch::kWidth : Pitch::kOwn;
}

/// The row pitch after a change of shape.
std::uint32_t next_stride(std::uint32_t stride, Pitch pitch, const IoTensor& now,
                          const Chip& chip) {
  if (pitch == Pitch::kReported) return normal_attr(now, chip).w_stride;
  return pitch == Pitch::kWidth ? 0 : stride;
}

}  // namespace

/// Inputs and outputs share their numbers: the name decides, then number and dimensions.
Result<IoTensor> IoMemory::resolve(const rknn_tensor_attr& attr) const {
  const std::string name = name_of(attr);
  std::vector<IoTensor> named, numbered;
  auto collect = [&](const IoTensor& io) {
    const std::string& own = io.entry->desc.name;
    if (!name.empty() && own.compare(0, sizeof attr.name - 1, name) == 0) named.push_back(io);
    if (io.index == attr.index) numbered.push_back(io);
  };
  for (std::size_t i = 0; i < facts_.description->inputs.size(); ++i) collect(queries_.input(i));
  for (std::size_t i = 0; i < facts_.description->outputs.size(); ++i) collect(queries_.output(i));
  if (!name.empty() && named.empty()) {
    std::string known;
    for (const auto* side : {&facts_.description->inputs, &facts_.description->outputs})
      for (const IoEntry& entry : *side) known += " '" + entry.desc.name + "'";
    return error(Code::kNotFound, "no input or output is named '{}'; there are{}", name, known);
  }
  std::vector<IoTensor>& candidates = named.empty() ? numbered : named;
  if (candidates.size() == 1) return candidates.front();
  const IoTensor* best = nullptr;
  int best_points = 0;
  bool tie = false;
  for (const IoTensor& io : candidates) {
    const int points = 2 * likeness(attr, io, facts_.chip) + (io.index == attr.index ? 1 : 0);
    if (points == best_points) tie = true;
    if (points > best_points) best = &io, best_points = points, tie = false;
  }
  if (best == nullptr || tie || likeness(attr, *best, facts_.chip) == 0)
    return error(Code::kInvalidArgument,
                 "name '{}' and index {} do not say which input or output is meant ({} fit); pass "
                 "the attr that rknn_query filled in, with its name and dims",
                 name, attr.index, candidates.size());
  return *best;
}

/// To all frames, since they take turns with one set of bound memory. Memory in the tensor's own
/// form is bound as the device's object, without a copy.
Status IoMemory::bind(std::vector<Frame>& frames, const IoTensor& io, const Bound& bound) const {
  CORELANE_ASSIGN(ViewPlan plan, plan_view(io, bound.form, facts_.chip));
  const Memory& memory = *bound.memory;
  if (memory.size < plan.bytes)
    return error(Code::kInvalidArgument,
                 "{} {} '{}' takes {} bytes as {}{}, mem has {}; allocate size_with_stride of "
                 "the queried attr, or n_elems x the bytes of the type",
                 side_name(io.side), io.index, io.entry->desc.name, plan.bytes,
                 type_name(bound.form.type),
                 bound.form.w_stride == 0
                     ? std::string()
                     : fmt::format(" with rows of w_stride {} pixels", bound.form.w_stride),
                 memory.size);
  if (io.side == Side::kInput) check::input_bound(memory, plan.bytes);
  plan.view.data = memory.data;
  plan.view.size = io.shape.is_static() ? plan.bytes : memory.size;
  const TensorDesc& own = io.entry->desc;
  const bool untouched = plan.view.dtype == own.dtype && plan.view.layout == Layout{} &&
                         plan.view.quant == Quant{} && plan.convert.mean.empty() &&
                         plan.convert.std.empty() && memory.buffer != nullptr;
  for (Frame& frame : frames) {
    Context& context = frame.context;
    if (io.side == Side::kInput) {
      CORELANE_TRY(untouched ? context.bind_input(io.index, memory.buffer, memory.buffer_offset)
                             : context.bind_input(io.index, plan.view, plan.convert));
    } else {
      CORELANE_TRY(untouched ? context.bind_output(io.index, memory.buffer, memory.buffer_offset)
                             : context.bind_output(io.index, plan.view));
    }
  }
  return {};
}

/// Kept with the form that was asked for, so that a change of shapes can bind it again.
Outcome IoMemory::set(std::vector<Frame>& frames, std::shared_ptr<Memory> memory,
                      const rknn_tensor_attr& attr) {
  CORELANE_ASSIGN(const IoTensor io, resolve(attr));
  // h_stride is not looked at: the attr of a program of 1.2.0 ends before it.
  CORELANE_ASSIGN(const std::uint32_t c2, blocks_said(attr, io, facts_.chip));
  Bound bound{std::move(memory), {attr.type, attr.fmt, attr.pass_through != 0, 0, c2}};
  // The row pitch is an input's; blocks of channels have none.
  if (io.side == Side::kInput && attr.fmt != RKNN_TENSOR_NC1HWC2)
    bound.form.w_stride = attr.w_stride;
  if (attr.fmt == RKNN_TENSOR_NC1HWC2) bound.form.pass_through = true;
  if (attr.fmt == RKNN_TENSOR_NCHW) bound.form.w_stride = 0;
  if (check::enabled()) [[unlikely]] {
    check_attr(io, attr);
    bound.call = edge::current_call();
  }
  if (io.side == Side::kInput && attr.pass_through != 0)
    bound.form.type = passed_type(io, attr.type);
  bound.pitch = pitch_of(bound.form.w_stride, io, facts_.chip);
  CORELANE_TRY(bind(frames, io, bound));
  Bounds& bounds = io.side == Side::kInput ? inputs_ : outputs_;
  bounds.resize(std::max<std::size_t>(bounds.size(), io.index + 1));
  bounds[io.index] = std::move(bound);
  return {};
}

/// Memory that has become too small does not fail the change of shapes: the caller may bind other
/// memory before the next run. Without that the run fails, since the caller looks for its results
/// in the memory that was bound.
Status IoMemory::rebind(std::vector<Frame>& frames, Side side, std::string_view function) {
  const bool input = side == Side::kInput;
  Bounds& bounds = input ? inputs_ : outputs_;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!bounds[i]) continue;
    const IoTensor io = input ? queries_.input(i) : queries_.output(i);
    bounds[i]->form.w_stride =
        next_stride(bounds[i]->form.w_stride, bounds[i]->pitch, io, facts_.chip);
    const Status status = bind(frames, io, *bounds[i]);
    bounds[i]->misfit = status.ok() ? std::string() : std::string(status.message());
    if (status.ok()) continue;
    log::line(log::Level::kWarn,
              "{}: {}; it is not bound any more, call rknn_set_io_mem again with the CURRENT attr",
              function, status.to_string());
    if (check::enabled())
      check::report(edge::current_call(),
                    "memory bound by {} is stale: {}; it is not bound any more",
                    edge::text(bounds[i]->call), status.message());
    for (Frame& frame : frames)
      CORELANE_TRY(input ? frame.context.unbind_input(i) : frame.context.unbind_output(i));
  }
  return {};
}

/// Memory bound for the earlier shapes says nothing of the shapes to come.
Status IoMemory::release_outputs(std::vector<Frame>& frames) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i] || !outputs_[i]->misfit.empty()) continue;
    for (Frame& frame : frames) {
      Status status = frame.context.unbind_output(i);
      if (status.ok()) continue;
      CORELANE_TRY(rebind(frames, Side::kOutput, "rknn_set_input_shapes"));
      return status;
    }
  }
  return {};
}

Status IoMemory::rebind_all(std::vector<Frame>& frames, std::string_view function) {
  CORELANE_TRY(rebind(frames, Side::kInput, function));
  return rebind(frames, Side::kOutput, function);
}

bool IoMemory::binds_output() const noexcept {
  return std::any_of(outputs_.begin(), outputs_.end(), [](const auto& b) { return b.has_value(); });
}

bool IoMemory::binds() const noexcept {
  return binds_output() ||
         std::any_of(inputs_.begin(), inputs_.end(), [](const auto& b) { return b.has_value(); });
}

Status IoMemory::check_usable() const {
  CORELANE_TRY(check_usable(Side::kInput));
  return check_usable(Side::kOutput);
}

/// Memory of the device lives as long as it is bound; an address of the caller ends with its
/// struct.
Status IoMemory::check_usable(Side side) const {
  const Bounds& bounds = side == Side::kInput ? inputs_ : outputs_;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const std::optional<Bound>& bound = bounds[i];
    if (bound && !bound->misfit.empty())
      return error(Code::kWrongState,
                   "mem that was bound before the shapes changed is too small: {}; call "
                   "rknn_set_io_mem with the CURRENT attr before the run",
                   bound->misfit);
    if (!bound || bound->memory->buffer != nullptr ||
        !bound->memory->destroyed.load(std::memory_order_acquire))
      continue;
    return error(Code::kWrongState,
                 "mem of {} {} was destroyed by rknn_destroy_mem, and its memory is the "
                 "caller's; call rknn_set_io_mem with another before the run",
                 side_name(side), i);
  }
  return {};
}

Result<std::optional<ViewPlan>> IoMemory::input_plan(std::size_t index) const {
  if (!input_bound(index) || !inputs_[index]->misfit.empty()) return std::nullopt;
  CORELANE_ASSIGN(ViewPlan plan,
                  plan_view(queries_.input(index), inputs_[index]->form, facts_.chip));
  plan.view.data = inputs_[index]->memory->data;
  plan.view.size = plan.bytes;
  return plan;
}

}  // namespace corelane::rknn
