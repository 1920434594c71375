/* A librknnrt.so that knows images of its own, and nothing of Corelane: it takes the place of the
 * vendor's.
 *
 * An image is text. Its first 8 bytes are "STUB0001", or "RKNN" and any 4 bytes and "STUB0001".
 *   in NAME TYPE FMT QNT ZP SCALE DIMS      TYPE f32 f16 i8 u8 i32 i64 bool, FMT nchw nhwc undef,
 *   out NAME TYPE FMT QNT ZP SCALE DIMS     QNT none affine, DIMS as reported: 1,4,5,3
 *   allow DIMS                              shapes that input 0 may take besides
 *   fail FUNCTION CODE                      that function returns CODE
 *                                           (own_output: outputs come in memory of the library's)
 *   once FUNCTION CODE                      the same, the first time that it is called
 *   slow MS                                 each run takes so long
 *   mean X                                  taken off inputs, but for those of UNDEFINED format
 * Output i is input i (modulo their number) plus 1, element by element in model order.
 *
 * Variants, by definition: STUB_WITHOUT_DUP, _CORE_MASK, _SHAPES, _RUN leave the function out;
 * STUB_NHWC_ONLY refuses NCHW inputs; STUB_ONE_CORE refuses every core mask; STUB_VERSION. */
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier): what the C library asks for.
#include "stub_vendor.h"

#include <math.h>
#include <pthread.h>
#include <rknn_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef STUB_VERSION
#define STUB_VERSION "2.3.2 (stub@2025-04-09)"
#endif

enum { kMost = 8, kFails = 8, kAllows = 4 };

typedef struct {
  char function[40];
  int code;
  int once;
} stub_fail;

typedef struct {
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
} stub_shape;

typedef struct {
  rknn_input_output_num count;
  rknn_tensor_attr inputs[kMost];
  rknn_tensor_attr outputs[kMost];
  stub_shape allowed[kAllows];
  uint32_t n_allowed;
  stub_fail fails[kFails];
  uint32_t n_fails;
  long slow_ms;
  double mean;           /* Taken off inputs of a defined format. */
  double* values[kMost]; /* Of the inputs, model order. */
  uint32_t flags;
  int has_run;
} stub_context;

static const char kLayers[] =
    "----------\n      Network Layer Information Table\n----------\n"
    "ID   OpType          DataType Target InputShape        OutputShape  Cycles(DDR/NPU/Total) "
    "Time(us)  MacUsage(%)  WorkLoad(0/1/2)      RW(KB)  FullName\n----------\n"
    "1    InputOperator   UINT8    CPU    \\                 (1,3,4,5)    0/0/0                 "
    "4         \\            0.0%/0.0%/0.0%       0       InputOperator:x\n"
    "2    ConvRelu        INT8     NPU    (1,3,4,5),(2,3)   (1,2,4,5)    3109/12544/12544      "
    "220.5     10.1/0.0/0.0 100.0%/0.0%/0.0%     187     Conv:/model/a:b\n"
    "3    OutputOperator  INT8     CPU    (1,2,4,5)         \\            0/0/0                 "
    "1         \\            0.0%/0.0%/0.0%       2       OutputOperator:y\n"
    "----------\nTotal Operator Elapsed Per Frame Time(us): 225\n----------\n"
    "      Operator Time Consuming Ranking Table\n----------\n"
    "OpType CallNumber CPUTime(us) GPUTime(us) NPUTime(us) TotalTime(us) TimeRatio(%)\n"
    "ConvRelu 1 0 0 220 220 97.7%\nTotal 3 5 0 220 225\n";

static const char kBanner[] __attribute__((used)) = "librknnrt version: " STUB_VERSION;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static stub_counts g_counts;

#define COUNT(member)              \
  do {                             \
    pthread_mutex_lock(&g_lock);   \
    ++g_counts.member;             \
    pthread_mutex_unlock(&g_lock); \
  } while (0)

/* The first calls, a letter each; the last byte stays 0. */
static char g_order[256];

/* With the lock. */
static void note(char letter) {
  const size_t length = strlen(g_order);
  if (length + 1 < sizeof(g_order)) g_order[length] = letter;
}

#define NOTE(member, letter)       \
  do {                             \
    pthread_mutex_lock(&g_lock);   \
    ++g_counts.member;             \
    note(letter);                  \
    pthread_mutex_unlock(&g_lock); \
  } while (0)

void stub_order(char* text, uint32_t size) {
  pthread_mutex_lock(&g_lock);
  snprintf(text, size, "%s", g_order);
  pthread_mutex_unlock(&g_lock);
}

