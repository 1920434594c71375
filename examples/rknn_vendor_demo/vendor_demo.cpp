/// A detection program as demos for boards are written: read a picture, letterbox it, run, decode
/// boxes, print them. Built on a PC as docs/vendor-demos.md says.
///
///   vendor_demo MODEL PICTURE             inputs_set and outputs_get
///   vendor_demo MODEL PICTURE --io-mem    memory of the program's own, by its fd (MMZ, DMA heap)
///
/// The model: a picture in, scores [1, classes, H, W] and distances [1, 4, H, W] out.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "grid_boxes.h"
#include "pc_block.h"
#include "pc_image.h"
#include "rknn_api.h"

namespace {

constexpr std::uint8_t kBorder = 114;
constexpr float kThreshold = 0.5F;
constexpr float kOverlap = 0.45F;

struct App {
  rknn_context context = 0;
  rknn_tensor_attr input{};
  rknn_tensor_attr outputs[2]{};
  int width = 0;
  int height = 0;
  bool quantized = false;
};

int failed(const char* call, int code) {
  std::fprintf(stderr, "%s fails with %d\n", call, code);
  return -1;
}

int query(const App& app, rknn_query_cmd what, unsigned index, rknn_tensor_attr& attr) {
  attr = {};
  attr.index = index;
  const int code = rknn_query(app.context, what, &attr, sizeof attr);
  return code == RKNN_SUCC ? 0 : failed("rknn_query", code);
}

int open_model(const char* path, App& app) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> model((std::istreambuf_iterator<char>(file)), {});
  int code = rknn_init(&app.context, model.data(), static_cast<unsigned>(model.size()), 0, nullptr);
  if (code != RKNN_SUCC) return failed("rknn_init", code);
  rknn_input_output_num count{};
  code = rknn_query(app.context, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count);
  if (code != RKNN_SUCC || count.n_input != 1 || count.n_output != 2)
    return failed("rknn_query (one input and two outputs are wanted)", code);
  if (query(app, RKNN_QUERY_INPUT_ATTR, 0, app.input) != 0) return -1;
  for (unsigned i = 0; i < 2; ++i)
    if (query(app, RKNN_QUERY_OUTPUT_ATTR, i, app.outputs[i]) != 0) return -1;
  const bool nhwc = app.input.fmt == RKNN_TENSOR_NHWC;
  app.height = static_cast<int>(app.input.dims[nhwc ? 1 : 2]);
  app.width = static_cast<int>(app.input.dims[nhwc ? 2 : 3]);
  app.quantized = app.outputs[0].type == RKNN_TENSOR_INT8;
  std::printf("input %dx%d, outputs %s\n", app.width, app.height,
              get_type_string(app.outputs[0].type));
  return 0;
}

GridTensor grid(const App& app, unsigned i, const void* data) {
  const rknn_tensor_attr& attr = app.outputs[i];
  GridTensor tensor;
  if (app.quantized)
    tensor.bytes = static_cast<const std::int8_t*>(data);
  else
    tensor.floats = static_cast<const float*>(data);
  tensor.zero_point = attr.zp;
  tensor.scale = attr.scale;
  tensor.channels = static_cast<int>(attr.dims[1]);
  tensor.height = static_cast<int>(attr.dims[2]);
  tensor.width = static_cast<int>(attr.dims[3]);
  return tensor;
}

void print_boxes(const App& app, const void* scores, const void* distances, const Letterbox& box) {
  const GridTensor head = grid(app, 0, scores);
  const auto boxes =
      grid_boxes(head, grid(app, 1, distances), kThreshold, kOverlap, app.width / head.width, box);
  for (const Box& b : boxes)
    std::printf("class %d at (%.0f %.0f %.0f %.0f) %.3f\n", b.label, double(b.left), double(b.top),
                double(b.right), double(b.bottom), double(b.score));
}

