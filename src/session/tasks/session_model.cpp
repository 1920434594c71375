#include "session/tasks/session_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/leaked.h"
#include "corelane/session/session.h"
#include "runtime/context/slot.h"
#include "runtime/program/shape_choice.h"

namespace corelane::session {
namespace {

/// "'a', 'b'", or "none".
template <class Named>
std::string names_of(const std::vector<Named>& list) {
  std::string names;
  for (const Named& item : list)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", item.name);
  return names.empty() ? "none" : names;
}

Result<std::size_t> index_of(const std::vector<TensorDesc>& descs, std::string_view name,
                             std::string_view what) {
  for (std::size_t i = 0; i < descs.size(); ++i)
    if (descs[i].name == name) return i;
  return error(Code::kNotFound, "there is no {} '{}'; the model has {}", what, name,
               names_of(descs));
}

/// What lenient inputs are converted from: the types that the vendor's library takes.
constexpr DType kLenient[] = {DType::kF32, DType::kF16, DType::kI8,  DType::kU8,  DType::kI16,
                              DType::kU16, DType::kI32, DType::kU32, DType::kI64, DType::kBool};

Shape nhwc_of(const Shape& s) { return {s[0], s[2], s[3], s[1]}; }
Shape nchw_of(const Shape& s) { return {s[0], s[3], s[1], s[2]}; }

/// `samples`: `given` is a batch that is to be split.
Status shape_mismatch(const std::string& name, const Shape& expected, const Shape& given,
                      bool samples) {
  std::string text = fmt::format("input '{}' shape mismatch: expected {}, got {}", name,
                                 expected.to_string(), given.to_string());
  if (samples && expected.rank() > 0 && expected[0] > 1)
    text = fmt::format(
        "input '{}' has {} fixed in dimension 0, and a batch is split into samples of 1; leave "
        "dimension 0 open or 1 in the model, or run without splitting",
        name, expected[0]);
  return error(Code::kShapeMismatch, "{}", text)
      .with(Detail::kInput, name)
      .with(Detail::kGiven, given.to_string())
      .with(Detail::kAllowed, expected.to_string());
}

}  // namespace

SessionModel::SessionModel(ProgramDescription description, std::vector<TensorDesc> inputs,
                           std::vector<TensorDesc> outputs, const SessionOptions& options)
    : description_(std::move(description)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      layout_(options.layout),
      rules_(options.input_rules),
      form_(options.output_form),
      open_shapes_(!description_.shape_sets.empty()),
      convert_(inputs_.size()) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (i >= description_.inputs.size()) continue;
    const IoEntry& entry = description_.inputs[i];
    open_shapes_ |= !entry.desc.shape.is_static();
    // Mean and std belong to images; the program has them for each input.
    if (options.normalize && entry.desc.shape.rank() == 4) {
      convert_[i].mean = entry.mean;
      convert_[i].std = entry.std;
    }
  }
  const auto is_static = [](const TensorDesc& desc) { return desc.shape.is_static(); };
  fixed_results_ = !open_shapes_ && std::ranges::all_of(outputs_, is_static);
}

bool SessionModel::is_nhwc(const Shape& shape) const noexcept {
  return shape.rank() == 4 && (layout_ == InputLayout::kNhwc || layout_ == InputLayout::kAny);
}

std::vector<TensorDesc> SessionModel::shown_inputs() const {
  std::vector<TensorDesc> shown = inputs_;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    // A context shows the shape it has now; callers want what is declared.
    if (i < description_.inputs.size()) {
      shown[i].shape = description_.inputs[i].desc.shape;
      shown[i].dim_names = description_.inputs[i].desc.dim_names;
    }
    if (!is_nhwc(shown[i].shape)) continue;
    shown[i].shape = nhwc_of(shown[i].shape);
    shown[i].layout = {LayoutKind::kNHWC, 0, 0};
    std::vector<std::string>& names = shown[i].dim_names;
    if (names.size() == 4) names = {names[0], names[2], names[3], names[1]};
  }
  return shown;
}

std::vector<TensorDesc> SessionModel::shown_outputs() const {
  std::vector<TensorDesc> shown = outputs_;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i < description_.outputs.size()) {
      shown[i].shape = description_.outputs[i].desc.shape;
      shown[i].dim_names = description_.outputs[i].desc.dim_names;
    }
    shown[i].dtype = result_dtype(i, shown[i].dtype);
    shown[i].quant = result_quant(i);
  }
  return shown;
}

