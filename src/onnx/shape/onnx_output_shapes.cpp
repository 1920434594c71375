#include "onnx/shape/onnx_output_shapes.h"

#include "base/guard.h"
#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_held_model.h"
#include "onnx/graph/onnx_stored.h"
#include "onnx/infer/onnx_graph_facts.h"
#include "onnx/shape/onnx_freeze.h"

namespace corelane::onnx {
namespace {

/// As an import with these shapes would know them.
std::vector<std::optional<Shape>> outputs_of(const ::onnx::ModelProto& model, ByteSpan constants) {
  const ::onnx::GraphProto& graph = model.graph();
  const FactsTable facts = facts_of(graph, opset_of(model), constants);
  std::vector<std::optional<Shape>> shapes;
  for (const auto& output : graph.output()) {
    const ValueFacts& known = facts.of(output.name());
    shapes.push_back(known.is_static() ? known.shape : std::nullopt);
  }
  return shapes;
}

}  // namespace

Result<std::vector<std::vector<std::optional<Shape>>>> infer_output_shapes(
    ByteSpan graph, ByteSpan constants, std::span<const std::vector<Shape>> sets) {
  using Found = std::vector<std::vector<std::optional<Shape>>>;
  return no_throw("the inference of shapes", [&]() -> Result<Found> {
    const HeldModel held;
    ::onnx::ModelProto& model = *held;
    if (const auto stored = read_stored(graph, constants, model); !stored)
      return error(stored.error());
    const HeldModel kept;
    kept->mutable_graph()->Swap(model.mutable_graph());
    const ::onnx::GraphProto& given = kept->graph();
    const std::vector<int> inputs = real_inputs(given);
    Found found;
    for (const auto& set : sets) {
      if (set.size() != inputs.size()) {
        return error(Code::kMalformed, "{} shapes for a network of {} inputs", set.size(),
                     inputs.size());
      }
      ImportOptions options;
      for (std::size_t i = 0; i < set.size(); ++i)
        options.input_shapes[given.input(inputs[i]).name()] = set[i];
      *model.mutable_graph() = given;
      CORELANE_TRY(freeze_dims(*model.mutable_graph(), options));
      found.push_back(outputs_of(model, constants));
    }
    return found;
  });
}

Result<std::vector<std::optional<Shape>>> shapes_from_inputs(
    ByteSpan graph, ByteSpan constants, const std::map<std::string, Shape>& inputs) {
  using Found = std::vector<std::optional<Shape>>;
  return no_throw("the inference of shapes", [&]() -> Result<Found> {
    google::protobuf::Arena arena;
    CORELANE_ASSIGN(::onnx::ModelProto* const model, reread_stored(graph, arena));
    ::onnx::GraphProto& own = *model->mutable_graph();
    own.clear_value_info();
    for (auto& output : *own.mutable_output())
      if (output.type().has_tensor_type())
        output.mutable_type()->mutable_tensor_type()->clear_shape();
    ImportOptions options;
    options.input_shapes.insert(inputs.begin(), inputs.end());
    CORELANE_TRY(freeze_dims(own, options));
    return outputs_of(*model, constants);
  });
}

}  // namespace corelane::onnx
