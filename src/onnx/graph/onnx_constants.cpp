#include "onnx/graph/onnx_constants.h"

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

/// Returns the offset. The gap up to the alignment is zero.
std::size_t append(::onnx::TensorProto& tensor, ByteSpan bytes, ByteVector& constants) {
  const std::size_t offset = aligned(constants.size());
  constants.resize(offset);
  constants.insert(constants.end(), bytes.begin(), bytes.end());
  refer(tensor, offset, bytes.size());
  return offset;
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

Result<ByteVector> take_constants(::onnx::ModelProto& model, ExternalData& external) {
  CORELANE_ASSIGN(const std::size_t total, size_of_constants(model, external));
  // In one piece: growing would hold the constants twice.
  ByteVector constants;
  try {
    constants.reserve(total);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory for {} bytes of constants", total);
  }
  // for_each_tensor goes on to the end: after an error the rest does nothing.
  Status status;
  std::map<Slice, std::size_t> offsets;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (!status.ok()) return;
    if (!is_external(tensor)) {
      make_raw(tensor);
      if (tensor.raw_data().size() >= kExternalFrom)
        append(tensor, as_byte_span(tensor.raw_data()), constants);
      return;
    }
    const auto bytes = external.bytes_of(tensor);
    if (!bytes) {  // The file changed since it was checked.
      status = bytes.error();
    } else if (bytes->size() >= kExternalFrom) {
      const Slice slice{bytes->data(), bytes->size()};
      if (const auto known = offsets.find(slice); known != offsets.end())
        refer(tensor, known->second, bytes->size());
      else
        offsets[slice] = append(tensor, *bytes, constants);
    } else {
      store(tensor, *bytes);
    }
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
