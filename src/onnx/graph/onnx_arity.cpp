#include "onnx/graph/onnx_arity.h"

#include <string_view>
#include <unordered_map>
#include <vector>

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
  using Operators = std::vector<std::string_view>;
  static const auto kTable = [] {
    std::unordered_map<std::string_view, Arity> table;
    const auto at_least = [&](int inputs, int outputs, const Operators& operators) {
      for (const auto op : operators) table[op] = {inputs, outputs};
    };
    // A Constant has no input, OptionalHasElement may have none.
    at_least(0, 1, {"Constant", "OptionalHasElement"});
    at_least(1, 1,
             {"Binarizer", "BitCast", "Celu", "Concat", "DFT", "Det", "Dropout", "Identity", "If",
              "MaxPool", "OptionalGetElement", "Pad", "Relu", "Resize", "Scan", "SpaceToDepth",
              "Squeeze", "Unsqueeze"});
    at_least(1, 1,
             {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
              "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"});
    at_least(2, 1,
             {"ArrayFeatureExtractor", "CastLike", "Conv", "CumProd", "DequantizeLinear", "Equal",
              "Gemm", "MatMul", "Mod", "NegativeLogLikelihoodLoss", "QuantizeLinear", "STFT",
              "SwiGLU", "TensorScatter", "Tile"});
    at_least(2, 2, {"CausalConvWithState"});
    // Each output of a recurrence may be left out.
    at_least(3, 0, {"GRU", "LSTM", "RNN"});
    at_least(3, 1, {"Attention", "FlexAttention"});
    at_least(3, 2, {"LinearAttention"});
    return table;
  }();
  return kTable;
}

}  // namespace

Status check_arity(const ::onnx::NodeProto& node, int position) {
  // Rules and inference index inputs and outputs without asking: this check makes that safe.
  if (!is_onnx_domain(node.domain())) return {};
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
