#include "drivers/virtual/direct/direct_network.h"

#include <algorithm>
#include <cstring>
#include <openvino/op/clamp.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/softmax.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "drivers/virtual/direct/direct_kernels.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// What the engine's call costs, in additions (about 0.25 ns each); above, the engine is faster.
constexpr std::size_t kMostWork = 4096;
constexpr std::size_t kMostConstants = kDirectConstantBytes / sizeof(float);

bool is_small_f32(const ov::Output<const ov::Node>& value) {
  if (value.get_element_type() != ov::element::f32 || value.get_partial_shape().is_dynamic())
    return false;
  const std::size_t count = ov::shape_size(value.get_shape());
  return count > 0 && count <= kMostConstants;
}

bool is_reshape(std::string_view type) {
  return type == "Reshape" || type == "Squeeze" || type == "Unsqueeze";
}

/// For each value of `y`, the value of an operand of shape `x` that it is computed from.
/// Dimensions are aligned at the last one, and one of size 1 repeats, as ONNX broadcasts.
std::vector<std::uint32_t> broadcast_table(const ov::Shape& x, const ov::Shape& y) {
  std::vector<std::uint32_t> table(ov::shape_size(y));
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::size_t rest = i;
    std::size_t stride = 1;
    std::size_t at = 0;
    for (std::size_t d = 0; d < y.size(); ++d) {
      const std::size_t coordinate = rest % y[y.size() - 1 - d];
      rest /= y[y.size() - 1 - d];
      if (d >= x.size()) continue;
      const std::size_t dim = x[x.size() - 1 - d];
      if (dim > 1) at += coordinate * stride;
      stride *= dim;
    }
    table[i] = static_cast<std::uint32_t>(at);
  }
  return table;
}

using Value = std::pair<const ov::Node*, std::size_t>;
struct ValueHash {
  std::size_t operator()(const Value& v) const noexcept {
    return std::hash<const ov::Node*>()(v.first) ^ v.second;
  }
};

}  // namespace

bool is_direct_operator(const ov::Node& node) {
  const std::string_view type = node.get_type_name();
  return type == "Parameter" || type == "Constant" || type == "Result" || type == "MatMul" ||
         type == "Softmax" || is_reshape(type) || find_elementwise(node) != nullptr;
}

