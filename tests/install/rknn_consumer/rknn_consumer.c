/* A user of the installed RKNN library: plain C, headers by their bare names. With the argument
 * "run" runs a model; without, only meets the library. Returns 0 when the answers are right. */
#include <rknn_api.h>
#include <rknn_custom_op.h>
#include <rknn_matmul_api.h>
#include <stdio.h>
#include <string.h>

/* y = Relu(x), f32 (4), as ONNX. */
static char model[] =
    "\x08\x08"                                                          /* IR version 8 */
    "\x3a\x33"                                                          /* the graph: */
    "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"                            /*   y = Relu(x) */
    "\x12\x01r"                                                         /*   name */
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04" /* input x */
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04" /* output y */
    "\x42\x02\x10\x0d";                                                 /* opset 13 */

static int failed(const char* what, int code) {
  fprintf(stderr, "rknn_consumer: %s: %d\n", what, code);
  return 1;
}

static int run_relu(void) {
  rknn_context context = 0;
  int code = rknn_init(&context, model, sizeof model - 1, 0, NULL);
  if (code != RKNN_SUCC) return failed("rknn_init", code);
  rknn_sdk_version version;
  code = rknn_query(context, RKNN_QUERY_SDK_VERSION, &version, sizeof version);
  if (code != RKNN_SUCC) return failed("rknn_query", code);
  float given[4] = {-1, 2, -3, 4};
  rknn_input input;
  memset(&input, 0, sizeof input);
  input.buf = given;
  input.size = sizeof given;
  input.type = RKNN_TENSOR_FLOAT32;
  input.fmt = RKNN_TENSOR_UNDEFINED;
  code = rknn_inputs_set(context, 1, &input);
  if (code != RKNN_SUCC) return failed("rknn_inputs_set", code);
  code = rknn_run(context, NULL);
  if (code != RKNN_SUCC) return failed("rknn_run", code);
  rknn_output output;
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  code = rknn_outputs_get(context, 1, &output, NULL);
  if (code != RKNN_SUCC) return failed("rknn_outputs_get", code);
  const float expected[4] = {0, 2, 0, 4};
  if (output.size != sizeof expected || memcmp(output.buf, expected, sizeof expected) != 0)
    return failed("the output is wrong, bytes", (int)output.size);
  rknn_outputs_release(context, 1, &output);
  printf("%s: right\n", version.api_version);
  return rknn_destroy(context);
}

int main(int argc, char** argv) {
  if (strcmp(get_type_string(RKNN_TENSOR_FLOAT16), "FP16") != 0)
    return failed("get_type_string", 0);
  const int code = rknn_destroy(0);
  if (code != RKNN_ERR_CTX_INVALID) return failed("rknn_destroy(0)", code);
  return argc > 1 && strcmp(argv[1], "run") == 0 ? run_relu() : 0;
}