void stub_look(stub_counts* counts) {
  pthread_mutex_lock(&g_lock);
  *counts = g_counts;
  pthread_mutex_unlock(&g_lock);
}

void stub_forget(void) {
  pthread_mutex_lock(&g_lock);
  memset(&g_counts, 0, sizeof(g_counts));
  memset(g_order, 0, sizeof(g_order));
  pthread_mutex_unlock(&g_lock);
}

// NOLINTNEXTLINE(performance-no-int-to-ptr): a context is a number.
static stub_context* at(rknn_context context) { return (stub_context*)(uintptr_t)context; }

/* The scripted failure of a function, or 0. */
static int scripted(stub_context* s, const char* function) {
  for (uint32_t i = 0; i < s->n_fails; ++i) {
    stub_fail* fail = &s->fails[i];
    if (strcmp(fail->function, function) != 0) continue;
    const int code = fail->code;
    if (fail->once) fail->code = 0;
    return code;
  }
  return 0;
}

static uint32_t bytes_of(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_INT32:
      return 4;
    case RKNN_TENSOR_FLOAT16:
      return 2;
    case RKNN_TENSOR_INT64:
      return 8;
    default:
      return 1;
  }
}

static int parse_type(const char* text, rknn_tensor_type* type) {
  static const struct {
    const char* name;
    rknn_tensor_type type;
  } kNames[] = {{"f32", RKNN_TENSOR_FLOAT32}, {"f16", RKNN_TENSOR_FLOAT16},
                {"i8", RKNN_TENSOR_INT8},     {"u8", RKNN_TENSOR_UINT8},
                {"i32", RKNN_TENSOR_INT32},   {"i64", RKNN_TENSOR_INT64},
                {"bool", RKNN_TENSOR_BOOL},   {"i4", RKNN_TENSOR_INT4}};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i)
    if (strcmp(text, kNames[i].name) == 0) {
      *type = kNames[i].type;
      return 1;
    }
  return 0;
}

static int parse_dims(const char* text, stub_shape* shape) {
  shape->n_dims = 0;
  while (*text != '\0' && shape->n_dims < RKNN_MAX_DIMS) {
    char* end = NULL;
    shape->dims[shape->n_dims++] = (uint32_t)strtoul(text, &end, 10);
    if (end == text) return 0;
    text = *end == ',' ? end + 1 : end;
  }
  return *text == '\0';
}

static void set_shape(rknn_tensor_attr* attr, const stub_shape* shape) {
  attr->n_dims = shape->n_dims;
  attr->n_elems = 1;
  memcpy(attr->dims, shape->dims, sizeof(shape->dims));
  for (uint32_t d = 0; d < shape->n_dims; ++d) attr->n_elems *= shape->dims[d];
  attr->size = attr->n_elems * bytes_of(attr->type);
}

static int parse_tensor(const char* line, rknn_tensor_attr* attr, uint32_t index) {
  char type[8], fmt[8], qnt[8], dims[128];
  stub_shape shape;
  memset(attr, 0, sizeof(*attr));
  if (sscanf(line, "%*s %255s %7s %7s %7s %d %f %127s", attr->name, type, fmt, qnt, &attr->zp,
             &attr->scale, dims) != 7 ||
      !parse_type(type, &attr->type) || !parse_dims(dims, &shape))
    return 0;
  attr->index = index;
  attr->fmt = strcmp(fmt, "nchw") == 0      ? RKNN_TENSOR_NCHW
              : strcmp(fmt, "nhwc") == 0    ? RKNN_TENSOR_NHWC
              : strcmp(fmt, "blocked") == 0 ? RKNN_TENSOR_NC1HWC2
                                            : RKNN_TENSOR_UNDEFINED;
  attr->qnt_type =
      strcmp(qnt, "affine") == 0 ? RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC : RKNN_TENSOR_QNT_NONE;
  set_shape(attr, &shape);
  return 1;
}

static int parse_line(stub_context* s, const char* line) {
  char dims[128];
  if (strncmp(line, "in ", 3) == 0 && s->count.n_input < kMost) {
    const uint32_t i = s->count.n_input++;
    return parse_tensor(line, &s->inputs[i], i);
  }
  if (strncmp(line, "out ", 4) == 0 && s->count.n_output < kMost) {
    const uint32_t i = s->count.n_output++;
    return parse_tensor(line, &s->outputs[i], i);
  }
  if (strncmp(line, "allow ", 6) == 0 && s->n_allowed < kAllows)
    return sscanf(line, "allow %127s", dims) == 1 && parse_dims(dims, &s->allowed[s->n_allowed++]);
  const int once = strncmp(line, "once ", 5) == 0;
  if ((once || strncmp(line, "fail ", 5) == 0) && s->n_fails < kFails) {
    stub_fail* fail = &s->fails[s->n_fails++];
    fail->once = once;
    return sscanf(line + 5, "%39s %d", fail->function, &fail->code) == 2;
  }
  if (strncmp(line, "mean ", 5) == 0) return sscanf(line, "mean %lf", &s->mean) == 1;
  return sscanf(line, "slow %ld", &s->slow_ms) == 1;
}

