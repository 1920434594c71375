#include "onnx/graph/onnx_stored.h"

#include "onnx/graph/onnx_model_bytes.h"
#include "onnx/graph/onnx_tensor.h"
#include "onnx/graph/onnx_walk.h"

namespace corelane::onnx {

Status read_stored(ByteSpan graph, ByteSpan constants, ::onnx::ModelProto& model) {
  CORELANE_TRY(parse_model(graph, model));
  Status status;
  for_each_tensor(model, [&](::onnx::TensorProto& tensor) {
    if (status.ok()) status = check_tensor(tensor, "the network");
    if (!status.ok()) return;
    if (!is_external(tensor)) return make_raw(tensor);
    if (auto slice = constants_slice(tensor, constants); !slice) status = slice.error();
  });
  return status;
}

}  // namespace corelane::onnx
