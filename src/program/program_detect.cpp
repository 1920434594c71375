#include <algorithm>
#include <iterator>

#include "base/onnx_fields.h"
#include "base/wire.h"
#include "corelane/base/bytes.h"
#include "corelane/program/program_file.h"
#include "program/program_format.h"

namespace corelane {

namespace {

using enum onnx_fields::Number;

bool starts_with(ByteSpan bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() && as_string_view(bytes.subspan(at, text.size())) == text;
}

/// True for the fields of ONNX's ModelProto, with their wire type.
bool is_model_field(std::uint64_t field, WireType wire) {
  constexpr std::uint64_t kMessages[] = {
      kModelProducerName, kModelProducerVersion, kModelDomain,   kModelDocString,
      kModelGraph,        kModelOpsets,          kModelMetadata, kModelTraining,
      kModelFunctions,    kModelConfigurations};
  if (field == kModelIrVersion || field == kModelVersion) return wire == WireType::kVarint;
  return wire == WireType::kBytes && std::ranges::find(kMessages, field) != std::end(kMessages);
}

/// True when the first byte of an embedded GraphProto or OperatorSetIdProto is one of its tags.
bool plausible_content(std::uint64_t field, ByteSpan content) {
  if (content.empty()) return true;
  const auto tag = std::to_integer<unsigned>(content.front());
  constexpr unsigned kGraphTags[] = {0x0A, 0x12, 0x2A, 0x52, 0x5A, 0x62, 0x6A, 0x72, 0x7A, 0x82};
  if (field == kModelGraph) return std::ranges::find(kGraphTags, tag) != std::end(kGraphTags);
  if (field == kModelOpsets) return tag == 0x0A || tag == 0x10;
  return true;
}

/// Walks the top-level fields as far as the bytes go: they must be a ModelProto's, with a graph or
/// an operator set among them. The bytes may be only the beginning of the file.
bool looks_like_onnx(ByteSpan bytes) {
  bool decisive = false;
  for (int fields = 0; fields < 64 && !bytes.empty(); ++fields) {
    const auto key = take_varint(bytes);
    // Cut off: the bytes may be the beginning only.
    if (!key) return decisive;
    const std::uint64_t number = *key >> 3;
    const auto type = static_cast<WireType>(*key & 7);
    if (!is_model_field(number, type)) return decisive;
    const auto value = take_varint(bytes);
    if (!value) return decisive;
    if (type == WireType::kVarint) continue;
    const std::size_t size = std::min<std::uint64_t>(*value, bytes.size());
    if (!plausible_content(number, bytes.first(size))) return false;
    decisive = decisive || number == kModelGraph || number == kModelOpsets;
    bytes = bytes.subspan(size);
  }
  return decisive;
}

}  // namespace

const ForeignMagic* find_foreign(ByteSpan bytes, std::span<const ForeignMagic> foreign) noexcept {
  const ForeignMagic* found = nullptr;
  for (const ForeignMagic& magic : foreign) {
    if (!starts_with(bytes, magic.bytes, magic.offset)) continue;
    // What a file begins with counts more than what stands further on.
    if (found == nullptr || magic.offset < found->offset) found = &magic;
  }
  return found;
}

Status check_foreign(ByteSpan bytes, const ForeignMagic& magic, std::string_view name) {
  // Formats count up from 1, in steps that are years apart.
  constexpr std::uint64_t kMostVersions = 255;
  if (magic.header == 0) return {};
  constexpr std::string_view kNext =
      "the file is damaged or cut short: copy it again, or compile "
      "the ONNX model it came from with `corelane compile`";
  if (bytes.size() <= magic.header)
    return error(Code::kMalformed,
                 "{} begins as a vendor-compiled {} file, but has {} bytes, and its header alone "
                 "has {}; {}",
                 name, magic.kind, bytes.size(), magic.header, kNext);
  ByteReader numbers(bytes.subspan(magic.header - 16, 16));
  CORELANE_ASSIGN(const auto version, numbers.read<std::uint64_t>());
  CORELANE_ASSIGN(const auto length, numbers.read<std::uint64_t>());
  if (version == 0 || version > kMostVersions)
    return error(Code::kMalformed,
                 "{} begins as a vendor-compiled {} file, but says {} is its format, and 1 to {} "
                 "can be; {}",
                 name, magic.kind, version, kMostVersions, kNext);
  if (length == 0 || length > bytes.size() - magic.header)
    return error(Code::kMalformed,
                 "{} begins as a vendor-compiled {} file, but says {} bytes follow its header, and "
                 "{} do; {}",
                 name, magic.kind, length, bytes.size() - magic.header, kNext);
  return {};
}

FileKind detect_file_kind(ByteSpan bytes, std::span<const ForeignMagic> foreign) noexcept {
  // Other kinds may begin with the same magic: the tag decides.
  if (starts_with(bytes, program::kMagic) && starts_with(bytes, program::kTag, 4))
    return FileKind::kProgram;
  // Before the others: an ONNX file's producer name may stand where they have a magic.
  if (looks_like_onnx(bytes)) return FileKind::kOnnx;
  const ForeignMagic* const row = find_foreign(bytes, foreign);
  if (row == nullptr) return FileKind::kUnknown;
  return row->encrypted ? FileKind::kVendorCrypted : FileKind::kVendor;
}

std::string_view file_kind_name(FileKind kind) noexcept {
  // In the order of the enumerators.
  constexpr std::string_view kNames[] = {"program", "onnx", "vendor", "vendor-crypted", "unknown"};
  return kNames[std::min(static_cast<std::size_t>(kind), std::size(kNames) - 1)];
}

std::string segment_kind_name(SegmentKind kind) {
  constexpr std::string_view kNames[] = {"graph",   "constants", "precompiled", "foreign",
                                         "lowered", "verdict",   "trial"};
  const auto number = static_cast<std::size_t>(kind);  // From 1 on.
  return number - 1 < std::size(kNames) ? std::string(kNames[number - 1])
                                        : fmt::format("kind {}", number);
}

}  // namespace corelane
