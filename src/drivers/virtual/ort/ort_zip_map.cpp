#include "drivers/virtual/ort/ort_zip_map.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "corelane/tensor/value.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

/// What is looked at of a node. Borrows from its message.
struct NodeFacts {
  std::string_view op;
  std::string_view domain;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  bool has_graphs = false;
  ZipLabels labels;
};

Status read_attribute(ByteSpan message, NodeFacts& node) {
  std::string_view name;
  ZipLabels labels;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kAttributeName)) name = field.text();
    if (field.is_bytes(kAttributeGraph) || field.is_bytes(kAttributeGraphs)) node.has_graphs = true;
    if (field.is_bytes(kAttributeStrings)) labels.texts.emplace_back(field.text());
    if (field.number == kAttributeInts) CORELANE_TRY(read_integers(field, labels.numbers));
  }
  if (name == "classlabels_int64s") node.labels.numbers = std::move(labels.numbers);
  if (name == "classlabels_strings") node.labels.texts = std::move(labels.texts);
  return {};
}

Result<NodeFacts> read_node(ByteSpan message) {
  NodeFacts node;
  for (WireReader fields(message); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kNodeOpType)) node.op = field.text();
    if (field.is_bytes(kNodeDomain)) node.domain = field.text();
    if (field.is_bytes(kNodeInput)) node.inputs.push_back(field.text());
    if (field.is_bytes(kNodeOutput)) node.outputs.push_back(field.text());
    if (field.is_bytes(kNodeAttribute)) CORELANE_TRY(read_attribute(field.payload, node));
  }
  return node;
}

bool is_zip(const NodeFacts& node) {
  return node.op == "ZipMap" && node.domain == "ai.onnx.ml" && node.inputs.size() == 1 &&
         node.outputs.size() == 1 && node.labels.numbers.empty() != node.labels.texts.empty();
}

std::string identity(const NodeFacts& node) {
  std::string bytes;
  append_bytes_field(bytes, kNodeInput, node.inputs[0]);
  append_bytes_field(bytes, kNodeOutput, node.outputs[0]);
  append_bytes_field(bytes, kNodeOpType, "Identity");
  return bytes;
}

/// Equal keys keep their order: the last one counts.
template <class Key>
void sort_keys(std::vector<Key>& keys, std::vector<std::size_t>& columns) {
  if (keys.empty() || std::ranges::is_sorted(keys)) return;
  columns.resize(keys.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  std::ranges::stable_sort(columns, {}, [&](std::size_t column) { return keys[column]; });
  std::vector<Key> sorted;
  for (const std::size_t column : columns) sorted.push_back(std::move(keys[column]));
  keys = std::move(sorted);
}

/// The keys of each ZipMap of the graph that can be left out, by the output that it makes.
Result<ZippedOutputs> find_zipped(ByteSpan graph, const std::vector<GraphValue>& outputs) {
  ZippedOutputs found;
  std::set<std::string, std::less<>> read;
  for (WireReader fields(graph); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (!field.is_bytes(kGraphNode)) continue;
    CORELANE_ASSIGN(NodeFacts node, read_node(field.payload));
    // What a graph within reads is not looked for.
    if (node.has_graphs) return ZippedOutputs();
    read.insert(node.inputs.begin(), node.inputs.end());
    if (!is_zip(node)) continue;
    sort_keys(node.labels.numbers, node.labels.columns);
    sort_keys(node.labels.texts, node.labels.columns);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == node.outputs[0]) found.emplace(i, std::move(node.labels));
  }
  std::erase_if(found,
                [&](const auto& zipped) { return read.contains(outputs[zipped.first].name); });
  return found;
}

Result<std::string> rewritten(ByteSpan graph, const ZippedOutputs& zipped,
                              const std::vector<GraphValue>& outputs) {
  const auto is_zipped = [&](std::string_view name) {
    return std::ranges::any_of(zipped,
                               [&](const auto& z) { return outputs[z.first].name == name; });
  };
  std::string out;
  out.reserve(graph.size());
  for (WireReader fields(graph); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kGraphNode)) {
      CORELANE_ASSIGN(const NodeFacts node, read_node(field.payload));
      if (is_zip(node) && is_zipped(node.outputs[0])) {
        append_bytes_field(out, kGraphNode, identity(node));
        continue;
      }
    } else if (field.is_bytes(kGraphOutput)) {
      CORELANE_ASSIGN(GraphValue value, read_value(field.payload));
      if (is_zipped(value.name)) {
        GraphValue floats;
        floats.name = value.name;
        floats.elem_type = onnx_type_of(DType::kF32);
        append_bytes_field(out, kGraphOutput, make_value(floats));
        continue;
      }
    }
    append_raw(out, field.raw);
  }
  return out;
}

}  // namespace

Result<ZippedOutputs> unzip_outputs(PatchedModel& patched) {
  const auto is_list = [](const GraphValue& v) { return v.type.kind() == ValueKind::kSequence; };
  if (std::ranges::none_of(patched.outputs, is_list)) return ZippedOutputs();
  ZippedOutputs zipped;
  const auto write = [&](ByteSpan graph) -> Result<std::string> {
    CORELANE_ASSIGN(zipped, find_zipped(graph, patched.outputs));
    if (zipped.empty()) return std::string(as_string_view(graph));
    return rewritten(graph, zipped, patched.outputs);
  };
  CORELANE_ASSIGN(patched.bytes, rewrite_graph(as_byte_span(patched.bytes), write));
  return zipped;
}

Result<ByteVector> zip_rows(const TensorView& rows, const ZipLabels& labels,
                            std::string_view output) {
  const std::size_t rank = rows.shape.rank();
  const std::size_t columns = labels.size();
  if (rank < 1 || rank > 2 || rows.shape[rank - 1] != static_cast<std::int64_t>(columns))
    return error(Code::kEngineFailed, "output '{}': ZipMap has {} labels for rows of shape {}",
                 output, columns, rows.shape.to_string());
  const std::size_t count = rank == 1 ? 1 : static_cast<std::size_t>(rows.shape[0]);
  const Shape shape{static_cast<std::int64_t>(columns)};
  const std::vector<std::string_view> texts(labels.texts.begin(), labels.texts.end());
  const TensorView numbers{
      labels.numbers.data(), columns * sizeof(std::int64_t), DType::kI64, shape, {}, {}};
  TensorView row{rows.data, columns * sizeof(float), DType::kF32, shape, {}, {}};
  std::vector<float> ordered(labels.columns.size());
  ValueBuilder builder;
  builder.sequence(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (texts.empty())
      builder.map(DType::kI64).tensor(numbers);
    else
      builder.map(DType::kString).strings(shape, texts);
    const float* const values = static_cast<const float*>(rows.data) + i * columns;
    for (std::size_t k = 0; k < ordered.size(); ++k) ordered[k] = values[labels.columns[k]];
    row.data = ordered.empty() ? values : ordered.data();
    builder.tensor(row);
  }
  return builder.finish();
}

}  // namespace corelane::drivers::virtual_npu::ort