/// Walks a network once; every add_*() is false where the network cannot run this way.
class DirectBuilder {
 public:
  /// Inputs by name: the engine may have dropped or reordered them.
  std::shared_ptr<const DirectNetwork> build(const ov::Model& network,
                                             std::span<const TensorDesc> inputs) {
    for (const auto& parameter : network.get_parameters()) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].name == parameter->get_friendly_name())
          values_[{parameter.get(), 0}] = {DirectOperand::Place::kInput, i};
    }
    for (const auto& node : network.get_ordered_ops())
      if (!add(*node) || work_ > kMostWork) return nullptr;
    for (const auto& result : network.get_results()) {
      const ov::Node& node = *result;
      if (!is_small_f32(node.output(0))) return nullptr;
      const ov::Shape& shape = node.output(0).get_shape();
      DirectOperand from = operand(node, 0);
      // Another output may be bound to the memory of the input that this one is.
      if (from.place == DirectOperand::Place::kInput && network.get_results().size() > 1)
        from = add_copy(from, ov::shape_size(shape));
      made_->results_.push_back({from, shape_of(shape), ov::shape_size(shape)});
    }
    return made_;
  }

 private:
  /// Operands are indexes, not pointers: the constants may still move while the network is built.
  static Value value_of(const ov::Node& node, std::size_t input) {
    const auto source = node.input_value(input);
    return {source.get_node(), source.get_index()};
  }
  DirectOperand operand(const ov::Node& node, std::size_t input) const {
    return values_.at(value_of(node, input));
  }

  /// Steps come in the engine's order, so that an operand is always there before it is read.
  bool add(const ov::Node& node) {
    const std::string_view type = node.get_type_name();
    if (type == "Result") return true;
    if (type == "Constant") return add_constant(node);
    if (node.get_output_size() != 1 || !is_small_f32(node.output(0))) return false;
    if (type == "Parameter") return values_.contains({&node, 0});
    for (std::size_t i = 0; i < node.get_input_size(); ++i) {
      const bool shape_only = i == 1 && is_reshape(type);
      if (!shape_only && !values_.contains(value_of(node, i))) return false;
    }
    if (is_reshape(type)) {
      values_[{&node, 0}] = operand(node, 0);
      return true;
    }
    if (type == "MatMul") return add_matmul(node);
    if (type == "Softmax") return add_softmax(node);
    return add_elementwise(node);
  }

  /// Other types are of no use to a step, except as the shape that Reshape has used already.
  bool add_constant(const ov::Node& node) {
    if (!is_small_f32(node.output(0))) return node.get_element_type() == ov::element::i64;
    const auto& constant = dynamic_cast<const ov::op::v0::Constant&>(node);
    const std::size_t count = ov::shape_size(constant.get_shape());
    std::vector<float>& all = made_->constants_;
    if (all.size() + count > kMostConstants) return false;
    values_[{&node, 0}] = {DirectOperand::Place::kConstant, all.size()};
    const auto* data = constant.get_data_ptr<float>();
    all.insert(all.end(), data, data + count);
    return true;
  }

  /// Every step writes memory of its own: no step overwrites what a later one or a result reads.
  DirectOperand append(DirectStep step, std::size_t count) {
    const std::size_t out = made_->scratch_;
    step.count = count;
    step.out = out;
    made_->scratch_ += count;
    made_->steps_.push_back(std::move(step));
    return {DirectOperand::Place::kScratch, out};
  }

  void add_step(const ov::Node& node, DirectStep step, std::size_t cost) {
    work_ += cost + 16;  // A step costs as much as a few values.
    values_[{&node, 0}] = append(std::move(step), ov::shape_size(node.output(0).get_shape()));
  }

  DirectOperand add_copy(const DirectOperand& from, std::size_t count) {
    DirectStep step;
    step.kernel = [](const DirectStep& self, const float* a, const float*, float* y) {
      std::memcpy(y, a, self.count * sizeof(float));
    };
    step.a = step.b = from;
    return append(std::move(step), count);
  }

  /// Shapes that differ cost more, since each value is looked up in a table.
  bool add_elementwise(const ov::Node& node) {
    const DirectOperator* found = find_elementwise(node);
    if (found == nullptr || node.get_input_size() != found->operands) return false;
    DirectStep step;
    step.kernel = found->kernel;
    step.a = operand(node, 0);
    step.b = operand(node, found->operands - 1);
    const ov::Shape& shape = node.output(0).get_shape();
    std::size_t cost = found->cost * ov::shape_size(shape);
    if (cost > kMostWork) return false;
    if (found->operands == 2) {
      const ov::Shape& a = node.input_value(0).get_shape();
      const ov::Shape& b = node.input_value(1).get_shape();
      if (node.get_autob().m_type != ov::op::AutoBroadcastType::NUMPY &&
          node.get_autob().m_type != ov::op::AutoBroadcastType::NONE) {
        return false;
      }
      if (a != shape || b != shape) {
        step.from_a = broadcast_table(a, shape);
        step.from_b = broadcast_table(b, shape);
        cost *= 4;
      }
    }
    if (const auto* clamp = dynamic_cast<const ov::op::v0::Clamp*>(&node)) {
      step.low = static_cast<float>(clamp->get_min());
      step.high = static_cast<float>(clamp->get_max());
    }
    add_step(node, std::move(step), cost);
    return true;
  }

  /// Plain matrices only. A transposed constant is turned once, here; other transposed operands are
  /// left to the engine.
  bool add_matmul(const ov::Node& node) {
    const auto* product = dynamic_cast<const ov::op::v0::MatMul*>(&node);
    const ov::Shape& a = node.input_value(0).get_shape();
    const ov::Shape& b = node.input_value(1).get_shape();
    if (product == nullptr || a.size() != 2 || b.size() != 2 || product->get_transpose_a())
      return false;
    DirectStep step;
    step.kernel = direct_matmul;
    step.m = a[0];
    step.k = a[1];
    step.n = product->get_transpose_b() ? b[0] : b[1];
    step.a = operand(node, 0);
    step.b = operand(node, 1);
    const std::size_t cost = step.m * step.n * step.k / 2 + step.m * step.k;
    if (cost > kMostWork) return false;
    if (product->get_transpose_b()) {
      if (step.b.place != DirectOperand::Place::kConstant) return false;
      step.b.at = transposed(step.b.at, step.n, step.k);
    }
    add_step(node, std::move(step), cost);
    return true;
  }

  /// A copy of a constant matrix, rows and columns exchanged.
  std::size_t transposed(std::size_t at, std::size_t rows, std::size_t columns) {
    std::vector<float>& all = made_->constants_;
    const std::size_t copy = all.size();
    all.resize(copy + rows * columns);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        all[copy + c * rows + r] = all[at + r * columns + c];
    return copy;
  }

  /// Over the last axis only, where the values of a row lie side by side.
  bool add_softmax(const ov::Node& node) {
    const ov::Shape& shape = node.output(0).get_shape();
    const auto last = static_cast<std::int64_t>(shape.size()) - 1;
    std::optional<std::int64_t> axis;
    if (const auto* old = dynamic_cast<const ov::op::v1::Softmax*>(&node))
      axis = static_cast<std::int64_t>(old->get_axis());
    else if (const auto* now = dynamic_cast<const ov::op::v8::Softmax*>(&node))
      axis = now->get_axis() < 0 ? now->get_axis() + last + 1 : now->get_axis();
    const std::size_t cost = 26 * ov::shape_size(shape);
    if (shape.empty() || axis != last || cost > kMostWork) return false;
    DirectStep step;
    step.kernel = direct_softmax;
    step.a = step.b = operand(node, 0);
    step.n = shape.back();
    add_step(node, std::move(step), cost);
    return true;
  }

  std::shared_ptr<DirectNetwork> made_ = std::make_shared<DirectNetwork>();
  std::unordered_map<Value, DirectOperand, ValueHash> values_;
  std::size_t work_ = 0;
};

std::shared_ptr<const DirectNetwork> DirectNetwork::make(const ov::Model& network,
                                                         std::span<const TensorDesc> inputs) {
  return DirectBuilder().build(network, inputs);
}

/// No check and no allocation: sizes were settled when the network was made.
void DirectNetwork::run(std::span<const float* const> inputs, std::span<float* const> outputs,
                        float* scratch) const noexcept {
  const auto find = [&](const DirectOperand& operand) -> const float* {
    switch (operand.place) {
      case DirectOperand::Place::kInput:
        return inputs[operand.at];
      case DirectOperand::Place::kConstant:
        return constants_.data() + operand.at;
      case DirectOperand::Place::kScratch:
        break;
    }
    return scratch + operand.at;
  };
  for (const DirectStep& step : steps_)
    step.kernel(step, find(step.a), find(step.b), scratch + step.out);
  // Last, since an output may be the memory of an input.
  for (std::size_t i = 0; i < results_.size(); ++i)
    std::memmove(outputs[i], find(results_[i].from), results_[i].count * sizeof(float));
}

}  // namespace corelane::drivers::virtual_npu
