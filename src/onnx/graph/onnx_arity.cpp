#include "onnx/graph/onnx_arity.h"

#include <string_view>
#include <unordered_map>

#include "onnx/graph/onnx_check.h"

namespace corelane::onnx {
namespace {

struct Arity {
  int inputs;
  int outputs;
};

/// Operators with a rule of the rewriter, and those whose inputs the description reads. The least
/// of all versions of the operator; rules ask for the optional ones themselves.
const std::unordered_map<std::string_view, Arity>& arities() {
  static const std::unordered_map<std::string_view, Arity> kTable = {
      {"ArrayFeatureExtractor", {2, 1}},
      {"Attention", {3, 1}},
      {"Binarizer", {1, 1}},
      {"BitCast", {1, 1}},
      {"CastLike", {2, 1}},
      {"CausalConvWithState", {2, 2}},
      {"Celu", {1, 1}},
      {"Concat", {1, 1}},
      {"Constant", {0, 1}},
      {"Conv", {2, 1}},
      {"CumProd", {2, 1}},
      {"DFT", {1, 1}},
      {"DequantizeLinear", {2, 1}},
      {"Det", {1, 1}},
      {"Dropout", {1, 1}},
      {"Equal", {2, 1}},
      {"FlexAttention", {3, 1}},
      {"GRU", {3, 0}},
      {"Gemm", {2, 1}},
      {"Identity", {1, 1}},
      {"If", {1, 1}},
      {"LSTM", {3, 0}},
      {"LinearAttention", {3, 2}},
      {"MatMul", {2, 1}},
      {"MaxPool", {1, 1}},
      {"Mod", {2, 1}},
      {"NegativeLogLikelihoodLoss", {2, 1}},
      {"OptionalGetElement", {1, 1}},
      {"OptionalHasElement", {0, 1}},
      {"Pad", {1, 1}},
      {"QuantizeLinear", {2, 1}},
      {"RNN", {3, 0}},
      {"ReduceL1", {1, 1}},
      {"ReduceL2", {1, 1}},
      {"ReduceLogSum", {1, 1}},
      {"ReduceLogSumExp", {1, 1}},
      {"ReduceMax", {1, 1}},
      {"ReduceMean", {1, 1}},
      {"ReduceMin", {1, 1}},
      {"ReduceProd", {1, 1}},
      {"ReduceSum", {1, 1}},
      {"ReduceSumSquare", {1, 1}},
      {"Relu", {1, 1}},
      {"Resize", {1, 1}},
      {"STFT", {2, 1}},
      {"Scan", {1, 1}},
      {"SpaceToDepth", {1, 1}},
      {"Squeeze", {1, 1}},
      {"SwiGLU", {2, 1}},
      {"TensorScatter", {2, 1}},
      {"Tile", {2, 1}},
      {"Unsqueeze", {1, 1}},
  };
  return kTable;
}

}  // namespace

Status check_arity(const ::onnx::NodeProto& node, int position) {
  const std::string& domain = node.domain();
  const bool standard =
      is_standard_domain(domain) || domain == "ai.onnx.ml" || domain.starts_with("ai.onnx.preview");
  if (!standard) return {};
  const auto it = arities().find(node.op_type());
  if (it == arities().end()) return {};
  const Arity least = it->second;
  if (node.input_size() >= least.inputs && node.output_size() >= least.outputs) return {};
  return error(Code::kMalformed,
               "node {} ({}) has {} inputs and {} outputs; the operator has at least {} and {}",
               node_text(node, position), op_text(node), node.input_size(), node.output_size(),
               least.inputs, least.outputs);
}

}  // namespace corelane::onnx
