#include "onnx/infer/onnx_facts.h"

#include <algorithm>

#include "base/leaked.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {
namespace {

/// What is worth keeping of a constant: shapes, axes, scales. A model may hold a great many of
/// them, so the values must not take much more memory than they do in the file: each is 8 bytes
/// here.
std::size_t most_values(std::int32_t elem) { return onnx_type_bits(elem) >= 32 ? 64 : 8; }

}  // namespace

bool ValueFacts::known_ints() const {
  return ints && std::find(ints->begin(), ints->end(), kUnknownInt) == ints->end();
}

std::optional<std::int64_t> ValueFacts::one_int() const {
  return known_ints() && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
}

const ValueFacts& FactsTable::of(const std::string& name) const {
  static Leaked<const ValueFacts> nothing;
  // "" is an input that is left out.
  if (name.empty()) return *nothing;
  const auto it = facts_.find(name);
  if (it != facts_.end()) return it->second;
  return outer_ != nullptr ? outer_->of(name) : *nothing;
}

void FactsTable::learn(const ::onnx::ValueInfoProto& value) {
  ValueFacts& facts = facts_[value.name()];
  if (facts.elem == 0) facts.elem = elem_type_of(value.type());
  if (!facts.shape) facts.shape = shape_of(value.type());
}

void FactsTable::learn(const std::string& name, const ::onnx::TensorProto& tensor,
                       ByteSpan constants) {
  ValueFacts facts;
  facts.elem = tensor.data_type();
  // Dimensions were checked when the tensors were taken.
  facts.shape = Shape(std::vector<std::int64_t>(tensor.dims().begin(), tensor.dims().end()));
  const auto elements = facts.shape->elements();
  if (elements && *elements <= most_values(tensor.data_type())) {
    facts.ints = read_ints(tensor, constants);
    if (!facts.ints && facts.shape->rank() <= 1 && onnx_type_bits(tensor.data_type()) > 8)
      facts.floats = read_floats(tensor, constants);
  }
  facts_[name] = std::move(facts);
}

}  // namespace corelane::onnx
