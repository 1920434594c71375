#include "corelane/runtime/output_shapes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "corelane/program/program_file.h"
#include "onnx/shape/onnx_output_shapes.h"
#include "runtime/program/shape_choice.h"

namespace corelane {
namespace {

/// A declared shape of rank 0 may stand for one that is not known (ImportFinding "output").
bool is_declared(const IoEntry& output) {
  return output.desc.shape.is_static() && output.desc.shape.rank() > 0;
}

using Row = std::vector<std::optional<Shape>>;

/// The output shapes of one network, whose input shapes are known.
Result<std::vector<Row>> inferred(const ProgramFile& file, std::size_t part,
                                  const std::vector<std::vector<Shape>>& sets) {
  CORELANE_ASSIGN(const auto graph, file.find(SegmentKind::kGraph, {}, part));
  CORELANE_ASSIGN(const auto constants, file.find(SegmentKind::kConstants, {}, part));
  CORELANE_ASSIGN(auto found, onnx::infer_output_shapes(graph.value_or(ByteSpan()),
                                                        constants.value_or(ByteSpan()), sets));
  const ProgramDescription& d = file.description(part);
  for (const Row& shapes : found) {
    if (shapes.size() != d.outputs.size()) {
      return error(Code::kMalformed, "the network has {} outputs, its description {}",
                   shapes.size(), d.outputs.size());
    }
  }
  return found;
}

/// From part to part of a chain, by the names of what they hand on. What is not known of an input
/// is not known of that part's outputs.
Result<Row> inferred_chain(const ProgramFile& file, const std::vector<Shape>& set) {
  std::map<std::string_view, Shape> known;
  const ProgramDescription& chain = file.description();
  for (std::size_t i = 0; i < set.size() && i < chain.inputs.size(); ++i)
    if (set[i].is_static()) known[chain.inputs[i].desc.name] = set[i];
  for (std::size_t part = 1; part < file.part_count(); ++part) {
    const ProgramDescription& d = file.description(part);
    std::vector<Shape> inputs;
    for (const IoEntry& input : d.inputs)
      if (const auto at = known.find(input.desc.name); at != known.end())
        inputs.push_back(at->second);
    if (inputs.size() != d.inputs.size()) continue;
    CORELANE_ASSIGN(const auto found, inferred(file, part, {inputs}));
    for (std::size_t i = 0; i < d.outputs.size(); ++i)
      if (found[0][i]) known[d.outputs[i].desc.name] = *found[0][i];
  }
  Row shapes;
  for (const IoEntry& output : chain.outputs) {
    const auto at = known.find(output.desc.name);
    shapes.push_back(at == known.end() ? std::nullopt : std::optional(at->second));
  }
  return shapes;
}

}  // namespace

Result<std::vector<std::vector<std::optional<Shape>>>> output_shapes(const ProgramFile& file,
                                                                     std::size_t part) {
  const ProgramDescription& d = file.description(part);
  std::vector<std::vector<Shape>> sets = d.shape_sets;
  if (sets.empty()) sets.push_back(runtime::declared_shapes(d));
  if (std::ranges::all_of(d.outputs, is_declared)) {
    Row declared;
    for (const IoEntry& output : d.outputs) declared.emplace_back(output.desc.shape);
    return std::vector(sets.size(), declared);
  }
  std::vector<Row> found;
  if (part == 0 && file.is_chain()) {
    for (const std::vector<Shape>& set : sets) {
      // The macro is two statements.
      CORELANE_ASSIGN(found.emplace_back(), inferred_chain(file, set));
    }
  } else {
    CORELANE_ASSIGN(found, inferred(file, part, sets));
  }
  for (Row& shapes : found)
    for (std::size_t i = 0; i < shapes.size(); ++i)
      if (!shapes[i] && is_declared(d.outputs[i])) shapes[i] = d.outputs[i].desc.shape;
  return found;
}

}  // namespace corelane
