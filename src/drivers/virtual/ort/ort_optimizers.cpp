#include "drivers/virtual/ort/ort_optimizers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/onnx_node.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

/// Optimizers of ONNX Runtime 1.31, by the operators of which a network must have one at least. A
/// name that the engine does not know does nothing.
struct Needs {
  std::array<std::string_view, 5> one_of;  ///< The rest is empty.
  std::string_view optimizers;
};

constexpr Needs kNeeds[] = {
    {{"QuantizeLinear", "DequantizeLinear"},
     "QDQPropagationTransformer;QDQSelectorActionTransformer;QDQFinalCleanupTransformer;"
     "QDQS8ToU8Transformer;WeightBiasQuantization;EnsureUniqueDQForNodeUnit;DQMatMulNBitsFusion"},
    {{"DynamicQuantizeLinear", "MatMulInteger"},
     "DynamicQuantizeMatMulFusion;MatMulIntegerToFloatFusion"},
    {{"MatMulNBits", "DequantizeLinear"},
     "MatMulNBitsFusion;MatMulNBitsMlpFusion;MatMulNBitsQkvFusion"},
    {{"GroupQueryAttention"},
     "GroupQueryAttentionFusion;GroupQueryAttentionPreNormFusion;GqaValueLayoutTransformer"},
    {{"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
      "SkipLayerNormalization", "ReduceMean"},
     "LayerNormFusionL1;LayerNormFusionL2;SimplifiedLayerNormFusion;SkipLayerNormFusion;"
     "BiasSkipLayerNormFusion;EmbedLayerNormFusion;AttentionFusion"},
    {{"Erf", "Tanh", "Gelu", "FastGelu"},
     "GeluFusionL1;GeluFusionL2;BiasGeluFusion;FastGeluFusion"},
    {{"Sigmoid"}, "QuickGeluFusion"},
    {{"Softmax"}, "BiasSoftmaxFusion"},
    {{"Dropout", "BitmaskDropout"}, "BiasDropoutFusion"},
    {{"Gather"}, "GatherToSliceFusion"},
    {{"Slice"}, "SliceConcatToSpaceToDepthFusion"},
    {{"Reshape"}, "ReshapeFusion"},
    {{"Cast"}, "CastChainElimination"},
    {{"MatMul"}, "MatMulAddFusion;MatmulTransposeFusion;MatMulScaleFusion;MatMulActivationFusion"},
    {{"MatMul", "Gemm"}, "GemmActivationFusion"},
    {{"Conv", "FusedConv"}, "ConvActivationFusion;ConvAddActivationFusion;NchwcTransformer"},
};

/// They compute in floats whatever the optimiser does.
constexpr std::string_view kFloatReaders[] = {
    "DynamicQuantizeLSTM", "LSTM", "GRU", "RNN", "Shape", "Size"};

using enum onnx_fields::Number;

/// Nodes of the top graph, which come after what they read.
Result<bool> has_other_reader(ByteSpan graph) {
  std::set<std::string_view> dequantized;
  for (WireReader fields(graph); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kGraphNode)) continue;
    CORELANE_ASSIGN(const NodeLinks node, read_links(field.payload));
    const bool reads = std::ranges::any_of(
        node.inputs, [&](std::string_view value) { return dequantized.contains(value); });
    if (reads && std::ranges::find(kFloatReaders, node.op) == std::end(kFloatReaders)) return true;
    if (node.op == "DequantizeLinear") dequantized.insert(node.output);
  }
  return false;
}

constexpr std::string_view kAlways = "DoubleQDQPairsRemover";

}  // namespace

std::string needless_optimizers(const std::map<std::string, std::string, std::less<>>& operators) {
  std::string text(kAlways);
  const auto has = [&](std::string_view op) { return !op.empty() && operators.contains(op); };
  for (const Needs& needs : kNeeds)
    if (std::ranges::none_of(needs.one_of, has)) text.append(";").append(needs.optimizers);
  return text;
}

bool is_fused_to_integers(const PatchedModel& model) {
  const auto has = [&](std::string_view op) { return model.first_node.contains(op); };
  if (has("QuantizeLinear")) return true;
  if (!has("DequantizeLinear")) return false;
  if (model.has_inner_graphs) return true;
  for (WireReader fields(as_byte_span(model.bytes)); !fields.at_end();) {
    const auto field = fields.next();
    if (!field || field->is_bytes(kModelFunctions)) return true;
    if (!field->is_bytes(kModelGraph)) continue;
    const auto other = has_other_reader(field->payload);
    if (!other || *other) return true;
  }
  return false;
}

}  // namespace corelane::drivers::virtual_npu::ort
