#include "onnx/graph/onnx_model_bytes.h"

#include "onnx/check/onnx_check.h"
#include "onnx/graph/onnx_repeats.h"
#include "onnx/graph/onnx_scan.h"
#include "onnx/graph/onnx_sort.h"

namespace corelane::onnx {

Status read_model(ByteSpan bytes, ::onnx::ModelProto& model) {
  // protobuf allocates while it reads: sizes and nesting are looked at before.
  CORELANE_TRY(check_wire(bytes));
  return read_checked(bytes, model);
}

Status read_checked(ByteSpan bytes, ::onnx::ModelProto& model) {
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return error(Code::kMalformed, "not an ONNX model, or damaged: protobuf cannot read it");
  return {};
}

Status parse_model(ByteSpan bytes, ::onnx::ModelProto& model) {
  const auto sorted = parse_sorted(bytes, model);
  return sorted ? Status() : sorted.error();
}

Result<bool> parse_sorted(ByteSpan bytes, ::onnx::ModelProto& model) {
  CORELANE_TRY(read_model(bytes, model));
  return put_in_order(model);
}

Result<bool> put_in_order(::onnx::ModelProto& model) {
  const Status structure = check_structure(model);
  // Most files are in order, and pay nothing.
  if (structure.ok()) return false;
  if (!model.has_graph()) return error(structure);
  const bool dropped = drop_repeated_initializers(model);
  if (!sort_nodes(model) && !dropped) return error(structure);
  CORELANE_TRY(check_structure(model));
  return true;
}

Result<ByteVector> serialize_model(const ::onnx::ModelProto& model) {
  // protobuf counts bytes in an int.
  const std::size_t size = model.ByteSizeLong();
  if (size > std::size_t{0x7FFFFFFF}) {
    return error(Code::kUnsupportedModel, "the model takes {} bytes; protobuf allows 2147483647",
                 size);
  }
  ByteVector bytes(size);
  // Each message keeps the size that was just counted; SerializeToArray() would count again.
  auto* const begin = reinterpret_cast<std::uint8_t*>(bytes.data());
  if (model.SerializeWithCachedSizesToArray(begin) != begin + size)
    return error(Code::kInternal, "protobuf cannot write the model");
  return bytes;
}

}  // namespace corelane::onnx