int run_copied(const App& app, const Picture& picture) {
  std::vector<std::uint8_t> pixels(std::size_t(app.width) * std::size_t(app.height) * 3);
  const Letterbox box =
      letterbox(picture, app.width, app.height, kBorder, pixels.data(), app.width * 3);
  rknn_input input{};
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.size = static_cast<unsigned>(pixels.size());
  input.buf = pixels.data();
  int code = rknn_inputs_set(app.context, 1, &input);
  if (code != RKNN_SUCC) return failed("rknn_inputs_set", code);
  code = rknn_run(app.context, nullptr);
  if (code != RKNN_SUCC) return failed("rknn_run", code);
  rknn_output outputs[2]{};
  for (unsigned i = 0; i < 2; ++i) {
    outputs[i].index = i;
    outputs[i].want_float = app.quantized ? 0 : 1;
  }
  code = rknn_outputs_get(app.context, 2, outputs, nullptr);
  if (code != RKNN_SUCC) return failed("rknn_outputs_get", code);
  print_boxes(app, outputs[0].buf, outputs[1].buf, box);
  rknn_outputs_release(app.context, 2, outputs);
  return 0;
}

/// A block of the program's own as the memory of an input or output.
struct Bound {
  std::unique_ptr<PcBlock> block;
  rknn_tensor_mem* mem = nullptr;
};

int bind(const App& app, rknn_tensor_attr attr, unsigned size, Bound& out) {
  out.block = std::make_unique<PcBlock>(size);
  if (!out.block->ok()) return failed("memfd_create", -1);
  out.mem = rknn_create_mem_from_fd(app.context, out.block->fd(), out.block->data(), size, 0);
  if (out.mem == nullptr) return failed("rknn_create_mem_from_fd", -1);
  const int code = rknn_set_io_mem(app.context, out.mem, &attr);
  return code == RKNN_SUCC ? 0 : failed("rknn_set_io_mem", code);
}

int run_bound(const App& app, const Picture& picture, Bound (&bound)[3]) {
  rknn_tensor_attr input = app.input;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  const int stride = input.w_stride != 0 ? static_cast<int>(input.w_stride) : app.width;
  const int pitch = stride * 3;
  if (bind(app, input, static_cast<unsigned>(pitch * app.height), bound[0]) != 0) return -1;
  for (unsigned i = 0; i < 2; ++i) {
    rknn_tensor_attr output = app.outputs[i];
    if (!app.quantized) output.type = RKNN_TENSOR_FLOAT32;
    const unsigned size = output.n_elems * (app.quantized ? 1 : 4);
    if (bind(app, output, size, bound[1 + i]) != 0) return -1;
  }
  // Straight into the input's memory, as the RGA writes.
  const Letterbox box = letterbox(picture, app.width, app.height, kBorder,
                                  static_cast<std::uint8_t*>(bound[0].block->data()), pitch);
  rknn_mem_sync(app.context, bound[0].mem, RKNN_MEMORY_SYNC_TO_DEVICE);
  const int code = rknn_run(app.context, nullptr);
  if (code != RKNN_SUCC) return failed("rknn_run", code);
  for (unsigned i = 1; i < 3; ++i)
    rknn_mem_sync(app.context, bound[i].mem, RKNN_MEMORY_SYNC_FROM_DEVICE);
  print_boxes(app, bound[1].block->data(), bound[2].block->data(), box);
  return 0;
}

int run(App& app, const char* model, const char* path, bool io_mem) {
  Picture picture;
  if (!read_picture(path, picture) || open_model(model, app) != 0) return -1;
  if (!io_mem) return run_copied(app, picture);
  Bound bound[3];
  const int result = run_bound(app, picture, bound);
  for (const Bound& b : bound)
    if (b.mem != nullptr) rknn_destroy_mem(app.context, b.mem);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const bool io_mem = argc == 4 && std::strcmp(argv[3], "--io-mem") == 0;
  if (argc != 3 && !io_mem) {
    std::fprintf(stderr, "usage: %s MODEL PICTURE.jpg|png [--io-mem]\n", argv[0]);
    return 2;
  }
  App app;
  const int result = run(app, argv[1], argv[2], io_mem);
  if (app.context != 0) rknn_destroy(app.context);
  return result == 0 ? 0 : 1;
}
