#include "drivers/virtual/engine/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <openvino/frontend/manager.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/topk.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <set>
#include <streambuf>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/leaked.h"
#include "base/sync.h"
#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/engine/engine_complaint.h"
#include "drivers/virtual/engine/engine_runtime.h"

namespace corelane::drivers::virtual_npu {
namespace {

constexpr std::string_view kReading = "the engine cannot read the network";

/// A stream over bytes that are not copied.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(const std::string& bytes) {
    char* begin = const_cast<char*>(bytes.data());  // The interface of streambuf; only read.
    setg(begin, begin, begin + bytes.size());
  }

 protected:
  // The engine's reader seeks.
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    char* base = from == std::ios_base::beg   ? eback()
                 : from == std::ios_base::cur ? gptr()
                                              : egptr();
    if (offset < eback() - base || offset > egptr() - base) return pos_type(off_type(-1));
    setg(eback(), base + offset, egptr());
    return pos_type(gptr() - eback());
  }
  pos_type seekpos(pos_type position, std::ios_base::openmode mode) override {
    return seekoff(off_type(position), std::ios_base::beg, mode);
  }
};

/// A reader of its own for each network: custom operators are added to it.
ov::frontend::FrontEnd::Ptr new_reader() {
  static Leaked<ov::frontend::FrontEndManager> manager;  // Its libraries are never unloaded.
  // The engine does not say that two threads may ask the manager at the same time.
  static Mutex mutex(LockRank::kOnnxReader);
  const MutexLock lock(mutex);
  return manager->load_by_framework("onnx");
}

/// One conversion for each operator type: the node is found by the index that the patch has written
/// into it.
void add_custom_operators(ov::frontend::FrontEnd& reader,
                          const std::shared_ptr<HostOperators>& operators) {
  std::set<std::pair<std::string, std::string>> added;
  for (const CustomNode& node : operators->nodes()) {
    const std::string domain(normal_domain(node.domain));
    if (!added.emplace(node.type, domain).second) continue;
    const ov::frontend::CreatorFunction convert =
        [operators](const ov::frontend::NodeContext& context) -> ov::OutputVector {
      const auto index = context.get_attribute<std::int64_t>(kCustomNodeAttribute);
      ov::OutputVector inputs;
      for (std::size_t i = 0; i < context.get_input_size(); ++i)
        inputs.push_back(context.get_input(static_cast<int>(i)));
      auto result = std::make_shared<HostNode>(inputs, operators, static_cast<std::size_t>(index));
      result->set_friendly_name(operators->nodes()[static_cast<std::size_t>(index)].name);
      return result->outputs();
    };
    using Extension = ov::frontend::onnx::ConversionExtension;
    reader.add_extension(domain.empty() ? std::make_shared<Extension>(node.type, convert)
                                        : std::make_shared<Extension>(node.type, domain, convert));
  }
}

/// Where the engine computes another type than the model declares, a conversion follows.
void restore_output_types(ov::Model& network, const PatchedModel& patched) {
  for (std::size_t i = 0; i < patched.outputs.size(); ++i) {
    const ov::element::Type declared = engine_type(dtype_from_onnx(patched.outputs[i].elem_type));
    const auto& result = network.get_results()[i];
    const auto source = result->input_value(0);
    if (declared == ov::element::dynamic || source.get_element_type() == declared ||
        source.get_element_type() == ov::element::string)
      continue;
    result->input(0).replace_source_output(
        std::make_shared<ov::op::v0::Convert>(source, declared)->output(0));
    result->validate_and_infer_types();
  }
}

/// Elements that are compared with each that is kept; as in onnx/lowering/onnx_rules_sizes.cpp.
constexpr std::int64_t kMostCompared = 1 << 16;

bool is_short(const ov::op::v11::TopK& top) {
  if (top.get_k() == 1) return true;
  const ov::PartialShape& shape = top.get_input_partial_shape(0);
  if (shape.rank().is_dynamic() || top.get_k() == 0) return false;  // 0: not known yet.
  const ov::Dimension& along = shape[static_cast<std::ptrdiff_t>(top.get_axis())];
  return along.is_static() &&
         along.get_length() <= kMostCompared / static_cast<std::int64_t>(top.get_k());
}