Result<std::size_t> SessionModel::input_index(std::string_view name) const {
  return index_of(inputs_, name, "input");
}

Result<std::size_t> SessionModel::output_index(std::string_view name) const {
  return index_of(outputs_, name, "output");
}

/// The type itself, or the quantized form that the program declares; lenient inputs take more.
Status SessionModel::check_dtype(std::size_t index, const TensorView& given) const {
  const TensorDesc& desc = inputs_[index];
  if (!desc.value.empty() && (given.dtype != DType::kU8 || given.quant.kind != QuantKind::kNone)) {
    return error(Code::kTypeMismatch,
                 "input '{}' takes the flat form of a {} (corelane/tensor/value.h), given {}",
                 desc.name, desc.value.to_string(), dtype_name(given.dtype))
        .with(Detail::kInput, desc.name)
        .with(Detail::kGiven, dtype_name(given.dtype))
        .with(Detail::kAllowed, desc.value.to_string());
  }
  if (given.dtype == desc.dtype && given.quant.kind == QuantKind::kNone) return {};
  if (index < description_.inputs.size()) {
    const IoEntry& entry = description_.inputs[index];
    if (entry.quant_dtype != DType::kUndefined && given.dtype == entry.quant_dtype &&
        given.quant == entry.quant)
      return {};
  }
  const bool lenient = rules_ == InputRules::kLenient;
  if (lenient && desc.dtype != DType::kString && !is_opaque(desc.dtype) &&
      std::ranges::find(kLenient, given.dtype) != std::end(kLenient))
    return {};
  return error(Code::kTypeMismatch, "input '{}' takes {}, given {}{}", desc.name,
               dtype_name(desc.dtype), dtype_name(given.dtype),
               lenient ? "; f32, f16, i8, u8, i16, u16, i32, u32, i64 and bool are converted" : "")
      .with(Detail::kInput, desc.name)
      .with(Detail::kGiven, dtype_name(given.dtype))
      .with(Detail::kAllowed, dtype_name(desc.dtype));
}

Result<TensorView> SessionModel::check_input(std::size_t index, const TensorView& given,
                                             bool samples) const {
  const TensorDesc& desc = inputs_[index];
  CORELANE_TRY(check_dtype(index, given));
  TensorView view = given;
  // The dimensions are named in model order; the layout says how they lie. Nothing is copied.
  const bool swap = is_nhwc(given.shape) && given.layout.kind == LayoutKind::kPlain;
  if (swap) {
    view.shape = nchw_of(given.shape);
    view.layout = {LayoutKind::kNHWC, 0, given.layout.w_stride};
  }
  const Shape& declared =
      index < description_.inputs.size() ? description_.inputs[index].desc.shape : desc.shape;
  Shape one = view.shape;
  if (samples && one.rank() > 0) one[0] = 1;  // count_samples() refuses a batch of none.
  // A closed list is checked when all inputs are known.
  if (description_.shape_sets.empty() && !declared.accepts(one)) {
    const Shape expected = is_nhwc(declared) ? nhwc_of(declared) : declared;
    return error(shape_mismatch(desc.name, expected, given.shape, samples));
  }
  CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(view.shape, view.dtype, view.layout));
  if (view.size < bytes || (view.data == nullptr && bytes > 0)) {
    return error(Code::kInvalidArgument, "input '{}' {} takes {} bytes, {} were given", desc.name,
                 given.shape.to_string(), bytes, view.data == nullptr ? 0 : view.size);
  }
  return view;
}

Status SessionModel::check_samples() const {
  for (const auto* descs : {&inputs_, &outputs_})
    for (const TensorDesc& desc : *descs)
      if (!desc.value.empty())
        return error(Code::kUnsupported,
                     "'{}' is a {}, which has no samples to split a batch into; use run() or "
                     "submit()",
                     desc.name, desc.value.to_string());
  return {};
}

