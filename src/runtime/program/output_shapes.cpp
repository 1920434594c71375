#include "corelane/runtime/output_shapes.h"

#include <algorithm>

#include "corelane/program/program_file.h"
#include "onnx/shape/onnx_output_shapes.h"
#include "runtime/program/shape_choice.h"

namespace corelane {
namespace {

/// A declared shape of rank 0 may stand for one that is not known (ImportFinding "output").
bool is_declared(const IoEntry& output) {
  return output.desc.shape.is_static() && output.desc.shape.rank() > 0;
}

}  // namespace

Result<std::vector<std::vector<std::optional<Shape>>>> output_shapes(const ProgramFile& file,
                                                                     std::size_t part) {
  const ProgramDescription& d = file.description(part);
  std::vector<std::vector<Shape>> sets = d.shape_sets;
  if (sets.empty()) sets.push_back(runtime::declared_shapes(d));
  if (std::ranges::all_of(d.outputs, is_declared)) {
    std::vector<std::optional<Shape>> declared;
    for (const IoEntry& output : d.outputs) declared.emplace_back(output.desc.shape);
    return std::vector(sets.size(), declared);
  }
  CORELANE_ASSIGN(const auto graph, file.find(SegmentKind::kGraph, {}, part));
  CORELANE_ASSIGN(const auto constants, file.find(SegmentKind::kConstants, {}, part));
  CORELANE_ASSIGN(auto found, onnx::infer_output_shapes(graph.value_or(ByteSpan()),
                                                        constants.value_or(ByteSpan()), sets));
  for (auto& shapes : found) {
    if (shapes.size() != d.outputs.size()) {
      return error(Code::kMalformed, "the network has {} outputs, its description {}",
                   shapes.size(), d.outputs.size());
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
      if (!shapes[i] && is_declared(d.outputs[i])) shapes[i] = d.outputs[i].desc.shape;
  }
  return found;
}

}  // namespace corelane
