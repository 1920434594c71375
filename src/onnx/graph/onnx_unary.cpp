#include "onnx/graph/onnx_unary.h"

#include <unordered_set>

#include "base/leaked.h"

namespace corelane::onnx {

/// Casts are not among them: their type is another.
bool is_unary(std::string_view op) {
  static Leaked<const std::unordered_set<std::string_view>> kNames({// clang-format off
      "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos",
      "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity",
      "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink",
      "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh",
      "ThresholdedRelu"});
  // clang-format on
  return kNames->contains(op);
}

}  // namespace corelane::onnx
