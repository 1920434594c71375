#include "drivers/virtual/ort/ort_optimizers.h"

#include <algorithm>
#include <array>
#include <string_view>

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

constexpr std::string_view kAlways = "DoubleQDQPairsRemover";

}  // namespace

std::string needless_optimizers(const std::map<std::string, std::string, std::less<>>& operators) {
  std::string text(kAlways);
  const auto has = [&](std::string_view op) { return !op.empty() && operators.contains(op); };
  for (const Needs& needs : kNeeds)
    if (std::ranges::none_of(needs.one_of, has)) text.append(";").append(needs.optimizers);
  return text;
}

}  // namespace corelane::drivers::virtual_npu::ort
