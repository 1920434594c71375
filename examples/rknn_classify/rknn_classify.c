/// Classifies a picture with the general API: bytes in, floats out, every conversion left to the
/// library.
///
///   corelane compile orientation.onnx -o orientation.rknn --custom-string "0,90,180,270" ...
///   rknn_classify orientation.rknn page.png
///
/// Prints one line for each of the best classes: its number, its label when the model carries
/// labels as its custom string, and its score.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "rknn_picture.h"

#define MAX_OUTPUTS 8

typedef struct options {
  const char* model;
  const char* picture;
  const char* dump;  ///< Where the input's bytes and the outputs' floats are written to, or NULL.
  int top;
  int bgr;
} options;

static int usage(const char* name) {
  fprintf(stderr,
          "usage: %s MODEL PICTURE.png [--top N] [--bgr] [--dump PREFIX]\n"
          "  --top N        how many classes are printed (5)\n"
          "  --bgr          the model wants blue, green, red\n"
          "  --dump PREFIX  writes PREFIX.input (bytes, NHWC) and PREFIX.output0 (float32)\n",
          name);
  return 2;
}

static int parse(int argc, char** argv, options* out) {
  memset(out, 0, sizeof *out);
  out->top = 5;
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], "--bgr") == 0)
      out->bgr = 1;
    else if (strcmp(argv[i], "--top") == 0 && i + 1 < argc)
      out->top = atoi(argv[++i]);
    else if (strcmp(argv[i], "--dump") == 0 && i + 1 < argc)
      out->dump = argv[++i];
    else if (argv[i][0] == '-')
      return -1;
    else if (out->model == NULL)
      out->model = argv[i];
    else if (out->picture == NULL)
      out->picture = argv[i];
    else
      return -1;
  return out->picture == NULL || out->top < 1 ? -1 : 0;
}

static void print_attr(const char* what, const rknn_tensor_attr* attr) {
  printf("%s %u: name=%s, dims=[", what, attr->index, attr->name);
  for (uint32_t i = 0; i < attr->n_dims; ++i) printf("%s%u", i == 0 ? "" : ", ", attr->dims[i]);
  printf("], n_elems=%u, size=%u, fmt=%s, type=%s, qnt_type=%s, zp=%d, scale=%f\n", attr->n_elems,
         attr->size, get_format_string(attr->fmt), get_type_string(attr->type),
         get_qnt_type_string(attr->qnt_type), attr->zp, (double)attr->scale);
}

/// Opens the model from memory, as programs do that carry it in themselves.
static int open_model(const char* path, rknn_context* ctx) {
  size_t size = 0;
  unsigned char* const model = file_read(path, &size);
  if (model == NULL) return -1;
  const int ret = rknn_init(ctx, model, (uint32_t)size, 0, NULL);
  free(model);
  if (ret < 0) fprintf(stderr, "rknn_init fails with %d\n", ret);
  return ret;
}

static int print_versions(rknn_context ctx) {
  rknn_sdk_version version;
  const int ret = rknn_query(ctx, RKNN_QUERY_SDK_VERSION, &version, sizeof version);
  if (ret < 0) {
    fprintf(stderr, "the versions cannot be queried: %d\n", ret);
    return ret;
  }
  printf("sdk version: %s, driver version: %s\n", version.api_version, version.drv_version);
  return 0;
}

/// The n-th of the words between commas, or "" after the last.
static void label_of(const char* labels, int n, char* out, size_t room) {
  while (n-- > 0) {
    labels = strchr(labels, ',');
    if (labels == NULL) break;
    ++labels;
  }
  const size_t length = labels == NULL ? 0 : strcspn(labels, ",");
  snprintf(out, room, "%.*s", (int)length, labels == NULL ? "" : labels);
}

static void print_top(const float* scores, int count, int top, const char* labels) {
  char* const taken = calloc((size_t)count, 1);
  if (taken == NULL) return;
  for (int k = 0; k < top && k < count; ++k) {
    int best = -1;
    for (int i = 0; i < count; ++i)
      if (!taken[i] && (best < 0 || scores[i] > scores[best])) best = i;
    if (best < 0) break;
    taken[best] = 1;
    char label[64];
    label_of(labels, best, label, sizeof label);
    printf("%3d: %.6f %s\n", best, (double)scores[best], label);
  }
  free(taken);
}

