#include "drivers/virtual/engine/empty_inputs.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/onnx_node.h"

namespace corelane::drivers::virtual_npu {
namespace {

using enum onnx_fields::Number;

/// Follows values without elements through a graph and those within its nodes. Nodes are in order,
/// and names within a node are none of those around it.
class Walk {
 public:
  explicit Walk(const std::vector<GraphValue>& inputs) : fine_(inputs.size(), true) {
    for (std::size_t i = 0; i < inputs.size(); ++i) empty_[inputs[i].name] = {i};
  }

  Status graph(ByteSpan message, bool top) {
    for (WireReader parts(message); !parts.at_end();) {
      CORELANE_ASSIGN(const WireField part, parts.next());
      if (part.is_bytes(kGraphNode)) CORELANE_TRY(node(part.payload));
      // What becomes of it after the node is not looked at.
      if (part.is_bytes(kGraphOutput) && !top) {
        CORELANE_ASSIGN(const std::string_view name, name_of(part.payload));
        leave(name);
      }
    }
    return {};
  }

  std::vector<bool> take() { return std::move(fine_); }

 private:
  static Result<std::string_view> name_of(ByteSpan value) {
    std::string_view name;
    for (WireReader fields(value); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(1)) name = field.text();
    }
    return name;
  }

  /// Something reads the value that an empty one is not for.
  void leave(std::string_view name) {
    if (const auto found = empty_.find(name); found != empty_.end())
      for (const std::size_t input : found->second) fine_[input] = false;
  }

  Status node(ByteSpan message) {
    CORELANE_ASSIGN(const NodeLinks step, read_links(message));
    const bool standard = step.domain.empty();
    const bool joins = standard && step.op == "Concat";
    if (joins || (standard && (step.op == "Identity" || step.op == "Cast")))
      hand_on(step);
    else if (!standard || (step.op != "Shape" && step.op != "Size"))
      for (const std::string_view input : step.inputs) leave(input);
    for (const ByteSpan attribute : step.attributes) {
      for (WireReader fields(attribute); !fields.at_end();) {
        CORELANE_ASSIGN(const WireField field, fields.next());
        if (field.is_bytes(kAttributeGraph) || field.is_bytes(kAttributeGraphs))
          CORELANE_TRY(graph(field.payload, false));
      }
    }
    return {};
  }

  /// The result has no elements where none of the values has any.
  void hand_on(const NodeLinks& step) {
    std::vector<std::size_t> all;
    for (const std::string_view input : step.inputs) {
      const auto found = empty_.find(input);
      if (found == empty_.end()) return;
      all.insert(all.end(), found->second.begin(), found->second.end());
    }
    empty_[step.output] = std::move(all);
  }

  std::map<std::string_view, std::vector<std::size_t>> empty_;  ///< Value -> empty as these are.
  std::vector<bool> fine_;
};

}  // namespace

Result<std::vector<bool>> inputs_that_may_be_empty(const PatchedModel& model) {
  Walk walk(model.inputs);
  for (WireReader fields(as_byte_span(model.bytes)); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kModelGraph)) CORELANE_TRY(walk.graph(field.payload, true));
  }
  return walk.take();
}

Status refuse_empty(const std::string& input, const Shape& shape) {
  return error(Code::kOutOfRange,
               "input '{}' has no elements ({}), and OpenVINO does not compute what reads it; take "
               "engine=auto or engine=onnxruntime",
               input, shape.to_string())
      .with(Detail::kInput, input)
      .with(Detail::kGiven, shape.to_string());
}

}  // namespace corelane::drivers::virtual_npu
