#include "onnx/lowering/onnx_type_flaws.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_graph.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// Recurrences and Clip have no numbers of less than a byte in the standard, and end the process;
/// others are refused by the engine.
constexpr std::array<std::string_view, 4> kNarrow{"Clip", "GRU", "LSTM", "RNN"};
/// Of which the engine knows the largest and the smallest number.
constexpr std::array kBounded{T::FLOAT, T::FLOAT16, T::BFLOAT16, T::DOUBLE, T::INT8,   T::INT16,
                              T::INT32, T::INT64,   T::UINT8,    T::UINT16, T::UINT32, T::UINT64};

}  // namespace

const char* type_flaw(const ::onnx::NodeProto& node, const FactsTable& facts) {
  if (!is_onnx_domain(node.domain()) || std::ranges::find(kNarrow, node.op_type()) == kNarrow.end())
    return nullptr;
  const std::int32_t elem = facts.of(input_of(node, 0)).elem;
  const DType dtype = dtype_from_onnx(elem);
  if (dtype != DType::kUndefined && dtype_bits(dtype) < 8)
    return "numbers of less than a byte end the process in the engine";
  const bool bounded = (!input_of(node, 1).empty() && !input_of(node, 2).empty()) ||
                       find_attribute(node, "min") != nullptr ||
                       find_attribute(node, "max") != nullptr;
  if (node.op_type() != "Clip" || bounded || std::ranges::find(kBounded, elem) != kBounded.end())
    return nullptr;
  return "a type without a largest number ends the process in the engine";
}

}  // namespace corelane::onnx
