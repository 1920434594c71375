/* Structures as programs of older releases of the API were compiled with, and what their tests
 * share: a model as bytes, and a check that counts. Plain C11. The old layouts are written here by
 * hand, so that nothing of today's headers can change them. */
#ifndef CORELANE_TESTS_OLD_ABI_H
#define CORELANE_TESTS_OLD_ABI_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t old_context;

/* 1.2.0: before h_stride was appended; w_stride was called stride. */
typedef struct {
  uint32_t index, n_dims, dims[16];
  char name[256];
  uint32_t n_elems, size, fmt, type, qnt_type;
  int8_t fl;
  int32_t zp;
  float scale;
  uint32_t stride, size_with_stride;
  uint8_t pass_through;
} old_tensor_attr;
_Static_assert(sizeof(old_tensor_attr) == 372, "the attributes of 1.2.0");

/* 1.2.0 and 1.3.0. */
typedef struct {
  uint32_t total_weight_size, total_internal_size;
} old_mem_size;
_Static_assert(sizeof(old_mem_size) == 8, "the memory sizes of 1.3.0");

/* 1.2.0 and 1.3.0: nothing but the context, in the same 136 bytes. */
typedef struct {
  old_context ctx;
  uint8_t reserved[128];
} old_init_extend;
_Static_assert(sizeof(old_init_extend) == 136, "the extension of 1.3.0");

/* 1.5.0 (type: an element type) and 1.6.0 (type: that of the product). */
typedef struct {
  int32_t M, K, N;
  uint32_t type;
  int32_t b_layout, ac_layout;
} old_matmul_info;
_Static_assert(sizeof(old_matmul_info) == 24, "the matrix product of 1.6.0");

/* The same in every release. */
typedef struct {
  void* virt_addr;
  uint64_t phys_addr;
  int32_t fd, offset;
  uint32_t size, flags;
  void* priv_data;
} old_tensor_mem;

typedef struct {
  char name[256];
  uint32_t n_dims, dims[16], size, type;
} old_matmul_tensor_attr;

typedef struct {
  old_matmul_tensor_attr A, B, C;
} old_matmul_io_attr;

typedef struct {
  uint32_t index;
  void* buf;
  uint32_t size;
  uint8_t pass_through;
  uint32_t type, fmt;
} old_input;

typedef struct {
  uint8_t want_float, is_prealloc;
  uint32_t index;
  void* buf;
  uint32_t size;
} old_output;

static int failures = 0;
#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                                    \
    }                                                                                \
  } while (0)

/* --- y = Relu(x), f32 (1, 3, 2, 5), as ONNX: the wire format of protobuf by hand. */
typedef struct {
  unsigned char bytes[256];
  size_t size;
} message;

static inline void put_number(message* to, int field, int value) {
  to->bytes[to->size++] = (unsigned char)(field << 3);
  to->bytes[to->size++] = (unsigned char)value;
}
static inline void put_bytes(message* to, int field, const void* bytes, size_t size) {
  to->bytes[to->size++] = (unsigned char)(field << 3 | 2);
  to->bytes[to->size++] = (unsigned char)size;
  memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
}
static inline void put_text(message* to, int field, const char* text) {
  put_bytes(to, field, text, strlen(text));
}
static inline void put(message* to, int field, const message* part) {
  put_bytes(to, field, part->bytes, part->size);
}

enum { kChannels = 3, kRows = 2, kColumns = 5, kElements = kChannels * kRows * kColumns };

static inline message value_of(const char* name) {
  static const int dims[] = {1, kChannels, kRows, kColumns};
  message shape = {{0}, 0}, tensor = {{0}, 0}, type = {{0}, 0}, value = {{0}, 0};
  for (int i = 0; i < 4; ++i) {
    message dim = {{0}, 0};
    put_number(&dim, 1, dims[i]);
    put(&shape, 1, &dim);
  }
  put_number(&tensor, 1, 1);
  put(&tensor, 2, &shape);
  put(&type, 1, &tensor);
  put_text(&value, 1, name);
  put(&value, 2, &type);
  return value;
}

static inline message relu_model(void) {
  message node = {{0}, 0}, graph = {{0}, 0}, opset = {{0}, 0}, model = {{0}, 0};
  const message x = value_of("x"), y = value_of("y");
  put_text(&node, 1, "x");
  put_text(&node, 2, "y");
  put_text(&node, 4, "Relu");
  put(&graph, 1, &node);
  put_text(&graph, 2, "relu");
  put(&graph, 11, &x);
  put(&graph, 12, &y);
  put_number(&opset, 2, 13);
  put_number(&model, 1, 8);
  put(&model, 7, &graph);
  put(&model, 8, &opset);
  return model;
}

#endif
