#include "runtime/program/external_data.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace corelane::runtime {
namespace {

/// Messages of onnx.proto on the way to TensorProto.external_data.
enum class Message : std::uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTraining,
  kSparse,
  kTensor
};

struct Child {
  Message parent;
  std::uint32_t field;
  Message child;
};

constexpr std::array kChildren = {
    Child{Message::kModel, 7, Message::kGraph},
    Child{Message::kModel, 20, Message::kTraining},
    Child{Message::kModel, 25, Message::kFunction},
    Child{Message::kGraph, 1, Message::kNode},
    Child{Message::kGraph, 5, Message::kTensor},
    Child{Message::kGraph, 15, Message::kSparse},
    Child{Message::kNode, 5, Message::kAttribute},
    Child{Message::kAttribute, 5, Message::kTensor},
    Child{Message::kAttribute, 6, Message::kGraph},
    Child{Message::kAttribute, 10, Message::kTensor},
    Child{Message::kAttribute, 11, Message::kGraph},
    Child{Message::kAttribute, 22, Message::kSparse},
    Child{Message::kAttribute, 23, Message::kSparse},
    Child{Message::kFunction, 7, Message::kNode},
    Child{Message::kFunction, 11, Message::kAttribute},
    Child{Message::kTraining, 1, Message::kGraph},
    Child{Message::kTraining, 2, Message::kGraph},
    Child{Message::kSparse, 1, Message::kTensor},
    Child{Message::kSparse, 2, Message::kTensor},
};
constexpr std::uint32_t kTensorExternalData = 13;  // StringStringEntryProto: key 1, value 2.
constexpr int kDeepest = 100;                      // As protobuf's own limit.

struct Field {
  std::uint32_t number = 0;
  std::optional<ByteSpan> bytes;  ///< Of a length-delimited field.
};

Result<std::uint64_t> read_varint(ByteReader& reader) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    CORELANE_ASSIGN(const auto byte, reader.read<std::uint8_t>());
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return error(Code::kMalformed, "a varint of over ten bytes ends at offset {}", reader.offset());
}

Result<Field> read_field(ByteReader& reader) {
  CORELANE_ASSIGN(const std::uint64_t key, read_varint(reader));
  Field field{static_cast<std::uint32_t>(key >> 3), std::nullopt};
  switch (key & 7U) {
    case 0: {
      CORELANE_ASSIGN([[maybe_unused]] const std::uint64_t value, read_varint(reader));
      break;
    }
    case 1:
      CORELANE_TRY(reader.seek(reader.offset() + 8));
      break;
    case 2: {
      CORELANE_ASSIGN(const std::uint64_t size, read_varint(reader));
      CORELANE_ASSIGN(field.bytes, reader.read_bytes(size));
      break;
    }
    case 5:
      CORELANE_TRY(reader.seek(reader.offset() + 4));
      break;
    default:
      return error(Code::kMalformed, "wire type {} at offset {}", key & 7U, reader.offset());
  }
  return field;
}

Status read_entry(ByteSpan bytes, std::vector<std::string>& locations) {
  ByteReader reader(bytes);
  std::string_view key;
  std::string_view value;
  while (reader.remaining() != 0) {
    CORELANE_ASSIGN(const Field field, read_field(reader));
    if (field.number == 1 && field.bytes) key = as_string_view(*field.bytes);
    if (field.number == 2 && field.bytes) value = as_string_view(*field.bytes);
  }
  if (key == "location" &&
      std::find(locations.begin(), locations.end(), value) == locations.end()) {
    locations.emplace_back(value);
  }
  return {};
}

Status walk(Message message, ByteSpan bytes, int depth, std::vector<std::string>& locations) {
  if (depth > kDeepest) {
    return error(Code::kMalformed, "the model nests over {} messages", kDeepest);
  }
  ByteReader reader(bytes);
  while (reader.remaining() != 0) {
    CORELANE_ASSIGN(const Field field, read_field(reader));
    if (!field.bytes) continue;
    if (message == Message::kTensor && field.number == kTensorExternalData) {
      CORELANE_TRY(read_entry(*field.bytes, locations));
      continue;
    }
    for (const Child& c : kChildren) {
      if (c.parent != message || c.field != field.number) continue;
      CORELANE_TRY(walk(c.child, *field.bytes, depth + 1, locations));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> external_data_locations(ByteSpan model) {
  std::vector<std::string> locations;
  CORELANE_TRY(walk(Message::kModel, model, 0, locations));
  return locations;
}

}  // namespace corelane::runtime
