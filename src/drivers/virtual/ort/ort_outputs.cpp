#include "drivers/virtual/ort/ort_outputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "drivers/virtual/common/onnx_parts.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

Result<std::string> without_shapes(ByteSpan graph) {
  std::string out;
  out.reserve(graph.size());
  for (WireReader fields(graph); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kGraphOutput)) {
      CORELANE_ASSIGN(GraphValue value, read_value(field.payload));
      // Lists, maps and optionals have no shape of their own.
      if (value.elem_type != 0 && value.has_shape) {
        value.has_shape = false;
        append_bytes_field(out, kGraphOutput, make_value(value));
        continue;
      }
    }
    append_raw(out, field.raw);
  }
  return out;
}

}  // namespace

Status drop_output_shapes(PatchedModel& model) {
  if (has_fixed_inputs(model) && !model.custom_nodes.empty()) return {};
  CORELANE_ASSIGN(model.bytes, rewrite_graph(as_byte_span(model.bytes), without_shapes));
  return {};
}

bool has_fixed_inputs(const PatchedModel& model) {
  return std::ranges::all_of(
      model.inputs, [](const GraphValue& v) { return v.has_shape && v.shape.is_static(); });
}

}  // namespace corelane::drivers::virtual_npu::ort