/* 0, or a code of the API. */
static int parse_image(stub_context* s, const char* bytes, uint32_t size) {
  const uint32_t skip = size >= 16 && memcmp(bytes, "RKNN", 4) == 0 ? 8 : 0;
  if (size < skip + 8 || memcmp(bytes + skip, "STUB0001", 8) != 0) {
    fprintf(stderr, "E RKNN: invalid RKNN_MAGIC!\n");
    return RKNN_ERR_FAIL;
  }
  char* text = strndup(bytes + skip + 8, size - skip - 8);
  char* rest = NULL;
  int result = 0;
  for (char* line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
    if (!parse_line(s, line)) result = RKNN_ERR_MODEL_INVALID;
  free(text);
  if (s->count.n_input == 0 || s->count.n_output == 0) result = RKNN_ERR_MODEL_INVALID;
  return result;
}

static void allocate_values(stub_context* s) {
  for (uint32_t i = 0; i < s->count.n_input; ++i) {
    free(s->values[i]);
    s->values[i] = calloc(s->inputs[i].n_elems, sizeof(double));
  }
}

static void drop(stub_context* s) {
  for (uint32_t i = 0; i < kMost; ++i) free(s->values[i]);
  free(s);
}

int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag,
              rknn_init_extend* extend) {
  (void)extend;
  stub_context* s = calloc(1, sizeof(*s));
  const unsigned char* bytes = model;
  uint64_t sum = 14695981039346656037ULL;
  for (uint32_t i = 0; i < size; ++i) sum = (sum ^ bytes[i]) * 1099511628211ULL;
  pthread_mutex_lock(&g_lock);
  ++g_counts.inits;
  note('I');
  g_counts.model_size = size;
  g_counts.model_sum = sum;
  pthread_mutex_unlock(&g_lock);
  int result = parse_image(s, model, size);
  if (result == 0) result = scripted(s, "rknn_init");
  if (result != 0) {
    drop(s);
    return result;
  }
  s->flags = flag;
  allocate_values(s);
  *context = (rknn_context)(uintptr_t)s;
  /* A library calls its own functions by name: these must be its own. */
  rknn_sdk_version version;
  result = rknn_query(*context, RKNN_QUERY_SDK_VERSION, &version, sizeof(version));
  return result == -99 ? result : RKNN_SUCC;
}

#ifndef STUB_WITHOUT_DUP
int rknn_dup_context(rknn_context* context_in, rknn_context* context_out) {
  NOTE(dups, 'D');
  stub_context* from = at(*context_in);
  const int fail = scripted(from, "rknn_dup_context");
  if (fail != 0) return fail;
  stub_context* s = malloc(sizeof(*s));
  *s = *from;
  memset(s->values, 0, sizeof(s->values));
  allocate_values(s);
  *context_out = (rknn_context)(uintptr_t)s;
  return RKNN_SUCC;
}
#endif

int rknn_destroy(rknn_context context) {
  NOTE(destroys, 'X');
  const int fail = scripted(at(context), "rknn_destroy");
  drop(at(context));
  return fail;
}

static int answer_attr(const rknn_tensor_attr* list, uint32_t count, void* info, uint32_t size) {
  rknn_tensor_attr* attr = info;
  if (size < sizeof(*attr) || attr->index >= count) return RKNN_ERR_PARAM_INVALID;
  *attr = list[attr->index];
  return RKNN_SUCC;
}

