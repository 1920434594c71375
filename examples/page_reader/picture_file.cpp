#include "picture_file.h"

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "corelane/base/file.h"

namespace page_reader {
namespace {

using corelane::ByteSpan;
using corelane::Code;
using corelane::error;
using corelane::Result;
using corelane::Status;

bool starts_with(ByteSpan bytes, std::string_view magic) {
  return corelane::as_string_view(bytes).substr(0, magic.size()) == magic;
}

Status check_size(const std::string& name, double width, double height) {
  if (width * height <= kMaxPixels) return {};
  return error(Code::kUnsupported,
               "'{}' has {} x {} pixels; at most {:.0f} million are read. Scale it down first",
               name, width, height, kMaxPixels / 1e6);
}

Result<Picture> decode_png(ByteSpan bytes, const std::string& name) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    return error(Code::kMalformed, "'{}' is not a readable PNG: {}", name, image.message);
  // Values of 16 bits are meant as those of 8 bits are; libpng takes them for linear light.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = PNG_FORMAT_RGB;
  if (Status size = check_size(name, image.width, image.height); !size) {
    png_image_free(&image);
    return error(size);
  }
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height));
  png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, picture.row(0), 0, nullptr) == 0)
    return error(Code::kMalformed, "'{}' is a damaged PNG: {}", name, image.message);
  return picture;
}

/// libjpeg reports an error by a call that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf out;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->manager.format_message(info, errors->message);
  std::longjmp(errors->out, 1);
}

void ignore_jpeg_message(j_common_ptr) {}

/// Everything that a jump would leave undestroyed lives in the caller.
bool run_jpeg(jpeg_decompress_struct& info, JpegErrors& errors, ByteSpan bytes, Picture& picture,
              Status& size, const std::string& name) {
  if (setjmp(errors.out) != 0) return false;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  size = check_size(name, info.image_width, info.image_height);
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK)
    size = error(Code::kUnsupported, "'{}' is a JPEG in CMYK; convert it to RGB", name);
  if (!size) return true;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  picture = Picture(static_cast<int>(info.output_width), static_cast<int>(info.output_height));
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = picture.row(static_cast<int>(info.output_scanline));
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

Result<Picture> decode_jpeg(ByteSpan bytes, const std::string& name) {
  jpeg_decompress_struct info;
  JpegErrors errors;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  errors.manager.output_message = ignore_jpeg_message;
  jpeg_create_decompress(&info);
  Picture picture;
  Status size;
  const bool decoded = run_jpeg(info, errors, bytes, picture, size, name);
  const long warnings = info.err->num_warnings;
  jpeg_destroy_decompress(&info);
  if (!decoded)
    return error(Code::kMalformed, "'{}' is not a readable JPEG: {}", name, errors.message);
  if (!size) return error(size);
  if (warnings > 0) return error(Code::kMalformed, "'{}' is a damaged or cut-off JPEG", name);
  return picture;
}

}  // namespace

Result<Picture> decode_picture(ByteSpan bytes, const std::string& name) {
  if (starts_with(bytes, "\x89PNG")) return decode_png(bytes, name);
  if (starts_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, name);
  return error(Code::kUnsupported, "'{}' is neither PNG nor JPEG; convert it to one of them", name);
}

Result<Picture> load_picture(const std::filesystem::path& path) {
  CORELANE_ASSIGN(const auto file, corelane::MappedFile::open(path));
  return decode_picture(file.bytes(), path.string());
}

Status save_png(const std::filesystem::path& path, const Picture& picture) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width());
  image.height = static_cast<png_uint_32>(picture.height());
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  corelane::ByteVector bytes;
  // Once for the size, once for the bytes.
  if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.bytes().data(), 0, nullptr) !=
      0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.bytes().data(), 0,
                                  nullptr) != 0) {
      bytes.resize(size);
      return corelane::write_file_atomic(path, bytes);
    }
  }
  return error(Code::kInternal, "could not encode '{}' as PNG: {}", path.string(), image.message);
}

}  // namespace page_reader
