/// Finds lines of text with zero-copy memory: the picture is written where the device reads it,
/// with the pitch it wants, and the map is read where the device left it, in blocks of channels
/// that this program unpacks itself.
///
///   corelane compile det.onnx -o det.rknn --shape x=1,3,384,768 --mean 127.5,127.5,127.5 ...
///   rknn_text_detect det.rknn page.png
///
/// Models quantized to 8 bits are fed with bytes that this program has quantized (pass_through),
/// all others with pixels that the library normalises by the model's mean and std.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rknn_api.h"
#include "rknn_picture.h"
#include "rknn_text_boxes.h"

namespace {

struct Options {
  const char* model = nullptr;
  const char* picture = nullptr;
  const char* dump = nullptr;
  float mean = 127.5F;  ///< Of quantized models, whose bytes this program makes.
  float std = 127.5F;
};

bool parse(int argc, char** argv, Options* out) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--dump" && more)
      out->dump = argv[++i];
    else if (word == "--mean" && more)
      out->mean = static_cast<float>(std::atof(argv[++i]));
    else if (word == "--std" && more)
      out->std = static_cast<float>(std::atof(argv[++i]));
    else if (word[0] == '-')
      return false;
    else if (out->model == nullptr)
      out->model = argv[i];
    else if (out->picture == nullptr)
      out->picture = argv[i];
    else
      return false;
  }
  return out->picture != nullptr && out->std != 0;
}

/// IEEE binary16 to float.
float from_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

