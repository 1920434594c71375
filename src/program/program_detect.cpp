#include <algorithm>
#include <array>
#include <optional>

#include "corelane/program/program_file.h"
#include "program/program_format.h"

namespace corelane {

namespace {

bool starts_with(ByteSpan bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() && as_string_view(bytes.subspan(at, text.size())) == text;
}

/// A protobuf varint at the front, taken off; nullopt when it is longer than ten bytes or cut off.
std::optional<std::uint64_t> take_varint(ByteSpan& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto b = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (b & 0x7F) << (7 * i);
    if ((b & 0x80) == 0) {
      bytes = bytes.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kLengthDelimited = 2;

/// True for the fields of ONNX's ModelProto, with their wire type.
bool is_model_field(std::uint64_t field, std::uint64_t wire) {
  switch (field) {
    case 1:  // ir_version
    case 5:  // model_version
      return wire == kVarint;
    case 2:   // producer_name
    case 3:   // producer_version
    case 4:   // domain
    case 6:   // doc_string
    case 7:   // graph
    case 8:   // opset_import
    case 14:  // metadata_props
    case 20:  // training_info
    case 25:  // functions
    case 26:  // configuration
      return wire == kLengthDelimited;
    default:
      return false;
  }
}

/// True when the first byte of an embedded GraphProto or OperatorSetIdProto is one of its tags.
bool plausible_content(std::uint64_t field, ByteSpan content) {
  if (content.empty()) return true;
  const auto tag = std::to_integer<unsigned>(content.front());
  constexpr std::array<unsigned, 10> kGraphTags = {0x0A, 0x12, 0x2A, 0x52, 0x5A,
                                                   0x62, 0x6A, 0x72, 0x7A, 0x82};
  if (field == 7) return std::find(kGraphTags.begin(), kGraphTags.end(), tag) != kGraphTags.end();
  if (field == 8) return tag == 0x0A || tag == 0x10;
  return true;
}

/// Walks the top-level fields as far as the bytes go: they must be a ModelProto's, with a graph or
/// an operator set among them. The bytes may be only the beginning of the file.
bool looks_like_onnx(ByteSpan bytes) {
  bool decisive = false;
  for (int fields = 0; fields < 64 && !bytes.empty(); ++fields) {
    const auto tag = take_varint(bytes);
    if (!tag || !is_model_field(*tag >> 3, *tag & 7)) return decisive;
    const auto value = take_varint(bytes);
    if (!value) return decisive;
    if ((*tag & 7) == kVarint) continue;
    const std::size_t size = std::min<std::uint64_t>(*value, bytes.size());
    if (!plausible_content(*tag >> 3, bytes.first(size))) return false;
    decisive = decisive || *tag >> 3 == 7 || *tag >> 3 == 8;
    bytes = bytes.subspan(size);
  }
  return decisive;
}

}  // namespace

FileKind detect_file_kind(ByteSpan bytes) noexcept {
  if (starts_with(bytes, program::kMagic)) {
    return starts_with(bytes, program::kTag, 4) ? FileKind::kProgram : FileKind::kVendor;
  }
  if (starts_with(bytes, "CYPTRKNN") || starts_with(bytes, "CRYPTRKNN") ||
      starts_with(bytes, "RKNE")) {
    return FileKind::kVendorCrypted;
  }
  if (looks_like_onnx(bytes)) return FileKind::kOnnx;
  // The vendor's newer tools write a FlatBuffer whose file identifier is RKNN. Asked last: an ONNX
  // file's producer name may stand at the same place.
  if (starts_with(bytes, program::kMagic, 4)) return FileKind::kVendor;
  return FileKind::kUnknown;
}

std::string_view file_kind_name(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::kProgram:
      return "program";
    case FileKind::kOnnx:
      return "onnx";
    case FileKind::kVendor:
      return "vendor";
    case FileKind::kVendorCrypted:
      return "vendor-crypted";
    case FileKind::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace corelane
