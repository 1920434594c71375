#include "onnx/graph/onnx_stored.h"

#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {

Result<bool> read_stored(ByteSpan graph, ByteSpan constants, ::onnx::ModelProto& model) {
  CORELANE_ASSIGN(const bool sorted, parse_sorted(graph, model));
  Status status;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (status.ok()) status = check_tensor(tensor, "the network");
    if (!status.ok()) return;
    if (!is_external(tensor)) return make_raw(tensor);
    if (auto slice = constants_slice(tensor, constants); !slice) status = slice.error();
  });
  CORELANE_TRY(status);
  return sorted;
}

Result<::onnx::ModelProto*> reread_stored(ByteSpan graph, google::protobuf::Arena& arena) {
  auto* const model = google::protobuf::Arena::CreateMessage<::onnx::ModelProto>(&arena);
  if (!model->ParseFromArray(graph.data(), static_cast<int>(graph.size())))
    return error(Code::kMalformed, "a network of {} bytes: protobuf cannot read it", graph.size());
  for_each_tensor(*model, [](::onnx::TensorProto& tensor) {
    if (!is_external(tensor)) make_raw(tensor);
  });
  return model;
}

}  // namespace corelane::onnx
