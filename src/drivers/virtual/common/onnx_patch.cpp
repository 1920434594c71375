#include "drivers/virtual/common/onnx_patch.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/value_type.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::string_view kConstants = "corelane:constants";
/// The location by which the engine's ONNX reader takes an address in this process.
constexpr std::string_view kMemoryLocation = "*/_ORT_MEM_ADDR_/*";
/// Marks an image that names that location.
constexpr std::string_view kMemoryMark = "_ORT_MEM_ADDR_";
/// From a graph to one within it: its node, the attribute of that, and the graph.
constexpr int kMessagesPerGraph = 3;
constexpr int kTopGraph = 1;  ///< Messages that it lies within: the model.

using enum onnx_fields::Number;

/// Refuses a second appearance of a field that holds one message: protobuf merges the two, so that
/// what comes out is not what was checked.
class OnlyOnce {
 public:
  explicit OnlyOnce(std::string_view what) : what_(what) {}
  Status check(const WireField& field) {
    const std::uint64_t bit = std::uint64_t{1} << (field.number % 64);
    if ((seen_ & bit) != 0)
      return error(Code::kMalformed, "ONNX model: {} has field {} twice; once is allowed", what_,
                   field.number);
    seen_ |= bit;
    return {};
  }

 private:
  std::string_view what_;
  std::uint64_t seen_ = 0;
};

/// Copies the model field by field and rewrites what the engine must see otherwise. What is not
/// rewritten is copied as bytes, so that unknown fields survive.
class Patcher {
 public:
  Patcher(const device::Image& image, const device::PrepareOptions& options, PatchFor engine)
      : image_(image), options_(options), by_address_(engine == PatchFor::kOpenVino) {}

