#include "model/onnx_constants.h"

#include <memory>

#include "model/onnx_tensor.h"
#include "model/onnx_walk.h"

namespace corelane::onnx_import {
namespace {

std::size_t aligned(std::size_t n) {
  return (n + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
}

void set_entry(onnx::TensorProto& tensor, const char* key, std::string value) {
  auto* entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(std::move(value));
}

void append(onnx::TensorProto& tensor, ByteSpan bytes, ByteVector& constants) {
  const std::size_t offset = aligned(constants.size());
  constants.resize(offset);
  constants.insert(constants.end(), bytes.begin(), bytes.end());
  tensor.clear_external_data();
  set_entry(tensor, "location", kConstantsLocation);
  set_entry(tensor, "offset", std::to_string(offset));
  set_entry(tensor, "length", std::to_string(bytes.size()));
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  // clear() would keep the string's memory.
  const std::unique_ptr<std::string> freed(tensor.release_raw_data());
}

}  // namespace

void place_tensor(onnx::TensorProto& tensor, ByteVector& constants) {
  if (is_external(tensor) || tensor.raw_data().size() < kExternalFrom) return;
  append(tensor, as_byte_span(tensor.raw_data()), constants);
}

Result<ByteVector> take_constants(onnx::ModelProto& model, ExternalData& external) {
  Status status;
  std::size_t total = 0;
  for_each_tensor(model, [&](onnx::TensorProto& tensor) {
    if (!status.ok()) return;
    status = check_tensor(tensor, "the model");
    if (!status.ok()) return;
    if (is_external(tensor)) {
      auto bytes = external.bytes_of(tensor);
      if (!bytes) {
        status = bytes.error();
        return;
      }
    }
    const std::size_t size = tensor_bytes(tensor).value_or(0);
    if (size >= kExternalFrom) total = aligned(total) + size;
  });
  CORELANE_TRY(status);

  ByteVector constants;
  try {
    constants.reserve(total);
  } catch (const std::bad_alloc&) {
    return error(Code::kOutOfMemory, "no memory for {} bytes of constants", total);
  }
  for_each_tensor(model, [&](onnx::TensorProto& tensor) {
    if (!status.ok()) return;
    if (!is_external(tensor)) {
      make_raw(tensor);
      place_tensor(tensor, constants);
      return;
    }
    const auto bytes = external.bytes_of(tensor);
    if (!bytes) {  // The file changed since it was checked.
      status = bytes.error();
    } else if (bytes->size() >= kExternalFrom) {
      append(tensor, *bytes, constants);
    } else {
      tensor.set_raw_data(bytes->data(), bytes->size());
      tensor.clear_external_data();
      tensor.clear_data_location();
    }
  });
  CORELANE_TRY(status);
  return constants;
}

Status inline_tensor(onnx::TensorProto& tensor, ByteSpan constants) {
  if (!is_external(tensor)) return {};
  CORELANE_ASSIGN_OR_STATUS(const ByteSpan bytes, constants_slice(tensor, constants));
  tensor.set_raw_data(bytes.data(), bytes.size());
  tensor.clear_external_data();
  tensor.clear_data_location();
  return {};
}

}  // namespace corelane::onnx_import
