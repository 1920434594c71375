/// What a program says of itself: inputs, outputs, allowed shapes, operators, provenance. A file of
/// several networks has one for each of them, its parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/program/batch_range.h"
#include "corelane/program/state_decl.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// One input or output.
struct CORELANE_API IoEntry {
  /// What the network computes with: name, shape in model order (open dims -1), the ONNX element
  /// type, plain layout, no quantization. Data of this form go to the device untouched.
  TensorDesc desc;
  /// The integer form in which the same tensor is offered when the network quantises it at the
  /// boundary (a QuantizeLinear right after an input, a DequantizeLinear right before an output):
  /// i8, u8, i16 or u16 with scale and zero point. Bit-exact with the float path.
  DType quant_dtype = DType::kUndefined;
  Quant quant;
  /// What a door reports whose clients know integers and f16 only: quant_dtype when quantized, f16
  /// for a float tensor (scale 1, as a vendor build does), or what `compile --io-dtype` asked for,
  /// else desc.dtype.
  DType reported_dtype = DType::kUndefined;
  /// Inputs of rank 4: (x - mean) / std per channel, applied by those doors that normalise (u8 or
  /// real pixels in; desc form data are taken as normalised). Empty: none.
  std::vector<float> mean;
  std::vector<float> std;
  /// Memory layout a client is offered for 4-D tensors: kNHWC for inputs, kPlain for outputs.
  LayoutKind preferred_layout = LayoutKind::kPlain;
  /// Inputs only: clients may bring a part of it, or leave it out, where their API has a way to.
  bool partial_allowed = false;
  bool operator==(const IoEntry&) const = default;
};

/// A custom operator type that the program declares.
struct CustomOperatorDecl {
  std::string type;
  std::string domain;
  std::uint32_t nodes = 0;  ///< How many nodes of the network use it.
  bool operator==(const CustomOperatorDecl&) const = default;
};

/// A finding of the import: what the engine would get wrong or cannot do.
struct ImportFinding {
  enum class Kind : std::uint8_t { kRewritten, kWarning };
  Kind kind = Kind::kWarning;
  std::string node;  ///< Name, or "#12" by position when it has none.
  std::string op;
  std::string text;
  bool operator==(const ImportFinding&) const = default;
};

/// What the ONNX model says of where it comes from.
struct ModelOrigin {
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::string description;        ///< The model's doc string.
  std::string graph_description;  ///< The graph's.
  std::optional<std::int64_t> version;
  bool operator==(const ModelOrigin&) const = default;
};

struct CORELANE_API ProgramDescription {
  std::string name;      ///< Graph name.
  std::string producer;  ///< Of the ONNX model, "pytorch 2.1".
  std::int64_t opset = 0;
  std::vector<IoEntry> inputs;
  std::vector<IoEntry> outputs;
  /// Constants of the network that are declared as inputs, too, so that a model with other values
  /// of them can be made (Python's feeds may hold them). They are no inputs of the program.
  std::vector<IoEntry> overridable;
  /// Closed list of allowed input shapes: shape_sets[k][i] is input i's shape in set k. Empty: the
  /// descs alone decide (static, or open dimensions).
  std::vector<std::vector<Shape>> shape_sets;
  std::uint32_t batch = 1;  ///< How many copies of dimension 0 it was built for.
  /// Sizes of the open dimension 0, which is the only open one of the inputs; the rows of an input
  /// are the samples of a batch. Then `batch` is 1 and there are no shape sets.
  std::optional<BatchRange> batch_range;
  std::uint32_t cores = 1;    ///< Cores wanted by default.
  std::string custom_string;  ///< At most 1024 bytes.
  std::vector<CustomOperatorDecl> custom_operators;
  std::map<std::string, std::string> metadata;  ///< metadata_props of the ONNX model.
  std::vector<ImportFinding> findings;
  std::string compiler_version;  ///< "corelane 0.1.0".
  std::uint64_t node_count = 0;
  std::uint64_t constant_bytes = 0;
  std::uint64_t macs =
      0;  ///< Multiply-accumulates of Conv/MatMul/Gemm at static shapes; 0 unknown.
  ModelOrigin origin;
  /// Its name in a file of parts, at most 255 bytes; empty in a file of one network without a name.
  std::string part;
  /// What stays on the device between runs (Context::states). See check_states().
  std::vector<StateDecl> states;
  bool operator==(const ProgramDescription&) const = default;
};

/// Ok where it has no batch range, or one that fits it: dimension 0 of an input is open, and no
/// other dimension of the inputs; `batch` is 1, and there are no shape sets. Else kInvalidArgument.
CORELANE_API Status check_batch_range(const ProgramDescription& description);

/// Ok where each state names an output and an input that are there, none of them twice, tensors of
/// numbers of one type and rank with the same dimensions where both are fixed, in each shape set
/// too, and there is no batch range. Else kInvalidArgument names the state and what is allowed.
CORELANE_API Status check_states(const ProgramDescription& description);

}  // namespace corelane
