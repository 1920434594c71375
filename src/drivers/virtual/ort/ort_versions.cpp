#include "drivers/virtual/ort/ort_versions.h"

#include "base/onnx_fields.h"
#include "base/wire.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using enum onnx_fields::Number;

/// What the engine knows, and up to which version nothing but additions follows.
struct Range {
  std::uint64_t known;
  std::uint64_t last;
};
constexpr Range kIr{13, 14};
constexpr Range kOpset{26, 28};

/// Writes over a version in the model's own bytes: of numbers below 128 the last byte is all.
void fit(const WireField& field, const Range& range) {
  if (field.value <= range.known || field.value > range.last || field.raw.size() != 2) return;
  const_cast<std::byte&>(field.raw.back()) = static_cast<std::byte>(range.known);
}

Status fit_opset(ByteSpan entry) {
  WireField version;
  bool ours = true;
  for (WireReader fields(entry); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kOpsetDomain)) ours = field.text().empty() || field.text() == "ai.onnx";
    if (field.is_varint(kOpsetVersion)) version = field;
  }
  if (ours) fit(version, kOpset);
  return {};
}

Status fit_function(ByteSpan function) {
  for (WireReader fields(function); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kFunctionOpsets)) CORELANE_TRY(fit_opset(field.payload));
  }
  return {};
}

}  // namespace

Status fit_versions(PatchedModel& model) {
  if (model.first_node.contains("BitShift") || model.first_node.contains("Mod")) return {};
  for (WireReader fields(as_byte_span(model.bytes)); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_varint(kModelIrVersion)) fit(field, kIr);
    if (field.is_bytes(kModelOpsets)) CORELANE_TRY(fit_opset(field.payload));
    if (field.is_bytes(kModelFunctions)) CORELANE_TRY(fit_function(field.payload));
  }
  return {};
}

}  // namespace corelane::drivers::virtual_npu::ort
