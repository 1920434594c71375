/* A program of release 1.2.0: its shorter structures are filled as far as they reach, and nothing
 * after them is touched. Sizes that no release had are refused. */
#include <sys/mman.h>
#include <unistd.h>

#include "old_abi.h"

int rknn_init(old_context* context, void* model, uint32_t size, uint32_t flag,
              old_init_extend* extend);
int rknn_destroy(old_context context);
int rknn_query(old_context context, uint32_t cmd, void* info, uint32_t size);
int rknn_inputs_set(old_context context, uint32_t n, old_input* inputs);
int rknn_run(old_context context, void* extend);
int rknn_outputs_get(old_context context, uint32_t n, old_output* outputs, void* extend);
int rknn_outputs_release(old_context context, uint32_t n, old_output* outputs);
old_tensor_mem* rknn_create_mem(old_context context, uint32_t size);
int rknn_destroy_mem(old_context context, old_tensor_mem* mem);
int rknn_set_io_mem(old_context context, old_tensor_mem* mem, old_tensor_attr* attr);

enum {
  kInputAttr = 1,
  kOutputAttr = 2,
  kMemSize = 6,
  kNativeInputAttr = 8,
  kParamInvalid = -5,
  kFloat32 = 0,
  kNchw = 0,
  kNhwc = 1
};

static int untouched(const unsigned char* bytes, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i)
    if (bytes[i] != 0xA5) return 0;
  return 1;
}

static void attributes_are_filled_as_far_as_they_reach(old_context context) {
  union {
    old_tensor_attr attr;
    unsigned char bytes[512];
  } got;
  static const uint32_t commands[] = {kInputAttr, kOutputAttr, kNativeInputAttr};
  for (unsigned i = 0; i < 3; ++i) {
    memset(&got, 0xA5, sizeof got);
    got.attr.index = 0;
    CHECK(rknn_query(context, commands[i], &got, sizeof got.attr) == 0);
    CHECK(untouched(got.bytes, sizeof got.attr, sizeof got));
    CHECK(got.attr.n_dims == 4 || commands[i] == kNativeInputAttr);
    CHECK(got.attr.n_elems == kElements || commands[i] == kNativeInputAttr);
    CHECK(got.attr.size_with_stride >= kElements);
  }
  got.attr.index = 0;
  CHECK(rknn_query(context, kInputAttr, &got, sizeof got.attr) == 0);
  CHECK(strcmp(got.attr.name, "x") == 0);
  CHECK(got.attr.fmt == kNhwc && got.attr.dims[0] == 1 && got.attr.dims[1] == kRows &&
        got.attr.dims[2] == kColumns && got.attr.dims[3] == kChannels);
  CHECK(got.attr.stride >= kColumns);
  got.attr.index = 0;
  CHECK(rknn_query(context, kOutputAttr, &got, sizeof got.attr) == 0);
  CHECK(strcmp(got.attr.name, "y") == 0 && got.attr.fmt == kNchw);
}

static void memory_sizes_are_filled_as_far_as_they_reach(old_context context) {
  union {
    old_mem_size size;
    unsigned char bytes[64];
  } got;
  memset(&got, 0xA5, sizeof got);
  CHECK(rknn_query(context, kMemSize, &got, sizeof got.size) == 0);
  CHECK(untouched(got.bytes, sizeof got.size, sizeof got));
  CHECK(got.size.total_internal_size > 0 && got.size.total_internal_size != 0xA5A5A5A5u);
}

static void other_sizes_are_refused(old_context context) {
  static const struct {
    uint32_t command, size;
  } wrong[] = {{kInputAttr, 0},   {kInputAttr, 8},   {kInputAttr, 368}, {kInputAttr, 371},
               {kInputAttr, 373}, {kInputAttr, 375}, {kMemSize, 0},     {kMemSize, 4},
               {kMemSize, 7},     {kMemSize, 9},     {kMemSize, 63}};
  unsigned char bytes[512];
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    memset(bytes, 0xA5, sizeof bytes);
    memset(bytes, 0, 4);
    CHECK(rknn_query(context, wrong[i].command, bytes, wrong[i].size) == kParamInvalid);
    CHECK(untouched(bytes, 4, sizeof bytes));
  }
}

static float input_at(int i) { return (float)(i % 7) - 3; }

