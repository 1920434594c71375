/// rknn_set_io_mem: memory of the caller that runs read and write in place.
#include <cstring>

#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {
namespace {

std::string name_of(const rknn_tensor_attr& attr) {
  return std::string(attr.name, strnlen(attr.name, sizeof attr.name));
}

bool same_dims(const rknn_tensor_attr& a, const rknn_tensor_attr& b) {
  return a.n_dims == b.n_dims && a.n_dims <= RKNN_MAX_DIMS &&
         std::memcmp(a.dims, b.dims, a.n_dims * sizeof a.dims[0]) == 0;
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

/// The row pitch after a change of shape: the one that INPUT_ATTR tells and the one without padding
/// follow the width, one of the caller's own stays.
std::uint32_t next_stride(const Bound& bound, const IoTensor& now, const Chip& chip) {
  const std::uint32_t stride = bound.form.w_stride;
  if (stride == 0 || bound.shape.rank() != 4) return stride;
  IoTensor before = now;
  before.shape = bound.shape;
  if (stride == normal_attr(before, chip).w_stride) return normal_attr(now, chip).w_stride;
  return stride == static_cast<std::uint64_t>(bound.shape[3]) ? 0 : stride;
}

}  // namespace

/// Inputs and outputs share their numbers: the name decides, then number and dimensions.
Result<IoTensor> ModelContext::resolve(const rknn_tensor_attr& attr) const {
  const std::string name = name_of(attr);
  std::vector<IoTensor> named, numbered;
  auto collect = [&](const IoTensor& io) {
    const std::string& own = io.entry->desc.name;
    if (!name.empty() && own.compare(0, sizeof attr.name - 1, name) == 0) named.push_back(io);
    if (io.index == attr.index) numbered.push_back(io);
  };
  for (std::size_t i = 0; i < description_->inputs.size(); ++i) collect(current_input(i));
  for (std::size_t i = 0; i < description_->outputs.size(); ++i) collect(current_output(i));
  if (!name.empty() && named.empty()) {
    std::string known;
    for (const auto* side : {&description_->inputs, &description_->outputs})
      for (const IoEntry& entry : *side) known += " '" + entry.desc.name + "'";
    return error(Code::kNotFound, "no input or output is named '{}'; there are{}", name, known);
  }
  std::vector<IoTensor>& candidates = named.empty() ? numbered : named;
  if (candidates.size() == 1) return candidates.front();
  const IoTensor* best = nullptr;
  int best_points = 0;
  bool tie = false;
  for (const IoTensor& io : candidates) {
    const int points = 2 * likeness(attr, io, chip_) + (io.index == attr.index ? 1 : 0);
    if (points == best_points) tie = true;
    if (points > best_points) best = &io, best_points = points, tie = false;
  }
  if (best == nullptr || tie || likeness(attr, *best, chip_) == 0)
    return error(Code::kInvalidArgument,
                 "name '{}' and index {} do not tell which input or output is meant ({} fit); pass "
                 "the attr that rknn_query filled in, with its name and dims",
                 name, attr.index, candidates.size());
  return *best;
}

Status ModelContext::bind(const IoTensor& io, const Bound& bound) {
  CORELANE_ASSIGN(ViewPlan plan, plan_view(io, bound.form, chip_));
  const Memory& memory = *bound.memory;
  if (memory.size < plan.bytes)
    return error(Code::kInvalidArgument,
                 "{} {} '{}' takes {} bytes as {}{}, mem has {}; allocate size_with_stride of "
                 "the queried attr, or n_elems x the bytes of the type",
                 io.side == Side::kInput ? "input" : "output", io.index, io.entry->desc.name,
                 plan.bytes, type_name(bound.form.type),
                 bound.form.w_stride == 0
                     ? std::string()
                     : fmt::format(" with rows of w_stride {} pixels", bound.form.w_stride),
                 memory.size);
  if (io.side == Side::kInput) check::input_bound(memory, plan.bytes);
  plan.view.data = memory.data;
  plan.view.size = plan.bytes;
  const TensorDesc& own = io.entry->desc;
  const bool untouched = plan.view.dtype == own.dtype && plan.view.layout == Layout{} &&
                         plan.view.quant == Quant{} && plan.convert.mean.empty() &&
                         plan.convert.std.empty() && memory.buffer != nullptr;
  for (Frame& frame : frames_) {
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

Outcome ModelContext::set_io_mem(const rknn_tensor_mem* mem, const rknn_tensor_attr& attr) {
  auto memory = find_memory(mem);
  if (!memory) return memory.error();
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if (Status status = ready(); !status.ok() && pending_ != nullptr) return status;
  (void)settle_all();
  auto io = resolve(attr);
  if (!io) return io.error();
  // Looked at last: the attr of a program of 1.2.0 ends before it.
  if (io->shape.rank() == 4 && io->shape[0] > 1 && attr.h_stride != 0 &&
      attr.h_stride != static_cast<std::uint64_t>(io->shape[2]))
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "h_stride {} differs from the height {}, which is not supported for batches; "
                   "leave it 0",
                   attr.h_stride, io->shape[2]);
  Bound bound{*std::move(memory), {attr.type, attr.fmt, attr.pass_through != 0, 0}};
  // The row pitch is an input's; blocks of channels have none.
  if (io->side == Side::kInput && attr.fmt != RKNN_TENSOR_NC1HWC2)
    bound.form.w_stride = attr.w_stride;
  if (attr.fmt == RKNN_TENSOR_NC1HWC2) bound.form.pass_through = true;
  if (attr.fmt == RKNN_TENSOR_NCHW) bound.form.w_stride = 0;
  if (check::enabled()) [[unlikely]] {
    check_attr(*io, attr);
    bound.call = check::current();
  }
  bound.shape = io->shape;
  if (Status status = bind(*io, bound); !status.ok()) return status;
  (io->side == Side::kInput ? bound_inputs_ : bound_outputs_)[io->index] = std::move(bound);
  return {};
}

/// After the shapes have changed: memory that still fits stays bound.
Status ModelContext::rebind_all(std::string_view function) {
  auto again = [this, function](std::vector<std::optional<Bound>>& bounds, bool input) {
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      if (!bounds[i]) continue;
      const IoTensor io = input ? current_input(i) : current_output(i);
      bounds[i]->form.w_stride = next_stride(*bounds[i], io, chip_);
      bounds[i]->shape = io.shape;
      const Status status = bind(io, *bounds[i]);
      if (status.ok()) continue;
      log::line(
          log::Level::kWarn,
          "{}: {}; it is not bound any more, call rknn_set_io_mem again with the CURRENT attr",
          function, status.to_string());
      if (check::enabled())
        check::report(check::current(), "memory bound by {} is stale: {}; it is not bound any more",
                      check::text(bounds[i]->call), status.message());
      bounds[i].reset();
      for (Frame& frame : frames_)
        CORELANE_TRY(input ? frame.context.unbind_input(i) : frame.context.unbind_output(i));
    }
    return Status();
  };
  CORELANE_TRY(again(bound_inputs_, true));
  return again(bound_outputs_, false);
}

}  // namespace corelane::rknn