int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size) {
  stub_context* s = at(context);
  const int fail = scripted(s, "rknn_query");
  if (fail != 0) return fail;
  switch (cmd) {
    case RKNN_QUERY_IN_OUT_NUM:
      if (size < sizeof(s->count)) return RKNN_ERR_PARAM_INVALID;
      memcpy(info, &s->count, sizeof(s->count));
      return RKNN_SUCC;
    case RKNN_QUERY_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_INPUT_ATTR:
      return answer_attr(s->inputs, s->count.n_input, info, size);
    case RKNN_QUERY_OUTPUT_ATTR:
    case RKNN_QUERY_CURRENT_OUTPUT_ATTR:
      return answer_attr(s->outputs, s->count.n_output, info, size);
    case RKNN_QUERY_SDK_VERSION: {
      rknn_sdk_version version;
      if (size < sizeof(version)) return RKNN_ERR_PARAM_INVALID;
      memset(&version, 0, sizeof(version));
      snprintf(version.api_version, sizeof(version.api_version), "%s", STUB_VERSION);
      snprintf(version.drv_version, sizeof(version.drv_version), "0.9.8");
      memcpy(info, &version, sizeof(version));
      return RKNN_SUCC;
    }
    case RKNN_QUERY_PERF_DETAIL: {
      rknn_perf_detail detail;
      if (size < sizeof(detail)) return RKNN_ERR_PARAM_INVALID;
      const char* text = (s->flags & RKNN_FLAG_COLLECT_PERF_MASK) != 0 ? kLayers : "";
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the API's pointer is not const.
      detail.perf_data = (char*)(uintptr_t)text;
      detail.data_len = strlen(text);
      memcpy(info, &detail, sizeof(detail));
      return RKNN_SUCC;
    }
    case RKNN_QUERY_MEM_SIZE: {
      rknn_mem_size memory;
      if (size < sizeof(memory)) return RKNN_ERR_PARAM_INVALID;
      memset(&memory, 0, sizeof(memory));
      memory.total_weight_size = 1000;
      memory.total_internal_size = 100;
      memcpy(info, &memory, sizeof(memory));
      return RKNN_SUCC;
    }
    default:
      return RKNN_ERR_PARAM_INVALID;
  }
}

static double real_of(const void* data, uint32_t i, rknn_tensor_type type,
                      const rknn_tensor_attr* attr) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32:
      return ((const float*)data)[i];
    case RKNN_TENSOR_FLOAT16:
      return (double)((const _Float16*)data)[i];
    case RKNN_TENSOR_INT32:
      return ((const int32_t*)data)[i];
    case RKNN_TENSOR_INT64:
      return (double)((const int64_t*)data)[i];
    case RKNN_TENSOR_INT8: {
      const double q = ((const int8_t*)data)[i];
      return attr->qnt_type == RKNN_TENSOR_QNT_NONE ? q : (q - attr->zp) * (double)attr->scale;
    }
    default:
      return ((const uint8_t*)data)[i];
  }
}

static void put_real(void* data, uint32_t i, double value, const rknn_tensor_attr* attr) {
  switch (attr->type) {
    case RKNN_TENSOR_FLOAT32:
      ((float*)data)[i] = (float)value;
      break;
    case RKNN_TENSOR_FLOAT16:
      ((_Float16*)data)[i] = (_Float16)value;
      break;
    case RKNN_TENSOR_INT32:
      ((int32_t*)data)[i] = (int32_t)value;
      break;
    case RKNN_TENSOR_INT64:
      ((int64_t*)data)[i] = (int64_t)value;
      break;
    case RKNN_TENSOR_INT8: {
      double q = value;
      if (attr->qnt_type != RKNN_TENSOR_QNT_NONE) q = rint(value / (double)attr->scale) + attr->zp;
      ((int8_t*)data)[i] = (int8_t)fmin(fmax(q, -128), 127);
      break;
    }
    default:
      ((uint8_t*)data)[i] = (uint8_t)value;
  }
}

/* Where element i of model order lies in memory of `fmt`; `attr` has the dims of its own format. */
static uint32_t place(const rknn_tensor_attr* attr, rknn_tensor_format fmt, uint32_t i) {
  if (attr->n_dims != 4 || fmt != RKNN_TENSOR_NHWC) return i;
  const int own = attr->fmt == RKNN_TENSOR_NHWC;
  const uint32_t c = attr->dims[own ? 3 : 1];
  const uint32_t h = attr->dims[own ? 1 : 2];
  const uint32_t w = attr->dims[own ? 2 : 3];
  const uint32_t x = i % w, y = i / w % h, z = i / w / h % c, n = i / w / h / c;
  return ((n * h + y) * w + x) * c + z;
}