/// One element of the device's memory as a real number.
float element(const void* data, std::size_t i, const rknn_tensor_attr& attr) {
  switch (attr.type) {
    case RKNN_TENSOR_INT8:
      return (static_cast<float>(static_cast<const std::int8_t*>(data)[i]) -
              static_cast<float>(attr.zp)) *
             attr.scale;
    case RKNN_TENSOR_UINT8:
      return (static_cast<float>(static_cast<const std::uint8_t*>(data)[i]) -
              static_cast<float>(attr.zp)) *
             attr.scale;
    case RKNN_TENSOR_FLOAT16:
      return from_half(static_cast<const std::uint16_t*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

/// A tensor and the memory that holds it; both are gone with the object.
class IoMemory {
 public:
  explicit IoMemory(rknn_context ctx) : ctx_(ctx) { std::memset(&attr, 0, sizeof attr); }
  ~IoMemory() {
    if (mem != nullptr) rknn_destroy_mem(ctx_, mem);
  }
  IoMemory(const IoMemory&) = delete;
  IoMemory& operator=(const IoMemory&) = delete;

  int query(rknn_query_cmd cmd) { return rknn_query(ctx_, cmd, &attr, sizeof attr); }
  int create() {
    mem = rknn_create_mem(ctx_, attr.size_with_stride);
    return mem == nullptr ? RKNN_ERR_MALLOC_FAIL : rknn_set_io_mem(ctx_, mem, &attr);
  }
  void* data() const { return static_cast<char*>(mem->virt_addr) + mem->offset; }

  rknn_tensor_attr attr;
  rknn_tensor_mem* mem = nullptr;

 private:
  rknn_context ctx_;
};

bool is_byte(rknn_tensor_type type) {
  return type == RKNN_TENSOR_INT8 || type == RKNN_TENSOR_UINT8;
}

/// What each of the 256 pixel values is in the model's own bytes.
std::vector<unsigned char> quantized_pixels(const rknn_tensor_attr& attr, const Options& options) {
  const float low = attr.type == RKNN_TENSOR_INT8 ? -128.0F : 0.0F;
  std::vector<unsigned char> table(256);
  for (int pixel = 0; pixel < 256; ++pixel) {
    const float real = (static_cast<float>(pixel) - options.mean) / options.std;
    float q = std::nearbyint(real / attr.scale) + static_cast<float>(attr.zp);
    q = std::min(std::max(q, low), low + 255);
    table[static_cast<std::size_t>(pixel)] = static_cast<unsigned char>(static_cast<int>(q));
  }
  return table;
}

/// Writes the picture into the device's memory, row by row, because rows there may be longer.
void write_picture(const picture& image, const IoMemory& input, const unsigned char* table) {
  const std::size_t row = static_cast<std::size_t>(image.width) * 3;
  const std::size_t pitch = static_cast<std::size_t>(input.attr.w_stride) * 3;
  unsigned char* to = static_cast<unsigned char*>(input.data());
  for (int y = 0; y < image.height; ++y, to += pitch) {
    const unsigned char* const from = image.pixels + static_cast<std::size_t>(y) * row;
    for (std::size_t i = 0; i < row; ++i) to[i] = table == nullptr ? from[i] : table[from[i]];
  }
}

/// The first channel of the output in plain order. NC1HWC2: blocks of C2 channels, the channel
/// fastest, so the first channel is every C2-th element of the first block.
bool read_map(const IoMemory& output, std::vector<float>* map, int* width, int* height) {
  const rknn_tensor_attr& attr = output.attr;
  std::size_t step = 1;
  if (attr.fmt == RKNN_TENSOR_NC1HWC2 && attr.n_dims == 5) {
    *height = static_cast<int>(attr.dims[2]);
    *width = static_cast<int>(attr.dims[3]);
    step = attr.dims[4];
  } else if (attr.fmt == RKNN_TENSOR_NCHW && attr.n_dims == 4) {
    *height = static_cast<int>(attr.dims[2]);
    *width = static_cast<int>(attr.dims[3]);
  } else {
    std::fprintf(stderr, "output in layout %s with %u dims is not a map\n",
                 get_format_string(attr.fmt), attr.n_dims);
    return false;
  }
  map->resize(static_cast<std::size_t>(*width) * static_cast<std::size_t>(*height));
  for (std::size_t i = 0; i < map->size(); ++i) (*map)[i] = element(output.data(), i * step, attr);
  return true;
}

int failed(const char* call, int code) {
  std::fprintf(stderr, "%s fails with %d\n", call, code);
  return code;
}

int bind(IoMemory* input, IoMemory* output) {
  int ret = input->query(RKNN_QUERY_NATIVE_INPUT_ATTR);
  if (ret < 0) return failed("RKNN_QUERY_NATIVE_INPUT_ATTR", ret);
  ret = output->query(RKNN_QUERY_NATIVE_OUTPUT_ATTR);
  if (ret < 0) return failed("RKNN_QUERY_NATIVE_OUTPUT_ATTR", ret);
  if (input->attr.fmt != RKNN_TENSOR_NHWC || input->attr.dims[3] != 3) {
    std::fprintf(stderr, "the model's input is not a picture of three channels\n");
    return RKNN_ERR_FAIL;
  }
  if (is_byte(input->attr.type)) {
    input->attr.pass_through = 1;
  } else {
    input->attr.type = RKNN_TENSOR_UINT8;
    input->attr.size = input->attr.n_elems;
  }
  ret = input->create();
  if (ret < 0) return failed("binding the input", ret);
  ret = output->create();
  return ret < 0 ? failed("binding the output", ret) : 0;
}

void print_layout(const char* what, const rknn_tensor_attr& attr) {
  std::printf("%s: %s %s [", what, get_type_string(attr.type), get_format_string(attr.fmt));
  for (std::uint32_t i = 0; i < attr.n_dims; ++i)
    std::printf("%s%u", i == 0 ? "" : ", ", attr.dims[i]);
  std::printf("], w_stride %u, %u bytes\n", attr.w_stride, attr.size_with_stride);
}

int infer(rknn_context ctx, const IoMemory& input, const IoMemory& output) {
  int ret = rknn_mem_sync(ctx, input.mem, RKNN_MEMORY_SYNC_TO_DEVICE);
  if (ret < 0) return failed("rknn_mem_sync", ret);
  ret = rknn_run(ctx, nullptr);
  if (ret < 0) return failed("rknn_run", ret);
  ret = rknn_mem_sync(ctx, output.mem, RKNN_MEMORY_SYNC_FROM_DEVICE);
  return ret < 0 ? failed("rknn_mem_sync", ret) : 0;
}

int dump(const char* prefix, const char* what, const void* data, std::size_t size) {
  return file_write((std::string(prefix) + what).c_str(), data, size);
}

int detect(rknn_context ctx, const Options& options, const picture& page) {
  IoMemory input(ctx), output(ctx);
  int ret = bind(&input, &output);
  if (ret < 0) return ret;
  print_layout("input", input.attr);
  print_layout("output", output.attr);
  picture image;
  const int height = static_cast<int>(input.attr.dims[1]),
            width = static_cast<int>(input.attr.dims[2]);
  if (picture_resize(&page, width, height, &image) < 0) return RKNN_ERR_MALLOC_FAIL;
  picture_swap_red_blue(&image);  // These models were trained on blue, green, red.
  if (input.attr.pass_through != 0) {
    const std::vector<unsigned char> table = quantized_pixels(input.attr, options);
    write_picture(image, input, table.data());
  } else {
    write_picture(image, input, nullptr);
  }
  if (options.dump != nullptr)
    ret = dump(options.dump, ".input", image.pixels, static_cast<std::size_t>(width * height) * 3);
  picture_free(&image);
  if (ret == 0) ret = infer(ctx, input, output);
  std::vector<float> map;
  int map_width = 0, map_height = 0;
  if (ret < 0 || !read_map(output, &map, &map_width, &map_height)) return RKNN_ERR_FAIL;
  if (options.dump != nullptr &&
      dump(options.dump, ".output0", map.data(), map.size() * sizeof(float)) < 0)
    return RKNN_ERR_FAIL;
  for (const TextBox& box :
       find_text_boxes(map, map_width, map_height, page.width, page.height, TextBoxSettings()))
    std::printf("text %.1f %.1f %.1f %.1f score %.4f\n", static_cast<double>(box.left),
                static_cast<double>(box.top), static_cast<double>(box.right),
                static_cast<double>(box.bottom), static_cast<double>(box.score));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: %s MODEL PICTURE.png [--mean M] [--std S] [--dump PREFIX]\n"
                 "  --mean, --std  of a model of 8 bits: pixels become (p - M) / S (127.5, 127.5)\n"
                 "  --dump PREFIX  writes PREFIX.input (bytes) and PREFIX.output0 (float32)\n",
                 argv[0]);
    return 2;
  }
  picture page;
  if (picture_read(options.picture, &page) < 0) return 1;
  rknn_context ctx = 0;
  // With size 0 the model is the path of a file, whose weights are then mapped.
  int ret = rknn_init(&ctx, const_cast<char*>(options.model), 0, 0, nullptr);
  if (ret < 0) {
    failed("rknn_init", ret);
  } else {
    ret = detect(ctx, options, page);
    rknn_destroy(ctx);
  }
  picture_free(&page);
  return ret < 0 ? 1 : 0;
}
