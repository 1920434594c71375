#include "corelane/runtime/external_data.h"

#include <algorithm>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "corelane/program/program_file.h"
#include "onnx/graph/onnx_message.h"

namespace corelane {
namespace {

using onnx::Kind;
using enum onnx_fields::Number;

/// An entry is a pair of texts (StringStringEntryProto); only its location counts here.
Status read_entry(ByteSpan bytes, std::vector<std::string>& locations) {
  std::string_view key;
  std::string_view value;
  for (WireReader fields(bytes); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.is_bytes(kEntryKey)) key = field.text();
    if (field.is_bytes(kEntryValue)) value = field.text();
  }
  if (key == "location" && std::find(locations.begin(), locations.end(), value) == locations.end())
    locations.emplace_back(value);
  return {};
}

/// Fields by their numbers in onnx.proto. Fields that cannot hold a tensor are skipped.
Status walk(Kind message, ByteSpan bytes, int depth, std::vector<std::string>& locations) {
  // Nested graphs come from outside: without a limit they could exhaust the stack.
  CORELANE_TRY(check_wire_depth(depth));
  for (WireReader fields(bytes); !fields.at_end();) {
    CORELANE_ASSIGN(const WireField field, fields.next());
    if (field.type != WireType::kBytes) continue;
    if (message == Kind::kTensor && field.number == kTensorExternalData)
      CORELANE_TRY(read_entry(field.payload, locations));
    else if (const Kind kind = onnx::kind_of(message, field.number); onnx::is_message(kind))
      CORELANE_TRY(walk(kind, field.payload, depth + 1, locations));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> external_data_locations(ByteSpan model) {
  std::vector<std::string> locations;
  CORELANE_TRY(walk(Kind::kModel, model, 0, locations));
  return locations;
}

std::vector<std::filesystem::path> external_data_files(ByteSpan model,
                                                       const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (detect_file_kind(model) != FileKind::kOnnx) return files;
  const auto locations = external_data_locations(model);
  if (!locations) return files;
  std::error_code ec;
  for (const std::string& location : *locations)
    if (auto file = folder / location; std::filesystem::is_regular_file(file, ec))
      files.push_back(std::move(file));
  return files;
}

}  // namespace corelane