  /// The mark is looked for in all of the bytes: a text in a place that is not parsed may be read
  /// by the engine.
  Result<PatchedModel> run() {
    if (::memmem(image_.bytes.data(), image_.bytes.size(), kMemoryMark.data(),
                 kMemoryMark.size()) != nullptr)
      return error(Code::kMalformed,
                   "the network names addresses of memory ('{}') as the place of its constants; a "
                   "device takes '{}' only, import the model first",
                   kMemoryLocation, kConstants);
    bool has_graph = false;
    OnlyOnce once("the model");
    for (WireReader fields(image_.bytes); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kModelGraph)) {
        has_graph = true;
        CORELANE_TRY(once.check(field));
        CORELANE_TRY(scan_top(field.payload));
        result_.bytes.reserve(image_.bytes.size() + 4096);
        CORELANE_TRY(graph(field, result_.bytes, kTopGraph));
      } else if (field.is_bytes(kModelFunctions)) {
        CORELANE_TRY(function(field, result_.bytes));
      } else if (field.number == kModelTraining) {
        continue;  // Of no use to the engine.
      } else {
        append_raw(result_.bytes, field.raw);
      }
    }
    if (!has_graph)
      return error(Code::kMalformed, "not an ONNX model: {} bytes without a graph",
                   image_.bytes.size());
    if (!by_address_ && !result_.custom_nodes.empty())
      append_bytes_field(result_.bytes, kModelOpsets, host_opset());
    return std::move(result_);
  }

 private:
  /// Names of initialisers and inputs, the inputs' shapes, and whether exposed values exist.
  Status scan_top(ByteSpan message) {
    std::set<std::string, std::less<>> values;
    std::vector<GraphValue> inputs;
    for (WireReader fields(message); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kGraphInitializer)) {
        CORELANE_ASSIGN(const TensorFacts facts, read_tensor(field.payload));
        initializers_.emplace(facts.name);
      } else if (field.is_bytes(kGraphInput)) {
        CORELANE_ASSIGN(GraphValue value, read_value(field.payload));
        values.insert(value.name);
        inputs.push_back(std::move(value));
      } else if (field.is_bytes(kGraphNode) && !options_.exposed_values.empty()) {
        for (WireReader node(field.payload); !node.at_end();) {
          CORELANE_ASSIGN(const WireField part, node.next());
          if (part.is_bytes(kNodeOutput)) values.emplace(part.text());
        }
      }
    }
    std::erase_if(inputs, [&](const GraphValue& v) { return initializers_.contains(v.name); });
    for (const std::string& name : options_.exposed_values)
      if (name.empty() || (!values.contains(name) && !initializers_.contains(name)))
        return error(Code::kNotFound,
                     "no value named '{}' in the network to expose; names are those of the ONNX "
                     "model's node outputs",
                     name);
    return fix_inputs(std::move(inputs));
  }

  /// Only inputs whose shape changes are written anew.
  Status fix_inputs(std::vector<GraphValue> inputs) {
    const auto& wanted = options_.input_shapes;
    if (!wanted.empty() && wanted.size() != inputs.size())
      return error(Code::kInvalidArgument, "{} input shapes given, the network has {} inputs",
                   wanted.size(), inputs.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      GraphValue& input = inputs[i];
      // Bytes of any length: a value in its flat form, whose own shape is another matter.
      if (wanted[i] == Shape{Shape::kOpen} && !border_type(input.type, true).empty()) continue;
      const auto& dims = wanted[i].dims();
      if (std::any_of(dims.begin(), dims.end(),
                      [](std::int64_t d) { return d < 0 && d != Shape::kOpen; }))
        return error(Code::kInvalidArgument, "input '{}': shape {} has a negative dimension",
                     input.name, wanted[i].to_string());
      if (input.has_shape && wanted[i].rank() != input.shape.rank())
        return error(Code::kInvalidArgument,
                     "input '{}': shape {} has rank {}, the network declares {}", input.name,
                     wanted[i].to_string(), wanted[i].rank(), input.shape.to_string());
      if (input.has_shape && input.shape == wanted[i]) continue;
      input.has_shape = true;
      input.shape = wanted[i];
      input.type.shape = wanted[i];
      input.type.dim_names.clear();
      reshaped_.insert(input.name);
    }
    result_.inputs = std::move(inputs);
    return {};
  }

  /// Depth is bounded before anything recurses: the bytes come from outside.
  Status graph(const WireField& source, std::string& out, int depth) {
    CORELANE_TRY(check_wire_depth(depth));
    const bool top = depth == kTopGraph;
    const OpenBytesField patched(out, source.number);
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kGraphNode)) {
        CORELANE_TRY(node(field, out, depth));
      } else if (field.is_bytes(kGraphInitializer)) {
        CORELANE_TRY(tensor(field, out, false, top));
      } else if (field.is_bytes(kGraphSparse)) {
        CORELANE_TRY(sparse(field, out));
      } else if (top && field.is_bytes(kGraphInput)) {
        CORELANE_TRY(input(field, out));
      } else if (top && field.is_bytes(kGraphOutput)) {
        CORELANE_ASSIGN(GraphValue value, read_value(field.payload));
        result_.outputs.push_back(std::move(value));
        append_raw(out, field.raw);
      } else if (top && field.number == kGraphValueInfo && !reshaped_.empty()) {
        continue;  // Inner shapes as declared belong to the declared input shapes.
      } else {
        append_raw(out, field.raw);
      }
    }
    if (top) append_exposed(out);
    return {};
  }

  Status input(const WireField& field, std::string& out) {
    CORELANE_ASSIGN(const GraphValue declared, read_value(field.payload));
    if (!reshaped_.contains(declared.name)) {
      append_raw(out, field.raw);
      return {};
    }
    const auto fixed = std::find_if(result_.inputs.begin(), result_.inputs.end(),
                                    [&](const GraphValue& v) { return v.name == declared.name; });
    append_bytes_field(out, kGraphInput, make_value(*fixed));
    return {};
  }

  /// An Identity per exposed value, so that the value may be anything: inner, an output, a
  /// constant.
  void append_exposed(std::string& out) {
    for (std::size_t i = 0; i < options_.exposed_values.size(); ++i) {
      GraphValue value;
      value.name = "corelane_exposed_" + std::to_string(i);
      std::string node;
      append_bytes_field(node, kNodeInput, options_.exposed_values[i]);
      append_bytes_field(node, kNodeOutput, value.name);
      append_bytes_field(node, kNodeOpType, "Identity");
      append_bytes_field(out, kGraphNode, node);
      append_bytes_field(out, kGraphOutput, make_value(value));
      value.name = options_.exposed_values[i];
      result_.outputs.push_back(std::move(value));
    }
  }

  static std::string host_opset() {
    std::string entry;
    append_bytes_field(entry, kOpsetDomain, kHostDomain);
    append_varint_field(entry, kOpsetVersion, 1);
    return entry;
  }

  /// Functions hold nodes and default attributes, which may hold tensors.
  Status function(const WireField& source, std::string& out) {
    const OpenBytesField patched(out, source.number);
    const std::size_t custom = result_.custom_nodes.size();
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kFunctionNode))
        CORELANE_TRY(node(field, out, 1, kFunctionNode));
      else if (field.is_bytes(kFunctionAttribute))
        CORELANE_TRY(attribute(field, out, 1, !by_address_));
      else
        append_raw(out, field.raw);
    }
    if (!by_address_ && result_.custom_nodes.size() > custom)
      append_bytes_field(out, kFunctionOpsets, host_opset());
    return {};
  }

  /// Nodes without inner tensors or graphs are copied whole: most are.
  Status node(const WireField& source, std::string& out, int depth,
              std::uint32_t number = kGraphNode) {
    CORELANE_ASSIGN(const NodeFacts facts, read_node(source.payload));
    ++result_.nodes;
    result_.first_node.try_emplace(std::string(facts.op_type),
                                   facts.name.empty() ? facts.first_output : facts.name);
    const bool custom = std::any_of(
        options_.custom_operators.begin(), options_.custom_operators.end(), [&](const auto& op) {
          return op.type == facts.op_type &&
                 normal_domain(op.domain) == normal_domain(facts.domain);
        });
    if (!custom && !facts.has_nested) {
      append_raw(out, source.raw);
      return {};
    }
    if (custom && !by_address_) return host_node(source, out, number);
    // ONNX Runtime follows a file of constants from initialisers, and from Constant nodes of the
    // top graph, which it makes initialisers of. It looks into all other attributes before.
    const bool put_inside =
        !by_address_ && (depth != kTopGraph || number != kGraphNode || facts.op_type != "Constant");
    const OpenBytesField patched(out, number);
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kNodeAttribute))
        CORELANE_TRY(attribute(field, out, depth, put_inside));
      else
        append_raw(out, field.raw);
    }
    if (custom) {
      CORELANE_ASSIGN(CustomNode entry, read_custom_node(source.payload));
      append_bytes_field(
          out, kNodeAttribute,
          make_integer_attribute(kCustomNodeAttribute,
                                 static_cast<std::int64_t>(result_.custom_nodes.size())));
      result_.custom_nodes.push_back(std::move(entry));
    }
    return {};
  }

  /// A custom node under its new name. Its attributes are the host operator's alone.
  Status host_node(const WireField& source, std::string& out, std::uint32_t number) {
    CORELANE_ASSIGN(CustomNode entry, read_custom_node(source.payload));
    const OpenBytesField patched(out, number);
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kNodeInput) || field.is_bytes(kNodeOutput) || field.is_bytes(kNodeName))
        append_raw(out, field.raw);
    }
    append_bytes_field(out, kNodeOpType, host_operator_name(result_.custom_nodes.size()));
    append_bytes_field(out, kNodeDomain, kHostDomain);
    result_.custom_nodes.push_back(std::move(entry));
    return {};
  }

  /// Tensors, graphs and lists of them; all others are copied. `put_inside`: as of tensor().
  Status attribute(const WireField& source, std::string& out, int depth, bool put_inside) {
    const OpenBytesField patched(out, source.number);
    OnlyOnce once("an attribute");
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kAttributeTensor) || field.is_bytes(kAttributeGraph) ||
          field.is_bytes(kAttributeSparse))
        CORELANE_TRY(once.check(field));
      if (field.is_bytes(kAttributeTensor) || field.is_bytes(kAttributeTensors)) {
        CORELANE_TRY(tensor(field, out, put_inside));
      } else if (field.is_bytes(kAttributeGraph) || field.is_bytes(kAttributeGraphs)) {
        result_.has_inner_graphs = true;
        CORELANE_TRY(graph(field, out, depth + kMessagesPerGraph));
      } else if (field.is_bytes(kAttributeSparse) || field.is_bytes(kAttributeSparses)) {
        CORELANE_TRY(sparse(field, out));
      } else {
        append_raw(out, field.raw);
        append_raw(out, fields.repeats(field).raw);
      }
    }
    return {};
  }

  /// The parts of a sparse tensor are put into the model itself: small, and not every reader looks
  /// for them elsewhere.
  Status sparse(const WireField& source, std::string& out) {
    const OpenBytesField patched(out, source.number);
    OnlyOnce once("a sparse tensor");
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      if (field.is_bytes(kSparseValues) || field.is_bytes(kSparseIndices)) {
        CORELANE_TRY(once.check(field));
        CORELANE_TRY(tensor(field, out, true));
      } else {
        append_raw(out, field.raw);
      }
    }
    return {};
  }

  /// Elements are counted for all constants; only external ones are pointed elsewhere.
  Status tensor(const WireField& source, std::string& out, bool put_inside = false,
                bool top = false) {
    CORELANE_ASSIGN(const TensorFacts facts, read_tensor(source.payload));
    const std::optional<std::size_t> elements = Shape(facts.dims).elements();
    const DType dtype = dtype_from_onnx(facts.data_type);
    const std::size_t bytes = elements ? dtype_bytes(dtype, *elements) : 0;
    result_.constant_bytes += bytes;
    result_.has_planes |= facts.dims.size() == 4;
    if (!facts.external && !facts.has_entries) {
      append_raw(out, source.raw);
      return {};
    }
    ByteSpan data;
    if (facts.external) {
      // The macro is two statements.
      CORELANE_ASSIGN(data, constant_of(facts, elements, bytes));
    }
    const OpenBytesField patched(out, source.number);
    for (WireReader fields(source.payload); !fields.at_end();) {
      CORELANE_ASSIGN(const WireField field, fields.next());
      const bool ours = field.number == kTensorExternalData ||
                        field.number == kTensorDataLocation ||
                        (facts.external && field.number == kTensorRawData);
      if (!ours) append_raw(out, field.raw);
    }
    if (!facts.external) {
      // Stray entries are gone, the data stay where they are.
    } else if (put_inside || data.empty()) {
      CORELANE_TRY(count_inside(facts, data.size()));
      append_bytes_field(out, kTensorRawData, as_string_view(data));
    } else {
      result_.image_constants.push_back(
          {std::string(facts.name), data, dtype, Shape(facts.dims), top});
      append_external_entry(out, "location", by_address_ ? kMemoryLocation : kConstants);
      append_external_entry(
          out, "offset",
          std::to_string(by_address_ ? reinterpret_cast<std::uintptr_t>(data.data())
                                     : facts.offset));
      append_external_entry(out, "length", std::to_string(data.size()));
      append_varint_field(out, kTensorDataLocation, 1);
    }
    return {};
  }

  /// Constants that go into the model take no more room than the segment they come from.
  Status count_inside(const TensorFacts& facts, std::size_t bytes) {
    if (bytes > image_.constants.size() - inside_)
      return error(Code::kMalformed,
                   "constant '{}' shares its bytes with others: together they take more "
                   "than the {} bytes of the constants",
                   facts.name, image_.constants.size());
    inside_ += bytes;
    return {};
  }

  /// The bytes of an external constant, checked against its shape: the engine trusts the address.
  Result<ByteSpan> constant_of(const TensorFacts& facts, std::optional<std::size_t> elements,
                               std::size_t bytes) const {
    if (facts.location != kConstants)
      return error(Code::kMalformed,
                   "constant '{}' lies in external file '{}'; a device takes '{}' only, import the "
                   "model first",
                   facts.name, facts.location, kConstants);
    if (!elements || (bytes == 0 && *elements != 0))
      return error(Code::kMalformed, "constant '{}' has a bad shape {} or element type {}",
                   facts.name, Shape(facts.dims).to_string(), facts.data_type);
    if (facts.length.value_or(bytes) != bytes)
      return error(Code::kMalformed, "constant '{}' has {} bytes, its shape needs {}", facts.name,
                   *facts.length, bytes);
    return checked_slice(image_.constants, facts.offset, bytes,
                         "constant '" + std::string(facts.name) + "'");
  }

  const device::Image& image_;
  const device::PrepareOptions& options_;
  const bool by_address_;
  PatchedModel result_;
  std::size_t inside_ = 0;  ///< Bytes of constants put into the model.
  std::set<std::string, std::less<>> initializers_;
  std::set<std::string, std::less<>> reshaped_;
};

}  // namespace

std::string host_operator_name(std::size_t index) { return fmt::format("Host{}", index); }

Result<PatchedModel> patch_onnx(const device::Image& image, const device::PrepareOptions& options,
                                PatchFor engine) {
  if (image.intact) CORELANE_TRY(image.intact());
  return Patcher(image, options, engine).run();
}

}  // namespace corelane::drivers::virtual_npu