static int dump(const char* prefix, const char* what, const void* data, size_t size) {
  char path[1024];
  snprintf(path, sizeof path, "%s.%s", prefix, what);
  return file_write(path, data, size);
}

/// Scales the picture to what the model takes.
static int prepare(const options* opts, const rknn_tensor_attr* attr, picture* out) {
  if (attr->n_dims != 4 || attr->fmt != RKNN_TENSOR_NHWC || attr->dims[3] != 3) {
    fprintf(stderr, "the model's input is not a picture of three channels\n");
    return -1;
  }
  picture full;
  if (picture_read(opts->picture, &full) < 0) return -1;
  const int ret = picture_resize(&full, (int)attr->dims[2], (int)attr->dims[1], out);
  picture_free(&full);
  if (ret < 0) return ret;
  if (opts->bgr) picture_swap_red_blue(out);
  return 0;
}

static int classify(const options* opts, rknn_context ctx, const picture* image,
                    uint32_t n_output) {
  rknn_input input;
  memset(&input, 0, sizeof input);
  input.index = 0;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.size = (uint32_t)(image->width * image->height * 3);
  input.buf = image->pixels;
  int ret = rknn_inputs_set(ctx, 1, &input);
  if (ret < 0) {
    fprintf(stderr, "rknn_inputs_set fails with %d\n", ret);
    return ret;
  }
  ret = rknn_run(ctx, NULL);
  if (ret < 0) {
    fprintf(stderr, "rknn_run fails with %d\n", ret);
    return ret;
  }
  rknn_output outputs[MAX_OUTPUTS];
  memset(outputs, 0, sizeof outputs);
  for (uint32_t i = 0; i < n_output; ++i) {
    outputs[i].index = i;
    outputs[i].want_float = 1;
  }
  ret = rknn_outputs_get(ctx, n_output, outputs, NULL);
  if (ret < 0) {
    fprintf(stderr, "rknn_outputs_get fails with %d\n", ret);
    return ret;
  }
  rknn_custom_string labels;
  memset(&labels, 0, sizeof labels);
  ret = rknn_query(ctx, RKNN_QUERY_CUSTOM_STRING, &labels, sizeof labels);
  if (ret == 0)
    print_top(outputs[0].buf, (int)(outputs[0].size / sizeof(float)), opts->top, labels.string);
  if (ret == 0 && opts->dump != NULL) {
    ret = dump(opts->dump, "input", input.buf, input.size);
    if (ret == 0) ret = dump(opts->dump, "output0", outputs[0].buf, outputs[0].size);
  }
  rknn_outputs_release(ctx, n_output, outputs);
  return ret;
}

static int run(const options* opts, rknn_context ctx) {
  rknn_input_output_num count;
  int ret = print_versions(ctx);
  if (ret < 0) return ret;
  ret = rknn_query(ctx, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count);
  if (ret < 0) return ret;
  printf("model input num: %u, output num: %u\n", count.n_input, count.n_output);
  if (count.n_input != 1 || count.n_output == 0 || count.n_output > MAX_OUTPUTS) {
    fprintf(stderr, "this program is for models of one input and up to %d outputs\n", MAX_OUTPUTS);
    return -1;
  }
  rknn_tensor_attr in, out;
  memset(&in, 0, sizeof in);
  ret = rknn_query(ctx, RKNN_QUERY_INPUT_ATTR, &in, sizeof in);
  if (ret < 0) return ret;
  print_attr("input", &in);
  for (uint32_t i = 0; i < count.n_output; ++i) {
    memset(&out, 0, sizeof out);
    out.index = i;
    ret = rknn_query(ctx, RKNN_QUERY_OUTPUT_ATTR, &out, sizeof out);
    if (ret < 0) return ret;
    print_attr("output", &out);
  }
  picture image;
  if (prepare(opts, &in, &image) < 0) return -1;
  ret = classify(opts, ctx, &image, count.n_output);
  picture_free(&image);
  return ret;
}

int main(int argc, char** argv) {
  options opts;
  if (parse(argc, argv, &opts) < 0) return usage(argv[0]);
  rknn_context ctx = 0;
  if (open_model(opts.model, &ctx) < 0) return 1;
  const int ret = run(&opts, ctx);
  rknn_destroy(ctx);
  return ret < 0 ? 1 : 0;
}
