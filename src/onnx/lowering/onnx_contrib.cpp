#include "onnx/lowering/onnx_contrib.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/leaked.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

using Node = ::onnx::NodeProto;

const char* fused_matmul(const Node& node, const FactsTable&) {
  if (int_attribute(node, "transBatchA", 0) == 0 && int_attribute(node, "transBatchB", 0) == 0)
    return nullptr;
  return "the engine ignores transBatchA and transBatchB";
}

const char* fused_gemm(const Node& node, const FactsTable&) {
  const std::string activation = string_attribute(node, "activation", "");
  if (activation.empty() || activation == "Relu" || activation == "LeakyRelu") return nullptr;
  return "the engine computes any activation but LeakyRelu as Relu";
}

/// True unless it gives the length of each sequence; it may give ends and starts.
bool may_give_starts(const Node& node, const FactsTable& facts) {
  const ValueFacts& mask = facts.of(input_of(node, 3));
  const ValueFacts& x = facts.of(input_of(node, 0));
  if (input_of(node, 3).empty() || mask.rank() > 1) return false;
  return mask.rank() != 1 || x.rank() < 1 || (*mask.shape)[0] < 0 ||
         (*mask.shape)[0] != (*x.shape)[0];
}

const char* attention(const Node& node, const FactsTable& facts) {
  // Its importer reads the bias unasked, and the process dies.
  if (input_of(node, 2).empty()) return "the engine breaks down without a bias";
  if (float_attribute(node, "scale", 0) != 0) return "the engine ignores `scale`";
  if (float_attribute(node, "mask_filter_value", -10000) != -10000)
    return "the engine ignores `mask_filter_value`";
  if (int_attribute(node, "do_rotary", 0) != 0) return "the engine ignores `do_rotary`";
  return int_attribute(node, "unidirectional", 0) != 0 && may_give_starts(node, facts)
             ? "the engine ignores the starts in a mask of ends and starts"
             : nullptr;
}

const char* rotary(const Node& node, const FactsTable& facts) {
  if (facts.of(input_of(node, 1)).rank() != 2)
    return "the engine takes one position for all, where it is given for the first element";
  if (float_attribute(node, "scale", 1) != 1) return "the engine ignores `scale`";
  return int_attribute(node, "is_packed_batching", 0) != 0
             ? "the engine ignores `is_packed_batching`"
             : nullptr;
}

const char* matmul_nbits(const Node& node, const FactsTable&) {
  return input_of(node, 4).empty() ? nullptr : "the engine ignores the groups of columns (g_idx)";
}

const char* group_query_attention(const Node&, const FactsTable&) {
  return "the engine writes keys and values past the end of the cache it is given";
}

const char* dynamic_matmul(const Node&, const FactsTable&) {
  return "the engine leaves out the quantization of the first factor";
}

/// Their sums are cut off, not rounded, and wrap around, where they should saturate.
const char* qlinear(const Node&, const FactsTable&) {
  return "the engine cuts results off instead of rounding them, and lets them wrap around";
}

}  // namespace

const char* contrib_flaw(const Node& node, const FactsTable& facts) {
  if (node.domain() != "com.microsoft") return nullptr;
  using Flaw = const char* (*)(const Node&, const FactsTable&);
  static Leaked<const std::unordered_map<std::string_view, Flaw>> kTable(
      {{"Attention", attention},
       {"DynamicQuantizeMatMul", dynamic_matmul},
       {"FusedGemm", fused_gemm},
       {"FusedMatMul", fused_matmul},
       {"GroupQueryAttention", group_query_attention},
       {"MatMulNBits", matmul_nbits},
       {"RotaryEmbedding", rotary}});
  if (node.op_type().starts_with("QLinear")) return qlinear(node, facts);
  const auto it = kTable->find(node.op_type());
  return it == kTable->end() ? nullptr : it->second(node, facts);
}

}  // namespace corelane::onnx