/// Makes the first of equal values count, as ONNX has it, where that does not take too long.
void keep_order_of_equals(const ov::Model& network) {
  for (const auto& node : network.get_ordered_ops()) {
    if (const auto outer = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node))
      for (const auto& body : outer->get_functions()) keep_order_of_equals(*body);
    const auto top = ov::as_type_ptr<ov::op::v11::TopK>(node);
    if (top == nullptr || top->output(1).get_target_inputs().empty() || !is_short(*top)) continue;
    // Where any order will do, that one will.
    if (top->get_sort_type() == ov::op::TopKSortType::NONE)
      top->set_sort_type(ov::op::TopKSortType::SORT_VALUES);
    top->set_stable(true);
  }
}

bool is_empty(const ov::PartialShape& shape) {
  const auto is_zero = [](const ov::Dimension& d) { return d.is_static() && d.get_length() == 0; };
  return shape.rank().is_static() && std::ranges::any_of(shape, is_zero);
}

constexpr std::string_view kNotOfNothing =
    "which the engine does not compile; let the other engine compute it (engine=onnxruntime)";

/// A Gather or a Transpose of a value without elements, in a body too; null where there is none.
/// The Gather ends the process while it is compiled, the Transpose makes other shapes.
const ov::Node* mover_of_nothing(const ov::Model& network) {
  for (const auto& node : network.get_ordered_ops()) {
    if (const auto outer = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node))
      for (const auto& body : outer->get_functions())
        if (const ov::Node* const inner = mover_of_nothing(*body)) return inner;
    const std::string_view type = node->get_type_name();
    if ((type == "Gather" || type == "Transpose") && is_empty(node->get_input_partial_shape(0)))
      return node.get();
  }
  return nullptr;
}

Status check_movers(const ov::Model& network) {
  const ov::Node* const mover = mover_of_nothing(network);
  if (mover == nullptr) return {};
  return error(Code::kUnsupportedModel, "node '{}' ({}) moves a value without elements ({}), {}",
               mover->get_friendly_name(), mover->get_type_name(),
               shape_of(mover->get_input_partial_shape(0)).to_string(), kNotOfNothing)
      .with(Detail::kNode, mover->get_friendly_name());
}

/// Custom operators that depend on constants only get a dependency on an input: otherwise the
/// engine would call them once, at compile time.
void keep_at_run_time(const ov::Model& network) {
  if (network.get_parameters().empty()) return;
  std::unordered_set<const ov::Node*> varying;
  for (const auto& node : network.get_ordered_ops()) {
    bool varies = std::string_view(node->get_type_name()) == "Parameter";
    for (std::size_t i = 0; i < node->get_input_size(); ++i)
      varies |= varying.contains(node->get_input_node_ptr(i));
    if (auto* host = dynamic_cast<HostNode*>(node.get()); host != nullptr && !varies) {
      host->depend_on(network.get_parameters()[0]->output(0));
      varies = true;
    }
    if (varies) varying.insert(node.get());
  }
}

/// Operators of the engine whose kernels check nothing that depends on data, between spaces.
constexpr std::string_view kDataIndependent =
    " Abs Acos Acosh AdaptiveAvgPool Add Asin Asinh Atan Atanh AvgPool BatchNormInference"
    " BinaryConvolution Broadcast Ceiling Clamp Concat Constant Convert ConvertLike"
    " Convolution ConvolutionBackpropData Cos Cosh DeformableConvolution DepthToSpace Divide"
    " Einsum Elu Equal Erf Exp FakeQuantize Floor FloorMod GRUCell GRUSequence Gelu Greater"
    " GreaterEqual GroupConvolution GroupConvolutionBackpropData HSigmoid HSwish HardSigmoid"
    " Identity Interpolate IsFinite IsInf IsNaN LRN LSTMCell LSTMSequence Less LessEqual Log"
    " LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor MVN MatMul MaxPool Maximum Minimum"
    " Mish Mod Multiply Negative NormalizeL2 NotEqual PRelu Pad Parameter Power RNNCell"
    " RNNSequence ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean"
    " ReduceMin ReduceProd ReduceSum Relu Reshape Result Round Select Selu ShapeOf"
    " ShuffleChannels Sigmoid Sign Sin Sinh Slice SoftPlus SoftSign Softmax SpaceToDepth Split"
    " Sqrt SquaredDifference Squeeze StridedSlice Subtract Swish Tan Tanh Tile TopK Transpose"
    " Unsqueeze VariadicSplit"
    " ";

/// True where a kernel cannot fail for the values it is given.
bool is_data_independent(std::string_view type) {
  return kDataIndependent.find(fmt::format(" {} ", type)) != std::string_view::npos;
}