static void it_runs(old_context context) {
  float in[kElements];
  for (int i = 0; i < kElements; ++i) in[i] = input_at(i);
  old_input input;
  memset(&input, 0, sizeof input);
  input.buf = in;
  input.size = sizeof in;
  input.type = kFloat32;
  input.fmt = kNchw;
  CHECK(rknn_inputs_set(context, 1, &input) == 0);
  CHECK(rknn_run(context, NULL) == 0);
  old_output output;
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  CHECK(rknn_outputs_get(context, 1, &output, NULL) == 0);
  CHECK(output.buf != NULL && output.size == sizeof in);
  if (output.buf == NULL) return;
  const float* out = (const float*)output.buf;
  for (int i = 0; i < kElements; ++i) CHECK(out[i] == (in[i] > 0 ? in[i] : 0));
  CHECK(rknn_outputs_release(context, 1, &output) == 0);
}

/* A copy of `attr` with nothing after it that can be read. */
static old_tensor_attr* at_the_edge(unsigned char* pages, size_t page,
                                    const old_tensor_attr* attr) {
  unsigned char* last = pages + page - sizeof *attr;
  memcpy(last, attr, sizeof *attr);
  return (old_tensor_attr*)(void*)last;
}

/* Zero copy with attributes of 372 bytes. */
static void attributes_are_taken_as_far_as_they_reach(old_context context) {
  struct {
    old_tensor_attr attr;
    unsigned char behind[64];
  } in, out;
  memset(&in, 0xA5, sizeof in);
  memset(&out, 0xA5, sizeof out);
  in.attr.index = out.attr.index = 0;
  CHECK(rknn_query(context, kInputAttr, &in.attr, sizeof in.attr) == 0);
  CHECK(rknn_query(context, kOutputAttr, &out.attr, sizeof out.attr) == 0);
  in.attr.type = out.attr.type = kFloat32;
  in.attr.fmt = kNhwc;
  out.attr.fmt = kNchw;
  const uint32_t row = in.attr.stride > kColumns ? in.attr.stride : kColumns;
  const uint32_t in_bytes = kRows * row * kChannels * (uint32_t)sizeof(float);
  old_tensor_mem* in_mem = rknn_create_mem(context, in_bytes);
  old_tensor_mem* out_mem = rknn_create_mem(context, out.attr.size_with_stride + 4096);
  CHECK(in_mem != NULL && out_mem != NULL);
  if (in_mem == NULL || out_mem == NULL) return;
  float* pixels = (float*)in_mem->virt_addr;
  for (int h = 0; h < kRows; ++h) {
    for (int w = 0; w < kColumns; ++w) {
      for (int c = 0; c < kChannels; ++c) {
        pixels[((uint32_t)h * row + (uint32_t)w) * kChannels + (uint32_t)c] =
            input_at((c * kRows + h) * kColumns + w);
      }
    }
  }
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char* pages = (unsigned char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
  CHECK(rknn_set_io_mem(context, in_mem, at_the_edge(pages, page, &in.attr)) == 0);
  CHECK(rknn_set_io_mem(context, out_mem, at_the_edge(pages, page, &out.attr)) == 0);
  munmap(pages, 2 * page);
  CHECK(rknn_run(context, NULL) == 0);
  const float* got = (const float*)out_mem->virt_addr;
  for (int i = 0; i < kElements; ++i) CHECK(got[i] == (input_at(i) > 0 ? input_at(i) : 0));
  CHECK(rknn_destroy_mem(context, in_mem) == 0);
  CHECK(rknn_destroy_mem(context, out_mem) == 0);
}

int main(void) {
  message model = relu_model();
  old_init_extend extend;
  memset(&extend, 0, sizeof extend);
  old_context context = 0;
  CHECK(rknn_init(&context, model.bytes, (uint32_t)model.size, 0, &extend) == 0);
  if (context == 0) return 1;
  attributes_are_filled_as_far_as_they_reach(context);
  memory_sizes_are_filled_as_far_as_they_reach(context);
  other_sizes_are_refused(context);
  it_runs(context);
  attributes_are_taken_as_far_as_they_reach(context);
  CHECK(rknn_destroy(context) == 0);
  printf("%d checks failed\n", failures);
  return failures != 0;
}
