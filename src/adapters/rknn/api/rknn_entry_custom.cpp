/// The functions of rknn_custom_op.h.
#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/custom/rknn_custom.h"
#include "adapters/rknn/model/rknn_model.h"
#include "rknn_custom_op.h"

namespace corelane::rknn {

RKNN_EXPORT int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op* op,
                                         uint32_t custom_op_num) {
  return on_context<ModelContext>(__func__, ctx, [&](ModelContext& model) {
    return model.register_custom_ops(op, custom_op_num);
  });
}

RKNN_EXPORT void rknn_custom_op_get_op_attr(rknn_custom_op_context* op_ctx, const char* attr_name,
                                            rknn_custom_op_attr* op_attr) {
  CustomOps::answer(op_ctx, attr_name, op_attr);
}

}  // namespace corelane::rknn
