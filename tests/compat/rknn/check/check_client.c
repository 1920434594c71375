/* A C program that forgets to destroy what it made, for the checking mode to report. */
#include <rknn_api.h>
#include <stdio.h>

/* y = Relu(x), f32 (4), as ONNX. */
static char model[] =
    "\x08\x08"                                                          /* IR version 8 */
    "\x3a\x33"                                                          /* the graph: */
    "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu"                            /*   y = Relu(x) */
    "\x12\x01r"                                                         /*   name */
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04" /* input x */
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x04" /* output y */
    "\x42\x02\x10\x0d";                                                 /* opset 13 */

/* Visible, so that the line can name it. */
int make_memory(rknn_context context);
int make_memory(rknn_context context) { return rknn_create_mem(context, 64) != NULL; }

int main(void) {
  rknn_context context = 0;
  const int code = rknn_init(&context, model, sizeof model - 1, 0, NULL);
  if (code < 0 || !make_memory(context)) {
    fprintf(stderr, "check_client: %d\n", code);
    return 1;
  }
  return 0;
}
