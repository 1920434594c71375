/// What the inputs' shapes decide of a network that is cut.
#pragma once

#include <string_view>
#include <unordered_set>

#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// Makes constants of nodes whose integers are known, as those of the shape of a fixed input are:
/// each part has them by itself.
void fold_known(::onnx::GraphProto& graph, const FactsTable& facts);

/// Values whose size only a run decides, of a network whose inputs are fixed. The names are the
/// graph's.
std::unordered_set<std::string_view> unsized_values(const ::onnx::GraphProto& graph,
                                                    const FactsTable& facts);

}  // namespace corelane::onnx
