#include "onnx/shape/onnx_freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "onnx/graph/onnx_describe.h"

namespace corelane::onnx {
namespace {

using Symbols = std::map<std::string, std::int64_t>;

/// Exporters write "?" for every dimension they know nothing of, so two of them need not be equal.
bool is_symbol(const std::string& name) { return !name.empty() && name != "?"; }

/// Symbols that have a value now get it in all declarations, those of inner values too.
void replace_everywhere(::onnx::GraphProto& graph, const Symbols& symbols) {
  if (symbols.empty()) return;
  for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
    for (auto& value : *list) {
      if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) continue;
      auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
      for (auto& d : *shape.mutable_dim())
        if (const auto it = symbols.find(d.dim_param()); d.has_dim_param() && it != symbols.end())
          d.set_dim_value(it->second);
    }
  }
}

std::string joined(const std::set<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// The declared dimensions of one input become `shape`'s; symbols learn their values.
Status fix_input(::onnx::ValueInfoProto& input, const Shape& shape, Symbols& symbols) {
  if (!input.type().has_tensor_type()) {
    return error(Code::kInvalidArgument, "a shape for input '{}', which is not a tensor",
                 input.name());
  }
  const auto declared = shape_of(input.type());
  auto& target = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  // No rank declared: the given one.
  if (!declared) {
    for (std::size_t i = 0; i < shape.rank(); ++i) target.add_dim();
  } else if (declared->rank() != shape.rank()) {
    return error(Code::kShapeMismatch, "input '{}': shape {} was given, {} is declared",
                 input.name(), shape.to_string(), declared->to_string())
        .with(Detail::kInput, input.name())
        .with(Detail::kGiven, shape.to_string())
        .with(Detail::kAllowed, declared->to_string());
  }
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    auto& d = *target.mutable_dim(static_cast<int>(i));
    // An open dimension in the option leaves the declared one as it is.
    if (shape[i] == Shape::kOpen) continue;
    const bool fixed = declared && (*declared)[i] != Shape::kOpen;
    if (shape[i] < 0 || (fixed && (*declared)[i] != shape[i])) {
      return error(Code::kShapeMismatch,
                   "input '{}': shape {} was given, {} is declared ('?' accepts any size)",
                   input.name(), shape.to_string(), declared ? declared->to_string() : "any")
          .with(Detail::kInput, input.name())
          .with(Detail::kGiven, shape.to_string())
          .with(Detail::kAllowed, declared ? declared->to_string() : "any");
    }
    // One symbol, one size, in all inputs.
    if (d.has_dim_param() && is_symbol(d.dim_param())) {
      const auto [it, fresh] = symbols.emplace(d.dim_param(), shape[i]);
      if (!fresh && it->second != shape[i]) {
        return error(Code::kShapeMismatch,
                     "input '{}': shape {} sets the dimension '{}' to {}, but elsewhere it is {}",
                     input.name(), shape.to_string(), d.dim_param(), shape[i], it->second)
            .with(Detail::kInput, input.name())
            .with(Detail::kDimension, d.dim_param())
            .with(Detail::kGiven, shape[i])
            .with(Detail::kAllowed, it->second);
      }
    }
    d.set_dim_value(shape[i]);
  }
  return {};
}

/// "INPUT[AXIS]" names an open dimension that has no name of its own. Null where it names none.
::onnx::TensorShapeProto::Dimension* unnamed_dim(::onnx::GraphProto& graph,
                                                 const std::string& text) {
  const auto open = text.rfind('[');
  if (open == std::string::npos || text.back() != ']') return nullptr;
  for (const int i : real_inputs(graph)) {
    auto& input = *graph.mutable_input(i);
    if (input.name() != text.substr(0, open)) continue;
    // What has no rank yet must not get one here.
    if (!input.type().tensor_type().has_shape()) return nullptr;
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      auto& dim = *shape.mutable_dim(axis);
      const bool fixed = dim.has_dim_value() && dim.dim_value() >= 0;
      if (text.substr(open) == fmt::format("[{}]", axis))
        return fixed || is_symbol(dim.dim_param()) ? nullptr : &dim;
    }
  }
  return nullptr;
}

