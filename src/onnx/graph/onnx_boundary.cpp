#include "onnx/graph/onnx_boundary.h"

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {
namespace {

struct QuantForm {
  DType dtype = DType::kUndefined;
  Quant quant;
  bool operator==(const QuantForm&) const = default;
};

bool is_quantized_type(DType t) {
  return t == DType::kI8 || t == DType::kU8 || t == DType::kI16 || t == DType::kU16;
}

/// A standard operator, or the one of that name in ONNX Runtime's domain.
bool is_op_of_either(const ::onnx::NodeProto& node, std::string_view type) {
  return node.op_type() == type &&
         (is_standard_domain(node.domain()) || node.domain() == "com.microsoft");
}

/// Parameters of a QuantizeLinear or DequantizeLinear; nullopt unless they are constant and have
/// a form that Quant can express.
std::optional<QuantForm> form_of(const ::onnx::NodeProto& node, const GraphIndex& index,
                                 ByteSpan constants, const Shape& shape) {
  const auto* scale = index.constant(input_of(node, 1));
  const std::string& zero_name = input_of(node, 2);
  const auto* zero = index.constant(zero_name);
  if (scale == nullptr || (!zero_name.empty() && zero == nullptr)) return std::nullopt;
  // Blocks have a scale each, of which Quant knows none.
  if (int_attribute(node, "block_size", 0) != 0) return std::nullopt;
  const auto scales = read_floats(*scale, constants);
  if (!scales || scales->empty() || scale->dims_size() > 1) return std::nullopt;

  QuantForm form;
  // ONNX: u8 when neither zero point nor output_dtype says otherwise.
  form.dtype = DType::kU8;
  if (zero != nullptr)
    form.dtype = dtype_from_onnx(zero->data_type());
  else if (const auto type = int_attribute(node, "output_dtype", 0); type != 0)
    form.dtype = dtype_from_onnx(type);
  if (!is_quantized_type(form.dtype)) return std::nullopt;
  form.quant.kind = QuantKind::kAffine;
  form.quant.scales.assign(scales->begin(), scales->end());
  form.quant.zero_points.assign(scales->size(), 0);
  if (zero != nullptr) {
    const auto points = read_ints(*zero, constants);
    if (!points || points->size() != scales->size()) return std::nullopt;
    form.quant.zero_points.assign(points->begin(), points->end());
  }
  // ONNX: axis 1 unless it is given, negative ones from the end.
  if (scales->size() > 1) {
    std::int64_t axis = int_attribute(node, "axis", 1);
    if (axis < 0) axis += static_cast<std::int64_t>(shape.rank());
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.rank())) return std::nullopt;
    form.quant.axis = static_cast<std::int32_t>(axis);
  }
  if (!form.quant.check(shape).ok()) return std::nullopt;
  return form;
}

void adopt(const QuantForm& form, IoEntry& entry) {
  entry.quant_dtype = form.dtype;
  entry.quant = form.quant;
}

}  // namespace

void find_input_quant(const GraphIndex& index, ByteSpan constants, IoEntry& entry) {
  // An input that is handed out again must stay the float it is.
  if (!is_float(entry.desc.dtype) || index.is_output(entry.desc.name)) return;
  std::optional<QuantForm> common;
  // One integer form for all readers: a client's integers are dequantised once.
  for (const auto* reader : index.readers(entry.desc.name)) {
    if (!is_op_of_either(*reader, "QuantizeLinear") || input_of(*reader, 0) != entry.desc.name)
      return;
    const auto form = form_of(*reader, index, constants, entry.desc.shape);
    if (!form || (common && *common != *form)) return;
    common = form;
  }
  if (common) adopt(*common, entry);
}

void find_output_quant(const GraphIndex& index, ByteSpan constants, IoEntry& entry) {
  if (!is_float(entry.desc.dtype)) return;
  const auto* producer = index.producer(entry.desc.name);
  if (producer == nullptr || !is_op_of_either(*producer, "DequantizeLinear")) return;
  auto form = form_of(*producer, index, constants, entry.desc.shape);
  if (!form) return;
  if (input_of(*producer, 2).empty()) {
    // Without a zero point the type is that of the quantised value.
    const auto* quantise = index.producer(producer->input(0));
    if (quantise == nullptr || !is_op_of_either(*quantise, "QuantizeLinear")) return;
    const auto made = form_of(*quantise, index, constants, entry.desc.shape);
    if (!made || made->quant != form->quant) return;
    form = made;
  }
  adopt(*form, entry);
}

}  // namespace corelane::onnx
