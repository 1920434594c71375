/// The structure of a model: what the rest of the import relies on.
#pragma once

#include "corelane/base/status.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// kUnsupportedModel for versions of operators that are not known yet. kMalformed unless the graph
/// has nodes or outputs, names every output once, and each value is
/// defined before it is read (in the graph, the graphs around it, or as an initialiser). The same
/// for the functions of the model, and what check_calls() says of their calls.
Status check_structure(const ::onnx::ModelProto& model);

/// The version of the standard operator set that the model imports; 1 when it names none.
std::int64_t opset_of(const ::onnx::ModelProto& model);

/// True for "" and "ai.onnx".
bool is_standard_domain(const std::string& domain);
/// True for those, "ai.onnx.ml" and the "ai.onnx.preview" ones.
bool is_onnx_domain(const std::string& domain);

}  // namespace corelane::onnx
