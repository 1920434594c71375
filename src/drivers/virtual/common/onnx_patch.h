/// Prepares ONNX bytes for the engine and reads from them the facts that the engine does not
/// report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/executable.h"
#include "corelane/device/host_operator.h"

namespace corelane::drivers::virtual_npu {

/// An input or output of the graph as the model declares it.
struct GraphValue {
  std::string name;
  std::int64_t elem_type = 0;
  bool has_shape = false;
  Shape shape;
  ValueType type;  ///< As declared; empty where it says nothing that a tensor's type can be.
};

/// A node that runs as a host operator.
struct CustomNode {
  std::string type;
  std::string domain;
  std::string name;
  std::map<std::string, device::Attribute, std::less<>> attributes;
  /// From `corelane_output_dtypes` and `corelane_output_shapes`; empty when the model has none.
  std::vector<DType> output_dtypes;
  std::vector<Shape> output_shapes;
  /// Why it never runs, from `corelane_refusal` or of its attributes; empty where it may.
  std::string refusal;
  std::size_t input_count = 0;  ///< With those that are left out.
  std::size_t output_count = 0;
};

/// A constant whose bytes lie in the image.
struct ImageConstant {
  std::string name;
  ByteSpan bytes;
  DType dtype = DType::kUndefined;  ///< kUndefined where the element type has none of ours.
  Shape shape;
  bool top = false;  ///< An initializer of the network itself; else of a node, or a graph within.
};

/// Attribute that the patch adds to each custom node for OpenVINO: its index in
/// PatchedModel::custom_nodes.
inline constexpr const char* kCustomNodeAttribute = "corelane_node";
/// For ONNX Runtime each custom node becomes an operator of its own, of this domain and without
/// attributes, since that engine wants the types of an operator's outputs.
inline constexpr const char* kHostDomain = "corelane.host";
/// The name of the operator that custom node `index` becomes.
std::string host_operator_name(std::size_t index);

struct PatchedModel {
  std::string bytes;
  std::vector<GraphValue> inputs;   ///< Without those that are initialisers.
  std::vector<GraphValue> outputs;  ///< Declared ones, then the exposed values.
  std::vector<CustomNode> custom_nodes;
  std::vector<ImageConstant> image_constants;
  std::map<std::string, std::string, std::less<>> first_node;  ///< Operator type -> a node name.
  std::size_t nodes = 0;           ///< With those of functions and inner graphs.
  std::size_t constant_bytes = 0;  ///< Of all constants, in the image's own types.
  bool has_inner_graphs = false;
  bool has_planes = false;  ///< A constant has four dimensions, as weights for pictures have.
};

/// Which engine reads the patched model, and how constants that lie in the image are named to it.
enum class PatchFor : std::uint8_t {
  kOpenVino,     ///< By address: the spans must stay valid until the engine has read the model.
  kOnnxRuntime,  ///< As the image does: an offset in the file "corelane:constants".
};

/// Points external data into `image.constants` as `engine` needs it, writes options.input_shapes
/// into the inputs, numbers the custom nodes and turns options.exposed_values into outputs.
/// kMalformed (not an ONNX model, constants outside the segment), kInvalidArgument (shapes),
/// kNotFound (an exposed value).
Result<PatchedModel> patch_onnx(const device::Image& image, const device::PrepareOptions& options,
                                PatchFor engine = PatchFor::kOpenVino);

}  // namespace corelane::drivers::virtual_npu
