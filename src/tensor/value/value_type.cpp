#include "corelane/tensor/value_type.h"

#include <array>
#include <utility>

namespace corelane {
namespace {

/// Names of element types within ONNX's texts, where they are not dtype_name()'s other words.
struct ElementName {
  DType type;
  std::string_view name;
};
constexpr std::array<ElementName, 24> kElements = {{
    {DType::kF32, "float"},
    {DType::kF16, "float16"},
    {DType::kBF16, "bfloat16"},
    {DType::kI4, "int4"},
    {DType::kI8, "int8"},
    {DType::kU8, "uint8"},
    {DType::kI16, "int16"},
    {DType::kU16, "uint16"},
    {DType::kI32, "int32"},
    {DType::kU32, "uint32"},
    {DType::kI64, "int64"},
    {DType::kU64, "uint64"},
    {DType::kBool, "bool"},
    {DType::kF64, "double"},
    {DType::kU4, "uint4"},
    {DType::kString, "string"},
    {DType::kF8E4M3FN, "float8e4m3fn"},
    {DType::kF8E4M3FNUZ, "float8e4m3fnuz"},
    {DType::kF8E5M2, "float8e5m2"},
    {DType::kF8E5M2FNUZ, "float8e5m2fnuz"},
    {DType::kF8E8M0, "float8e8m0"},
    {DType::kF4E2M1, "float4e2m1"},
    {DType::kI2, "int2"},
    {DType::kU2, "uint2"},
}};

std::string_view element_name(DType type) {
  for (const ElementName& e : kElements)
    if (e.type == type) return e.name;
  return "undefined";
}

DType element_named(std::string_view name) {
  for (const ElementName& e : kElements)
    if (e.name == name) return e.type;
  return DType::kUndefined;
}

/// Takes `prefix` and the last closing bracket off.
bool unwrap(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix) || !text.ends_with(')')) return false;
  text.remove_prefix(prefix.size());
  text.remove_suffix(1);
  return true;
}

}  // namespace

ValueType ValueType::inner() const {
  if (layers.empty()) return {};
  ValueType within = *this;
  within.layers.erase(within.layers.begin());
  return within;
}

std::string ValueType::to_string() const {
  if (empty()) return {};
  std::string text;
  for (const ValueLayer& layer : layers) {
    if (layer.kind == ValueKind::kSequence) text += "seq(";
    if (layer.kind == ValueKind::kOptional) text += "optional(";
    if (layer.kind == ValueKind::kMap) text += fmt::format("map({},", element_name(layer.key));
  }
  text += fmt::format("tensor({})", element_name(element));
  return text.append(layers.size(), ')');
}

Result<ValueType> parse_value_type(std::string_view text) {
  const std::string_view whole = text;
  const auto malformed = [&] {
    return error(Code::kMalformed,
                 "'{}' is not the type of a value; tensor(T), seq(...), map(K,...) and "
                 "optional(...) are, in at most {} layers",
                 whole, kMaxValueLayers);
  };
  ValueType type;
  while (!text.starts_with("tensor(")) {
    if (type.layers.size() == kMaxValueLayers) return malformed();
    if (unwrap(text, "seq(")) {
      type.layers.push_back({ValueKind::kSequence, DType::kUndefined});
    } else if (unwrap(text, "optional(")) {
      type.layers.push_back({ValueKind::kOptional, DType::kUndefined});
    } else if (unwrap(text, "map(")) {
      const std::size_t comma = text.find(',');
      const DType key = element_named(text.substr(0, comma));
      if (comma == std::string_view::npos || key == DType::kUndefined) return malformed();
      type.layers.push_back({ValueKind::kMap, key});
      text.remove_prefix(comma + 1);
    } else {
      return malformed();
    }
  }
  if (!unwrap(text, "tensor(")) return malformed();
  type.element = element_named(text);
  if (type.empty()) return malformed();
  return type;
}

ValueType border_type(ValueType declared, bool is_input) {
  const bool ordinary = declared.is_tensor() && declared.element != DType::kString;
  if (ordinary && (declared.shape || !is_input)) return {};
  return declared;
}

}  // namespace corelane
