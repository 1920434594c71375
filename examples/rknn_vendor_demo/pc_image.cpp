#include "pc_image.h"

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

bool failed(const std::string& path, const char* why) {
  std::fprintf(stderr, "%s: %s\n", path.c_str(), why);
  return false;
}

/// libjpeg ends the process where its error handler returns.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

bool read_jpeg(const std::string& path, const std::vector<unsigned char>& bytes, Picture& out) {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave_jpeg;
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&info);
    return failed(path, errors.text);
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  out.width = static_cast<int>(info.output_width);
  out.height = static_cast<int>(info.output_height);
  out.rgb.resize(std::size_t{info.output_width} * info.output_height * 3);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out.rgb.data() + std::size_t{info.output_scanline} * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

bool read_png(const std::string& path, const std::vector<unsigned char>& bytes, Picture& out) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    return failed(path, image.message);
  // Values of 16 bits are meant as those of 8 bits are; libpng takes them for linear light.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = PNG_FORMAT_RGB;
  out.width = static_cast<int>(image.width);
  out.height = static_cast<int>(image.height);
  out.rgb.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, out.rgb.data(), 0, nullptr) == 0)
    return failed(path, image.message);
  return true;
}

/// Where a pixel's value comes from: two neighbours and the weight of the second.
struct Tap {
  int first = 0;
  int second = 0;
  float weight = 0;
};

std::vector<Tap> taps(int from, int to) {
  std::vector<Tap> list(static_cast<std::size_t>(to));
  const float step = static_cast<float>(from) / static_cast<float>(to);
  for (int i = 0; i < to; ++i) {
    const float at = std::clamp((static_cast<float>(i) + 0.5F) * step - 0.5F, 0.0F,
                                static_cast<float>(from - 1));
    const int first = static_cast<int>(at);
    list[static_cast<std::size_t>(i)] = {first, std::min(first + 1, from - 1),
                                         at - static_cast<float>(first)};
  }
  return list;
}

}  // namespace

bool read_picture(const std::string& path, Picture& out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed(path, "cannot be opened");
  const std::vector<unsigned char> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8) return read_jpeg(path, bytes, out);
  return read_png(path, bytes, out);
}

Letterbox letterbox(const Picture& in, int width, int height, std::uint8_t border,
                    std::uint8_t* target, int pitch) {
  Letterbox box;
  box.scale = std::min(static_cast<float>(width) / static_cast<float>(in.width),
                       static_cast<float>(height) / static_cast<float>(in.height));
  const int w =
      std::clamp(static_cast<int>(std::lround(static_cast<float>(in.width) * box.scale)), 1, width);
  const int h = std::clamp(static_cast<int>(std::lround(static_cast<float>(in.height) * box.scale)),
                           1, height);
  box.left = (width - w) / 2;
  box.top = (height - h) / 2;
  for (int y = 0; y < height; ++y)
    std::fill_n(target + std::ptrdiff_t{y} * pitch, std::size_t(width) * 3, border);
  const auto columns = taps(in.width, w);
  const auto rows = taps(in.height, h);
  for (int y = 0; y < h; ++y) {
    const Tap& row = rows[static_cast<std::size_t>(y)];
    const std::uint8_t* upper = in.rgb.data() + std::size_t(row.first) * std::size_t(in.width) * 3;
    const std::uint8_t* lower = in.rgb.data() + std::size_t(row.second) * std::size_t(in.width) * 3;
    std::uint8_t* to = target + std::ptrdiff_t{y + box.top} * pitch + std::ptrdiff_t{box.left} * 3;
    for (const Tap& column : columns) {
      for (int c = 0; c < 3; ++c) {
        const auto mix = [&](const std::uint8_t* line) {
          return static_cast<float>(line[column.first * 3 + c]) * (1 - column.weight) +
                 static_cast<float>(line[column.second * 3 + c]) * column.weight;
        };
        *to++ = static_cast<std::uint8_t>(
            std::lround(mix(upper) * (1 - row.weight) + mix(lower) * row.weight));
      }
    }
  }
  return box;
}
