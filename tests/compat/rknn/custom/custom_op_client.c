/* A C program with a custom operator, in the style of those written for this API: y = AddStep(x).
 * With the argument "plugin" the operator is expected from CORELANE_RKNN_PLUGINS. */
#include <rknn_api.h>
#include <rknn_custom_op.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y = AddStep(x) with step = 2.5, f32 (4), as ONNX. The operator is in no standard. */
static char model[] =
    "\x08\x08"                                  /* IR version 8 */
    "\x3a\x46"                                  /* the graph: */
    "\x0a\x1f\x0a\x01x\x12\x01y\x22\x07"        /*   y = AddStep(x) */
    "AddStep"                                   /*     type */
    "\x2a\x0e\x0a\x04step\x15\x00\x00\x20\x40"  /*     step = 2.5 */
    "\xa0\x01\x01"                              /*       a float */
    "\x12\x01r"                                 /*   name */
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01" /*   input x: float */
    "\x12\x04\x0a\x02\x08\x04"                  /*     (4) */
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01" /*   output y: float */
    "\x12\x04\x0a\x02\x08\x04"                  /*     (4) */
    "\x42\x02\x10\x0d";                         /* opset 13 */

static int inits, prepares, computes, destroys;

static int step_init(rknn_custom_op_context* ctx, rknn_custom_op_tensor* in, uint32_t n_in,
                     rknn_custom_op_tensor* out, uint32_t n_out) {
  rknn_custom_op_attr attr;
  (void)in;
  (void)out;
  if (n_in != 1 || n_out != 1) return -1;
  rknn_custom_op_get_op_attr(ctx, "step", &attr);
  if (attr.n_elems != 1 || attr.dtype != RKNN_TENSOR_FLOAT32) return -1;
  ctx->priv_data = malloc(sizeof(float));
  memcpy(ctx->priv_data, attr.data, sizeof(float));
  ++inits;
  return 0;
}

static int step_prepare(rknn_custom_op_context* ctx, rknn_custom_op_tensor* in, uint32_t n_in,
                        rknn_custom_op_tensor* out, uint32_t n_out) {
  (void)in;
  (void)n_in;
  (void)out;
  (void)n_out;
  ++prepares;
  return ctx->priv_data == NULL ? -1 : 0;
}

static int step_compute(rknn_custom_op_context* ctx, rknn_custom_op_tensor* in, uint32_t n_in,
                        rknn_custom_op_tensor* out, uint32_t n_out) {
  const float* x = (const float*)((char*)in[0].mem.virt_addr + in[0].mem.offset);
  float* y = (float*)((char*)out[0].mem.virt_addr + out[0].mem.offset);
  uint32_t i;
  (void)n_in;
  (void)n_out;
  for (i = 0; i < out[0].attr.n_elems; ++i) y[i] = x[i] + *(const float*)ctx->priv_data;
  ++computes;
  return 0;
}

static int step_destroy(rknn_custom_op_context* ctx) {
  free(ctx->priv_data);
  ctx->priv_data = NULL;
  ++destroys;
  return 0;
}

static int failed(const char* what, int code) {
  fprintf(stderr, "custom_op_client: %s: %d\n", what, code);
  return 1;
}

int main(int argc, char** argv) {
  const int plugin = argc > 1 && strcmp(argv[1], "plugin") == 0;
  rknn_context ctx = 0;
  rknn_custom_op op[1];
  rknn_input input;
  rknn_output output;
  float x[4] = {1, -2, 0.5F, 4};
  int i, run;
  int code = rknn_init(&ctx, model, sizeof model - 1, 0, NULL);
  if (code < 0) return failed("rknn_init", code);
  if (!plugin) {
    memset(op, 0, sizeof op);
    strncpy(op[0].op_type, "AddStep", RKNN_MAX_NAME_LEN - 1);
    op[0].version = 1;
    op[0].target = RKNN_TARGET_TYPE_CPU;
    op[0].init = step_init;
    op[0].prepare = step_prepare;
    op[0].compute = step_compute;
    op[0].destroy = step_destroy;
    code = rknn_register_custom_ops(ctx, op, 1);
    if (code < 0) return failed("rknn_register_custom_ops", code);
  }
  memset(&input, 0, sizeof input);
  input.buf = x;
  input.size = sizeof x;
  code = rknn_inputs_set(ctx, 1, &input);
  if (code < 0) return failed("rknn_inputs_set", code);
  for (run = 0; run < 2; ++run) {
    code = rknn_run(ctx, NULL);
    if (code < 0) return failed("rknn_run", code);
  }
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  code = rknn_outputs_get(ctx, 1, &output, NULL);
  if (code < 0) return failed("rknn_outputs_get", code);
  for (i = 0; i < 4; ++i)
    if (((float*)output.buf)[i] != x[i] + 2.5F) return failed("a wrong result", i);
  rknn_outputs_release(ctx, 1, &output);
  code = rknn_destroy(ctx);
  if (code < 0) return failed("rknn_destroy", code);
  if (!plugin && (inits != 1 || prepares != 2 || computes != 2 || destroys != 1))
    return failed("callbacks were not called as often as they should", computes);
  return 0;
}