/// The nodes whose values depend on the inputs' values; the others are folded by the compiler. The
/// shape of a value of static shape depends on nothing.
std::unordered_set<const ov::Node*> varying_nodes(const ov::Model& network) {
  std::unordered_set<const ov::Node*> varying;
  for (const auto& node : network.get_ordered_ops()) {
    const std::string_view type = node->get_type_name();
    if (type == "ShapeOf" && node->get_input_partial_shape(0).is_static()) continue;
    bool varies = type == "Parameter";
    for (std::size_t i = 0; i < node->get_input_size(); ++i)
      varies |= varying.contains(node->get_input_node_ptr(i));
    if (varies) varying.insert(node.get());
  }
  return varying;
}

/// Operators of ai.onnx.ml that the engine's reader has no conversion for. It takes longer to find
/// that out than the other engine takes for a whole small network.
constexpr std::string_view kNotConverted[] = {
    "LinearClassifier", "LinearRegressor",        "SVMClassifier",        "SVMRegressor",
    "TreeEnsemble",     "TreeEnsembleClassifier", "TreeEnsembleRegressor"};

Status check_conversions(const PatchedModel& patched) {
  for (const std::string_view op : kNotConverted)
    if (patched.first_node.contains(op))
      return missing_operator(kReading, fmt::format("ai.onnx.ml.{}", op), patched.first_node);
  return {};
}

}  // namespace

/// Where the engine reads or compiles many an operator for a fixed size of 0, the process ends, the
/// engine does not return, or shapes are wrong. Runs without elements of an open size:
/// empty_inputs.h.
Status check_elements(const PatchedModel& patched, std::span<const TensorDesc> inputs) {
  // The other engine has no largest and no smallest of no bools, which this one computes.
  const auto is_all = [&](std::string_view op) {
    return patched.nodes == 1 && patched.first_node.contains(op);
  };
  const bool extreme = is_all("ReduceMax") || is_all("ReduceMin");
  for (const TensorDesc& input : inputs) {
    if (std::ranges::count(input.shape.dims(), 0) == 0) continue;
    if (extreme && input.dtype == DType::kBool) continue;
    return error(Code::kUnsupportedModel, "input '{}' has no elements ({}), {}", input.name,
                 input.shape.to_string(), kNotOfNothing)
        .with(Detail::kInput, input.name);
  }
  return {};
}

/// The message of the engine gets a remedy: what a user can change about the model.
Result<std::shared_ptr<ov::Model>> read_network(const PatchedModel& patched,
                                                const std::shared_ptr<HostOperators>& operators) {
  // One of the host's may have such a name.
  if (operators == nullptr)
    if (const Status missing = check_conversions(patched); !missing.ok())
      return error(with_remedy(missing));
  std::shared_ptr<ov::Model> network;
  try {
    const auto reader = new_reader();
    if (operators) add_custom_operators(*reader, operators);
    MemoryBuffer buffer(patched.bytes);
    std::istream stream(&buffer);
    const auto loaded = reader->load(&stream);
    if (!loaded) return error(Code::kMalformed, "{}: its ONNX reader refuses the bytes", kReading);
    network = reader->convert(loaded);
    if (network->get_results().size() != patched.outputs.size())
      return error(Code::kUnsupportedModel, "{}: it made {} outputs of the {} the network declares",
                   kReading, network->get_results().size(), patched.outputs.size());
    CORELANE_TRY(check_movers(*network));
    restore_output_types(*network, patched);
    keep_order_of_equals(*network);
    if (operators) keep_at_run_time(*network);
  } catch (...) {
    return error(
        with_remedy(engine_failure(kReading, Code::kUnsupportedModel, patched.first_node)));
  }
  return network;
}

bool all_static(const ov::Model& network) {
  for (const auto& node : network.get_ops())
    for (const auto& output : node->outputs())
      if (output.get_partial_shape().is_dynamic()) return false;
  return true;
}

/// By the operators of the network as read: the compiler fuses them, and is taken to add no checks
/// of data.
Throwing throwing_of(const ov::Model& network) {
  for (const auto& input : network.inputs())
    if (input.get_partial_shape().is_dynamic()) return Throwing::kMaybe;
  const auto varying = varying_nodes(network);
  for (const ov::Node* node : varying) {
    const std::string_view type = node->get_type_name();
    // An index that is data may be out of range.
    const bool safe_gather = type == "Gather" && !varying.contains(node->get_input_node_ptr(1));
    if (!safe_gather && !is_data_independent(type)) return Throwing::kMaybe;
  }
  return all_static(network) ? Throwing::kNever : Throwing::kIfDynamic;
}

}  // namespace corelane::drivers::virtual_npu
