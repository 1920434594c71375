#include "onnx/graph/onnx_message.h"

#include <array>
#include <cstddef>

namespace corelane::onnx {
namespace {

using enum Kind;

struct Row {
  Kind parent;
  std::uint32_t number;
  Kind kind;
};

/// Every field of onnx-ml.proto that holds a message or packed varints.
// clang-format off
constexpr Row kRows[] = {
    {kModel, 7, kGraph}, {kModel, 8, kSmall}, {kModel, 14, kSmall}, {kModel, 20, kTraining},
    {kModel, 25, kFunction}, {kModel, 26, kSmall},
    {kGraph, 1, kNode}, {kGraph, 5, kTensor}, {kGraph, 11, kValueInfo}, {kGraph, 12, kValueInfo},
    {kGraph, 13, kValueInfo}, {kGraph, 14, kAnnotation}, {kGraph, 15, kSparse},
    {kGraph, 16, kSmall},
    {kNode, 5, kAttribute}, {kNode, 9, kSmall}, {kNode, 10, kDeviceUse},
    {kAttribute, 5, kTensor}, {kAttribute, 6, kGraph}, {kAttribute, 8, kPacked8},
    {kAttribute, 10, kTensor}, {kAttribute, 11, kGraph}, {kAttribute, 14, kType},
    {kAttribute, 15, kType}, {kAttribute, 22, kSparse}, {kAttribute, 23, kSparse},
    {kTensor, 1, kPacked8}, {kTensor, 3, kSmall}, {kTensor, 5, kPacked4}, {kTensor, 7, kPacked8},
    {kTensor, 11, kPacked8}, {kTensor, 13, kSmall}, {kTensor, 16, kSmall},
    {kSparse, 1, kTensor}, {kSparse, 2, kTensor}, {kSparse, 3, kPacked8},
    {kValueInfo, 2, kType}, {kValueInfo, 4, kSmall},
    {kType, 1, kTensorType}, {kType, 4, kHolder}, {kType, 5, kMap}, {kType, 7, kSmall},
    {kType, 8, kTensorType}, {kType, 9, kHolder},
    {kTensorType, 2, kShape},
    {kHolder, 1, kType},
    {kMap, 2, kType},
    {kAnnotation, 2, kSmall},
    {kDeviceUse, 2, kSharding},
    {kSharding, 2, kPacked8}, {kSharding, 3, kIntList}, {kSharding, 4, kShardedDim},
    {kShardedDim, 2, kSmall},
    {kIntList, 2, kPacked8},
    {kShape, 1, kSmall},
    {kFunction, 7, kNode}, {kFunction, 9, kSmall}, {kFunction, 11, kAttribute},
    {kFunction, 12, kValueInfo}, {kFunction, 14, kSmall},
    {kTraining, 1, kGraph}, {kTraining, 2, kGraph}, {kTraining, 3, kSmall},
    {kTraining, 4, kSmall},
};
// clang-format on

constexpr std::size_t kNumbers = 27;  ///< Fields of higher numbers hold nothing of the kind.
using Table = std::array<std::array<Kind, kNumbers>, static_cast<std::size_t>(kIntList) + 1>;

constexpr Table kKindOfField = [] {
  Table table{};
  for (const Row& row : kRows) table[static_cast<std::size_t>(row.parent)][row.number] = row.kind;
  return table;
}();

}  // namespace

Kind kind_of(Kind parent, std::uint32_t number) noexcept {
  return number < kNumbers ? kKindOfField[static_cast<std::size_t>(parent)][number] : kBytes;
}

}  // namespace corelane::onnx