int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input* inputs) {
  stub_context* s = at(context);
  COUNT(inputs_sets);
  const int fail = scripted(s, "rknn_inputs_set");
  if (fail != 0) return fail;
  for (uint32_t k = 0; k < n_inputs; ++k) {
    const rknn_input* input = &inputs[k];
    if (input->index >= s->count.n_input) return RKNN_ERR_INPUT_INVALID;
    const rknn_tensor_attr* attr = &s->inputs[input->index];
    if (input->size < attr->n_elems * bytes_of(input->type)) return RKNN_ERR_PARAM_INVALID;
#ifdef STUB_NHWC_ONLY
    if (attr->fmt == RKNN_TENSOR_NHWC && input->fmt == RKNN_TENSOR_NCHW) {
      COUNT(refused_inputs);
      return RKNN_ERR_FAIL;
    }
#endif
    const int undefined = input->fmt == RKNN_TENSOR_UNDEFINED;
    const rknn_tensor_format fmt = undefined ? attr->fmt : input->fmt;
    const double mean = undefined ? 0 : s->mean;
    for (uint32_t i = 0; i < attr->n_elems; ++i)
      s->values[input->index][i] =
          real_of(input->buf, place(attr, fmt, i), input->type, attr) - mean;
  }
  return RKNN_SUCC;
}

#ifndef STUB_WITHOUT_CORE_MASK
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask) {
  pthread_mutex_lock(&g_lock);
  ++g_counts.core_masks;
  note('M');
  g_counts.last_mask = (uint32_t)core_mask;
  pthread_mutex_unlock(&g_lock);
#ifdef STUB_ONE_CORE
  (void)context;
  return RKNN_ERR_FAIL;
#else
  const int fail = scripted(at(context), "rknn_set_core_mask");
  if (fail != 0 && core_mask != 1 && core_mask != 2 && core_mask != 4) return fail;
  return RKNN_SUCC;
#endif
}
#endif

#ifndef STUB_WITHOUT_RUN
int rknn_run(rknn_context context, rknn_run_extend* extend) {
  (void)extend;
  stub_context* s = at(context);
  NOTE(runs, 'R');
  const int fail = scripted(s, "rknn_run");
  if (fail != 0) return fail;
  if (s->slow_ms > 0) {
    const struct timespec time = {s->slow_ms / 1000, s->slow_ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
  }
  s->has_run = 1;
  return RKNN_SUCC;
}
#endif

int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output* outputs,
                     rknn_output_extend* extend) {
  (void)extend;
  stub_context* s = at(context);
  COUNT(outputs_gets);
  const int fail = scripted(s, "rknn_outputs_get");
  if (fail != 0) return fail;
  const int shortened = scripted(s, "short_output");
  const int own = scripted(s, "own_output");
  if (!s->has_run) return RKNN_ERR_FAIL;
  for (uint32_t k = 0; k < n_outputs; ++k) {
    rknn_output* output = &outputs[k];
    if (output->index >= s->count.n_output || !output->is_prealloc) return RKNN_ERR_OUTPUT_INVALID;
    const rknn_tensor_attr* attr = &s->outputs[output->index];
    const uint32_t source = output->index % s->count.n_input;
    const uint32_t needed = output->want_float ? attr->n_elems * 4 : attr->size;
    if (output->size < needed) return RKNN_ERR_OUTPUT_INVALID;
    if (own != 0) {
      output->buf = calloc(1, needed);
      output->is_prealloc = 0;
    }
    for (uint32_t i = 0; i < attr->n_elems; ++i) {
      const double y = s->values[source][i % s->inputs[source].n_elems] + 1;
      if (output->want_float)
        ((float*)output->buf)[i] = (float)y;
      else
        put_real(output->buf, place(attr, attr->fmt, i), y, attr);
    }
    output->size = shortened != 0 ? needed / 2 : needed;
  }
  return RKNN_SUCC;
}

int rknn_outputs_release(rknn_context context, uint32_t n_ouputs, rknn_output* outputs) {
  COUNT(outputs_releases);
  for (uint32_t k = 0; k < n_ouputs; ++k)
    if (!outputs[k].is_prealloc) free(outputs[k].buf);
  return scripted(at(context), "rknn_outputs_release");
}

#ifndef STUB_WITHOUT_SHAPES
int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr* attr) {
  stub_context* s = at(ctx);
  COUNT(shape_sets);
  if (n_inputs != s->count.n_input) return RKNN_ERR_FAIL;
  for (uint32_t k = 0; k < s->n_allowed; ++k) {
    const stub_shape* shape = &s->allowed[k];
    if (attr[0].n_dims != shape->n_dims ||
        memcmp(attr[0].dims, shape->dims, shape->n_dims * sizeof(shape->dims[0])) != 0)
      continue;
    set_shape(&s->inputs[0], shape);
    set_shape(&s->outputs[0], shape);
    allocate_values(s);
    return RKNN_SUCC;
  }
  return RKNN_ERR_FAIL;
}
#endif