/// The sizes that `options.dims` gives to symbols of the inputs; dimensions without one are fixed.
Result<Symbols> given_symbols(::onnx::GraphProto& graph, const ImportOptions& options) {
  std::set<std::string> known_symbols;
  for (const int i : real_inputs(graph)) {
    for (const auto& d : graph.input(i).type().tensor_type().shape().dim())
      if (is_symbol(d.dim_param())) known_symbols.insert(d.dim_param());
  }
  Symbols symbols;
  for (const auto& [symbol, value] : options.dims) {
    auto* const unnamed = known_symbols.contains(symbol) ? nullptr : unnamed_dim(graph, symbol);
    if (!known_symbols.contains(symbol) && unnamed == nullptr) {
      return error(Code::kNotFound,
                   "no input has a dimension '{}'; there are: {} (one without a name is "
                   "INPUT[AXIS])",
                   symbol, joined(known_symbols))
          .with(Detail::kDimension, symbol)
          .with(Detail::kAllowed, joined(known_symbols));
    }
    // An empty dimension would leave nothing to compute.
    if (value < 1) {
      return error(Code::kInvalidArgument, "dimension '{}' = {}; 1 or more is allowed", symbol,
                   value)
          .with(Detail::kDimension, symbol)
          .with(Detail::kGiven, value);
    }
    if (unnamed != nullptr)
      unnamed->set_dim_value(value);
    else
      symbols.emplace(symbol, value);
  }
  return symbols;
}

/// Fixes dimension 0 of all inputs at once, or of none: where another dimension stays open, the
/// model is run with several shapes anyway.
Status fix_open_batch(::onnx::GraphProto& graph, std::uint32_t batch) {
  if (batch == 0) return {};
  std::vector<std::pair<int, Shape>> fixed;
  for (const int i : real_inputs(graph)) {
    auto shape = shape_of(graph.input(i).type());
    if (!shape) return {};
    if (shape->is_static()) continue;
    (*shape)[0] = batch;
    if (!shape->is_static()) return {};
    fixed.emplace_back(i, *std::move(shape));
  }
  Symbols symbols;
  for (const auto& [i, shape] : fixed)
    CORELANE_TRY(fix_input(*graph.mutable_input(i), shape, symbols));
  replace_everywhere(graph, symbols);
  return {};
}

}  // namespace

Status freeze_dims(::onnx::GraphProto& graph, const ImportOptions& options) {
  CORELANE_ASSIGN(Symbols symbols, given_symbols(graph, options));
  const auto inputs = real_inputs(graph);
  // Names are checked before anything is changed.
  std::set<std::string> names;
  for (const int i : inputs) names.insert(graph.input(i).name());
  for (const auto& [name, shape] : options.input_shapes) {
    if (!names.contains(name)) {
      return error(Code::kInvalidArgument, "a shape for '{}'; the inputs are: {}", name,
                   joined(names));
    }
  }
  for (const int i : inputs) {
    auto& input = *graph.mutable_input(i);
    const auto it = options.input_shapes.find(input.name());
    if (it != options.input_shapes.end()) CORELANE_TRY(fix_input(input, it->second, symbols));
  }
  replace_everywhere(graph, symbols);
  return fix_open_batch(graph, options.open_batch);
}

Result<std::vector<std::vector<Shape>>> check_shape_sets(const std::vector<IoEntry>& inputs,
                                                         const ImportOptions& options) {
  std::vector<std::vector<Shape>> sets;
  for (std::size_t k = 0; k < options.shape_sets.size(); ++k) {
    const auto& set = options.shape_sets[k];
    if (set.size() != inputs.size()) {
      return error(Code::kInvalidArgument,
                   "shape set {} gives {} shapes; the model has {} inputs, and each set names all",
                   k, set.size(), inputs.size());
    }
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (inputs[i].desc.shape.accepts(set[i])) continue;
      return error(Code::kShapeMismatch,
                   "shape set {}: {} for input '{}'; a static shape that fits {} is allowed", k,
                   set[i].to_string(), inputs[i].desc.name, inputs[i].desc.shape.to_string());
    }
    // Each set is compiled, so the same one twice would be twice the work.
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
  }
  return sets;
}

}  // namespace corelane::onnx