Result<std::vector<CallInput>> SessionModel::check_feed(const Feed& feed, bool samples) const {
  if (samples) CORELANE_TRY(check_samples());
  std::vector<CallInput> inputs(inputs_.size());
  std::vector<bool> seen(inputs_.size());
  // The first item decides, and the others must follow.
  const bool positional = !feed.empty() && feed.front().name.empty();
  if (positional && feed.size() != inputs_.size()) {
    return error(Code::kInvalidArgument, "the model has {} inputs ({}), given {} by position",
                 inputs_.size(), names_of(inputs_), feed.size());
  }
  for (std::size_t k = 0; k < feed.size(); ++k) {
    const FeedItem& item = feed[k];
    if (item.name.empty() != positional) {
      return error(Code::kInvalidArgument,
                   "give all inputs by name or all by position; the model has {}",
                   names_of(inputs_));
    }
    std::size_t index = k;
    if (!positional) {
      // The macro is two statements.
      CORELANE_ASSIGN(index, input_index(item.name));
    }
    if (seen[index])
      return error(Code::kInvalidArgument, "input '{}' is given twice", inputs_[index].name);
    seen[index] = true;
    CORELANE_ASSIGN(inputs[index].view, check_input(index, item.view, samples));
    inputs[index].keep = item.keep_alive;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) continue;
    return error(Code::kInvalidArgument, "missing input '{}': required {}, given {}",
                 inputs_[i].name, names_of(inputs_), names_of(feed))
        .with(Detail::kInput, inputs_[i].name);
  }
  CORELANE_TRY(check_shapes(inputs, samples));
  return inputs;
}

Status SessionModel::check_shapes(std::span<const CallInput> inputs, bool samples) const {
  if (description_.shape_sets.empty()) return {};
  std::vector<Shape> shapes;
  for (const CallInput& input : inputs) {
    shapes.push_back(input.view.shape);
    if (samples && shapes.back().rank() > 0) shapes.back()[0] = 1;
  }
  return runtime::check_shapes(description_, shapes);
}

Status SessionModel::choose_outputs(const std::vector<std::string>& names, Call& call) const {
  call.outputs.clear();
  call.order.clear();
  if (names.empty()) {
    call.outputs.resize(outputs_.size());
    for (std::size_t i = 0; i < outputs_.size(); ++i) call.outputs[i].index = i;
    return {};
  }
  // An output that is asked for twice is computed once.
  for (const std::string& name : names) {
    CORELANE_ASSIGN(const std::size_t index, output_index(name));
    const auto same = std::find_if(call.outputs.begin(), call.outputs.end(),
                                   [&](const CallOutput& o) { return o.index == index; });
    call.order.push_back(static_cast<std::size_t>(same - call.outputs.begin()));
    if (same == call.outputs.end()) call.outputs.emplace_back().index = index;
  }
  return {};
}

bool SessionModel::is_direct(std::size_t index, const TensorView& view) const noexcept {
  return convert_[index].mean.empty() && convert_[index].std.empty() &&
         runtime::is_program_form(inputs_[index], view);
}

/// Converted and normalised here, so that the run takes it as it is.
Status SessionModel::capture(std::size_t index, CallInput& input) const {
  const TensorDesc& desc = inputs_[index];
  CORELANE_ASSIGN(Tensor copy, Tensor::allocate(desc.name, desc.dtype, input.view.shape));
  const Status status = corelane::convert(input.view, copy.mutable_view(), convert_[index]);
  if (!status.ok()) return status.wrap(fmt::format("input '{}'", desc.name));
  input.view = copy.view();
  input.keep = copy.data;
  input.captured = true;
  return {};
}

const IoEntry* SessionModel::raw_output(std::size_t index) const noexcept {
  if (form_ != OutputForm::kRaw || index >= description_.outputs.size()) return nullptr;
  const IoEntry& entry = description_.outputs[index];
  return entry.quant_dtype == DType::kUndefined ? nullptr : &entry;
}

DType SessionModel::result_dtype(std::size_t index, DType native) const noexcept {
  const bool flat = index < outputs_.size() && !outputs_[index].value.empty();
  const bool kept = flat || native == DType::kString || is_opaque(native);
  if (form_ == OutputForm::kFloat) return kept ? native : DType::kF32;
  const IoEntry* const raw = raw_output(index);
  return raw == nullptr ? native : raw->quant_dtype;
}

const Quant& SessionModel::result_quant(std::size_t index) const noexcept {
  static Leaked<const Quant> none;
  const IoEntry* const raw = raw_output(index);
  return raw == nullptr ? *none : raw->quant;
}

}  // namespace corelane::session
