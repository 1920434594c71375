/// Names of inner graphs that hide names of the graphs around them.
#pragma once

#include <vector>

#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"

namespace corelane::onnx {

/// Gives what an inner graph (the body of a Loop, a branch of an If) makes or takes under the name
/// of a value around it a name of its own. ONNX lets the inner one hide the other; engines look for
/// one value by its name, and so do rules that move nodes between graphs. A finding for each node
/// whose graphs were changed.
void rename_shadows(::onnx::GraphProto& graph, std::vector<ImportFinding>& findings);

}  // namespace corelane::onnx
