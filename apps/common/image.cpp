#include "common/image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "corelane/base/file.h"
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>
// After jpeglib.h: the numbers of its messages.
#include <jerror.h>

namespace corelane::common {
namespace {

/// The bytes without the chunks that say what colours the stored values mean: libpng's simple
/// reader converts by them, which libjpeg and the readers of Python do not. From a chunk on that is
/// longer than the file, the bytes stay as they are: libpng says what is wrong with them.
std::vector<std::byte> without_colour_chunks(ByteSpan bytes) {
  constexpr std::array<std::string_view, 5> kDropped{"gAMA", "cHRM", "sRGB", "iCCP", "cICP"};
  constexpr std::size_t kSignature = 8;
  constexpr std::size_t kFrame = 12;  // Of a chunk: its length, its name and its checksum.
  std::vector<std::byte> kept(bytes.begin(), bytes.begin() + kSignature);
  std::size_t at = kSignature;
  while (bytes.size() - at >= kFrame) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8 | std::to_integer<std::size_t>(bytes[at + i]);
    if (length > bytes.size() - at - kFrame) break;
    const ByteSpan chunk = bytes.subspan(at, kFrame + length);
    if (std::ranges::find(kDropped, as_string_view(chunk.subspan(4, 4))) == kDropped.end())
      kept.insert(kept.end(), chunk.begin(), chunk.end());
    at += chunk.size();
  }
  kept.insert(kept.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  return kept;
}

/// Leaves out alpha, or makes one grey of the three colours, weighted as Pillow does.
void keep_channels(std::vector<std::uint8_t>& rgba, int channels) {
  const std::size_t count = rgba.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* const from = &rgba[4 * i];
    if (channels == 3)
      std::memmove(&rgba[3 * i], from, 3);
    else
      rgba[i] = static_cast<std::uint8_t>(
          (from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
  }
  rgba.resize(count * static_cast<std::size_t>(channels));
}

Result<Image> decode_png(ByteSpan bytes, const std::string& name, int channels) {
  const std::vector<std::byte> plain = without_colour_chunks(bytes);
  png_image png{};
  const std::unique_ptr<png_image, decltype(&png_image_free)> freed(&png, png_image_free);
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, plain.data(), plain.size()) == 0)
    return error(Code::kMalformed, "{}: {}", name, png.message);
  // Before anything of that size is allocated.
  if (static_cast<std::int64_t>(png.width) * png.height > kMaxPixels) {
    return error(Code::kMalformed, "{}: {}x{} is more than {} pixels", name, png.width, png.height,
                 kMaxPixels);
  }
  // Values of 16 bits are meant as those of 8 bits are; libpng takes them for linear light.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  // With alpha: without it libpng blends the colours with a background.
  png.format = PNG_FORMAT_RGBA;
  Image image{static_cast<int>(png.width), static_cast<int>(png.height), channels, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) == 0)
    return error(Code::kMalformed, "{}: {}", name, png.message);
  keep_channels(image.pixels, channels);
  return image;
}

struct JpegError {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  bool cut;  ///< The bytes ended before the picture did.
  char text[JMSG_LENGTH_MAX];
};

void on_jpeg_error(j_common_ptr info) {
  auto* error = reinterpret_cast<JpegError*>(info->err);
  info->err->format_message(info, error->text);
  // libjpeg knows no other way out of its calls.
  std::longjmp(error->jump, 1);
}

// Instead of printing warnings to stderr. libjpeg goes on with grey where the bytes end.
void on_jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF)
    reinterpret_cast<JpegError*>(info->err)->cut = true;
}

/// False with the decoder's text in `error`. No object with a destructor lives across the jump.
bool decode_jpeg_into(ByteSpan bytes, JpegError& error, Image& image) {
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&error.base);
  error.base.error_exit = on_jpeg_error;
  error.base.emit_message = on_jpeg_message;
  if (setjmp(error.jump) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (static_cast<std::int64_t>(info.image_width) * info.image_height > kMaxPixels) {
    std::snprintf(error.text, sizeof(error.text), "too many pixels");
    jpeg_destroy_decompress(&info);
    return false;
  }
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
    std::snprintf(error.text, sizeof(error.text), "its colours are CMYK; convert it to RGB");
    jpeg_destroy_decompress(&info);
    return false;
  }
  info.out_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.width = static_cast<int>(info.output_width);
  image.height = static_cast<int>(info.output_height);
  const std::size_t row = static_cast<std::size_t>(image.width) * info.output_components;
  image.pixels.resize(row * info.output_height);
  while (info.output_scanline < info.output_height) {
    unsigned char* line = image.pixels.data() + row * info.output_scanline;
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  if (error.cut) std::snprintf(error.text, sizeof(error.text), "the file ends within the picture");
  return !error.cut;
}

}  // namespace

Result<Image> decode_image(ByteSpan bytes, const std::string& name, int channels) {
  if (channels != 1 && channels != 3) {
    return error(Code::kInvalidArgument, "{}: {} channels asked for, 1 or 3 are allowed", name,
                 channels);
  }
  if (bytes.size() >= 8 && std::memcmp(bytes.data(), "\x89PNG\r\n\x1a\n", 8) == 0)
    return decode_png(bytes, name, channels);
  if (bytes.size() >= 2 && std::memcmp(bytes.data(), "\xff\xd8", 2) == 0) {
    JpegError failure{};
    Image image{0, 0, channels, {}};
    if (!decode_jpeg_into(bytes, failure, image))
      return error(Code::kMalformed, "{}: {}", name, failure.text);
    return image;
  }
  return error(Code::kMalformed, "{}: neither PNG nor JPEG", name);
}

Result<Image> load_image(const std::filesystem::path& path, int channels) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
  return decode_image(mapped.bytes(), path.string(), channels);
}

// Half-pixel centres: pixel x of the result lies at (x + 0.5) * sx - 0.5 of the source.
Image resize_bilinear(const Image& image, int width, int height) {
  Image out{width, height, image.channels, {}};
  out.pixels.resize(static_cast<std::size_t>(width) * height * image.channels);
  const float sx = static_cast<float>(image.width) / static_cast<float>(width);
  const float sy = static_cast<float>(image.height) / static_cast<float>(height);
  const auto at = [&](int y, int x, int c) {
    return static_cast<float>(
        image.pixels[(static_cast<std::size_t>(y) * image.width + x) * image.channels + c]);
  };
  std::size_t k = 0;
  for (int y = 0; y < height; ++y) {
    const float fy = std::clamp((static_cast<float>(y) + 0.5F) * sy - 0.5F, 0.0F,
                                static_cast<float>(image.height - 1));
    const int y0 = static_cast<int>(fy);
    const int y1 = std::min(y0 + 1, image.height - 1);
    for (int x = 0; x < width; ++x) {
      const float fx = std::clamp((static_cast<float>(x) + 0.5F) * sx - 0.5F, 0.0F,
                                  static_cast<float>(image.width - 1));
      const int x0 = static_cast<int>(fx);
      const int x1 = std::min(x0 + 1, image.width - 1);
      const float wy = fy - static_cast<float>(y0);
      const float wx = fx - static_cast<float>(x0);
      for (int c = 0; c < image.channels; ++c) {
        const float top = at(y0, x0, c) * (1 - wx) + at(y0, x1, c) * wx;
        const float bottom = at(y1, x0, c) * (1 - wx) + at(y1, x1, c) * wx;
        out.pixels[k++] = static_cast<std::uint8_t>(std::lround(top * (1 - wy) + bottom * wy));
      }
    }
  }
  return out;
}

}  // namespace corelane::common
