#include "onnx/graph/onnx_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {
namespace {

/// Engines read weights in place, with vector instructions.
std::size_t aligned(std::size_t n) {
  return (n + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
}

void set_entry(::onnx::TensorProto& tensor, const char* key, std::string value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(std::move(value));
}

void refer(::onnx::TensorProto& tensor, std::size_t offset, std::size_t size) {
  refer_to(tensor, kConstantsLocation, offset, size);
}

/// The bytes go into the message.
void store(::onnx::TensorProto& tensor, ByteSpan bytes) {
  tensor.set_raw_data(bytes.data(), bytes.size());
  tensor.clear_external_data();
  tensor.clear_data_location();
}

/// The bytes of the message itself.
void move_out(::onnx::TensorProto& tensor, LargeBytes& constants) {
  const ByteSpan bytes = as_byte_span(tensor.raw_data());
  const std::size_t offset = make_room(bytes.size(), constants);
  std::ranges::copy(bytes, constants.data() + offset);
  refer(tensor, offset, bytes.size());
}

/// Bytes of external files, by address and length: tensors that share them share the constants.
using Slice = std::pair<const std::byte*, std::size_t>;

/// What the external tensors take in memory beyond the files they lie in, at most: some small ones
/// may share their bytes. Without a bound, a short file makes any amount of memory of a long one.
constexpr std::size_t kSharedSlack = std::size_t{16} << 20;

/// How large the constants become; every tensor is checked on the way.
Result<std::size_t> size_of_constants(::onnx::ModelProto& model, ExternalData& external) {
  Status status;
  std::size_t total = 0;
  std::size_t unfolded = 0;
  std::set<Slice> seen;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (!status.ok()) return;
    status = check_tensor(tensor, "the model");
    if (!status.ok()) return;
    const std::size_t size = tensor_bytes(tensor).value_or(0);
    if (is_external(tensor)) {
      const auto bytes = external.bytes_of(tensor);
      if (!bytes) {
        status = bytes.error();
        return;
      }
      // Shared bytes are taken once, so they count once.
      if (size >= kExternalFrom && !seen.insert({bytes->data(), size}).second) return;
      unfolded += size;
      if (unfolded > external.size_of_files() + kSharedSlack) {
        status = error(Code::kUnsupportedModel,
                       "tensor '{}': the external tensors overlap in their files so that they "
                       "take {} bytes and more, the files have {}; write each tensor's bytes once",
                       tensor.name(), unfolded, external.size_of_files());
        return;
      }
    }
    if (size >= kExternalFrom) total = aligned(total) + size;
  });
  CORELANE_TRY(status);
  return total;
}

}  // namespace

std::size_t make_room(std::size_t size, LargeBytes& constants) {
  const std::size_t offset = aligned(constants.size());
  constants.resize(offset, std::byte{0});
  constants.resize(offset + size);
  return offset;
}

Result<LargeBytes> take_constants(::onnx::ModelProto& model, ExternalData& external) {
  CORELANE_ASSIGN(const std::size_t total, size_of_constants(model, external));
  // In one piece: growing would hold the constants twice.
  LargeBytes constants;
  try {
    constants.reserve(total);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory for {} bytes of constants", total);
  }
  std::map<Slice, std::size_t> offsets;
  const auto take_external = [&](::onnx::TensorProto& tensor) -> Status {
    CORELANE_ASSIGN(const ByteSpan bytes, external.bytes_of(tensor));
    if (bytes.size() < kExternalFrom) {
      store(tensor, bytes);
      return {};
    }
    const auto [known, is_new] = offsets.try_emplace({bytes.data(), bytes.size()});
    if (is_new) {
      known->second = make_room(bytes.size(), constants);
      CORELANE_TRY(external.copy(bytes, constants.data() + known->second)
                       .wrap(fmt::format("tensor '{}'", tensor.name())));
    }
    refer(tensor, known->second, bytes.size());
    return {};
  };
  // for_each_tensor goes on to the end: after an error the rest does nothing.
  Status status;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (!status.ok()) return;
    if (is_external(tensor)) {
      status = take_external(tensor);
      return;
    }
    make_raw(tensor);
    if (tensor.raw_data().size() >= kExternalFrom) move_out(tensor, constants);
  });
  CORELANE_TRY(status);
  return constants;
}

void refer_to(::onnx::TensorProto& tensor, const char* location, std::size_t offset,
              std::size_t size) {
  tensor.clear_external_data();
  set_entry(tensor, "location", location);
  set_entry(tensor, "offset", std::to_string(offset));
  set_entry(tensor, "length", std::to_string(size));
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  // clear() would keep the string's memory.
  const std::unique_ptr<std::string> freed(tensor.release_raw_data());
}

Status inline_tensor(::onnx::TensorProto& tensor, ByteSpan constants) {
  if (!is_external(tensor)) return {};
  CORELANE_ASSIGN(const ByteSpan bytes, constants_slice(tensor, constants));
  store(tensor, bytes);
  return {};
}

}  // namespace corelane::onnx
