// Rules about element types and about nodes whose result is known without running them.
#include <algorithm>
#include <array>

#include "onnx/graph/onnx_tensor.h"
#include "onnx/lowering/onnx_inline.h"
#include "onnx/lowering/onnx_rules.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// A Cast to the type of input 1, whose values do not count.
Result<bool> cast_like(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t to = r.of(input_of(node, 1)).elem;
  if (to == 0) return false;
  Attrs attrs{{"to", to}};
  // For 8-bit floats; Cast has both attributes with the same meaning.
  if (const auto* a = find_attribute(node, "saturate")) attrs.emplace_back("saturate", a->i());
  if (const auto* a = find_attribute(node, "round_mode")) attrs.emplace_back("round_mode", a->s());
  return r.instead(node, "Cast", {node.input(0)}, attrs);
}

/// Casts between integers of one width keep the bits, which is what Cast does with them.
Result<bool> bit_cast(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t from = r.of(node.input(0)).elem;
  const auto to = static_cast<std::int32_t>(int_attribute(node, "to", 0));
  const auto integer = [](std::int32_t t) {
    return is_integer(dtype_from_onnx(t)) || dtype_from_onnx(t) == DType::kBool;
  };
  if (!integer(from) || !integer(to) || onnx_type_bits(from) != onnx_type_bits(to) ||
      dtype_from_onnx(to) == DType::kBool) {
    return false;
  }
  return r.instead(node, "Cast", {node.input(0)}, {{"to", to}});
}

/// NaN is true; the engine says false. It has no range for 8-bit floats, whose largest finite value
/// stands for what is beyond.
Result<bool> float_cast(Rewriter& r, const ::onnx::NodeProto& node) {
  const std::int32_t from = r.of(node.input(0)).elem;
  const auto to = static_cast<std::int32_t>(int_attribute(node, "to", 0));
  if (!is_float(dtype_from_onnx(from)) || r.is_fixed(node.input(0))) return false;
  if (to == T::FLOAT8E4M3FN || to == T::FLOAT8E4M3FNUZ || to == T::FLOAT8E5M2 ||
      to == T::FLOAT8E5M2FNUZ)
    return r.unfit(node, "values beyond the range of 8-bit floats become others in the engine");
  if (to != T::BOOL) return false;
  return r.instead(node, "Not", {r.add("Equal", {node.input(0), r.scalar(from, 0)})});
}

/// Clip and the recurrences. In the standard they take no type of less than a byte; other operators
/// with such a type are refused by the engine.
Result<bool> narrow_type(Rewriter& r, const ::onnx::NodeProto& node) {
  const DType dtype = dtype_from_onnx(r.of(node.input(0)).elem);
  if (dtype == DType::kUndefined || dtype_bits(dtype) >= 8) return false;
  return r.unfit(node, "numbers of less than a byte end the process in the engine");
}

/// In place of a bound that is left out, the engine reads the largest or smallest number of the
/// type from a table, and reads past it for a type that the table lacks.
Result<bool> unbounded_clip(Rewriter& r, const ::onnx::NodeProto& node) {
  constexpr std::array kInTable{T::FLOAT, T::FLOAT16, T::BFLOAT16, T::DOUBLE, T::INT8,   T::INT16,
                                T::INT32, T::INT64,   T::UINT8,    T::UINT16, T::UINT32, T::UINT64};
  const bool bounded = (!input_of(node, 1).empty() && !input_of(node, 2).empty()) ||
                       find_attribute(node, "min") != nullptr ||
                       find_attribute(node, "max") != nullptr;
  const std::int32_t elem = r.of(node.input(0)).elem;
  if (bounded || std::ranges::find(kInTable, elem) != kInTable.end()) return false;
  return r.unfit(node, "a type without a largest number ends the process in the engine");
}

/// The branch's nodes take the place of the If; the other branch is gone.
Result<bool> constant_if(Rewriter& r, const ::onnx::NodeProto& node) {
  const auto condition = r.of(node.input(0)).one_int();
  if (!condition) return false;
  const auto* branch = find_attribute(node, *condition != 0 ? "then_branch" : "else_branch");
  // A branch has no inputs: it reads the values around it by name.
  if (branch == nullptr || !branch->has_g() || branch->g().input_size() != 0) return false;
  const Names outputs = inline_graph(r, branch->g(), {}, inline_constants(r, branch->g()));
  for (int i = 0; i < node.output_size() && i < branch->g().output_size(); ++i)
    if (has_output(node, i))
      r.define({node.output(i)}, "Identity", {outputs[static_cast<std::size_t>(i)]});
  return true;
}

constexpr Rule kCastRules[] = {
    {"CastLike", cast_like, "the type is known: a Cast"},
    {"Cast", float_cast, "floats to bool: those that are not 0"},
    {"BitCast", bit_cast, "between integers of one width: a Cast"},
    {"Clip", narrow_type, "of 4-bit numbers: refused"},
    {"Clip", unbounded_clip, "of a type whose bounds the engine does not know: refused"},
    {"GRU", narrow_type, "of 4-bit numbers: refused"},
    {"LSTM", narrow_type, "of 4-bit numbers: refused"},
    {"RNN", narrow_type, "of 4-bit numbers: refused"},
    {"If", constant_if, "the condition is known: replaced by its branch"},
};

}  // namespace

std::span<const Rule> cast_rules() { return kCastRules; }

}  // namespace corelane::onnx
