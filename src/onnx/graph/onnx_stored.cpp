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

}  // namespace corelane::onnx
