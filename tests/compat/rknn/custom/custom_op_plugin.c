/* A plug-in with the operator AddStep, which keeps nothing between calls. */
#include <rknn_custom_op.h>
#include <string.h>

static int step_compute(rknn_custom_op_context* ctx, rknn_custom_op_tensor* in, uint32_t n_in,
                        rknn_custom_op_tensor* out, uint32_t n_out) {
  const float* x = (const float*)((char*)in[0].mem.virt_addr + in[0].mem.offset);
  float* y = (float*)((char*)out[0].mem.virt_addr + out[0].mem.offset);
  rknn_custom_op_attr attr;
  uint32_t i;
  (void)n_in;
  (void)n_out;
  rknn_custom_op_get_op_attr(ctx, "step", &attr);
  if (attr.n_elems != 1) return -1;
  for (i = 0; i < out[0].attr.n_elems; ++i) y[i] = x[i] + *(const float*)attr.data;
  return 0;
}

RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void);
RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void) {
  static rknn_custom_op op;
  memset(&op, 0, sizeof op);
  strncpy(op.op_type, "AddStep", RKNN_MAX_NAME_LEN - 1);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  op.compute = step_compute;
  return &op;
}
