#include "common/image.h"

#include <gtest/gtest.h>
#include <png.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "corelane/base/file.h"
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

namespace corelane::common {
namespace {

Image gradient(int width, int height) {
  Image image{width, height, 3, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      for (const int v : {x * 3, y * 5, 7}) image.pixels.push_back(static_cast<std::uint8_t>(v));
  }
  return image;
}

bool save_png(const std::filesystem::path& path, const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  return png_image_write_to_file(&png, path.c_str(), 0, image.pixels.data(), 0, nullptr) != 0;
}

std::vector<std::byte> jpeg_of(Image image, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): of libjpeg.
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = image.pixels.data() + std::size_t{3} * info.next_scanline * info.image_width;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> bytes(begin, begin + size);
  std::free(memory);
  return bytes;
}

TEST(Image, JpegThatIsCutIsRefusedWhereverItEnds) {
  for (const bool progressive : {false, true}) {
    const auto bytes = jpeg_of(gradient(40, 24), progressive);
    const auto whole = decode_image(bytes, "whole", 3);
    ASSERT_TRUE(whole) << whole.error().to_string();
    EXPECT_EQ(whole->pixels.size(), 40U * 24 * 3);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      const auto cut = decode_image(ByteSpan(bytes).first(n), "cut", 3);
      ASSERT_FALSE(cut) << n;
      EXPECT_EQ(cut.error().code(), Code::kMalformed);
    }
  }
}

TEST(Image, PngRoundTripKeepsPixels) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("corelane_image_" + std::to_string(::getpid()) + ".png");
  const auto image = gradient(17, 9);
  ASSERT_TRUE(save_png(path, image));
  const auto back = load_image(path, 3);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(back->width, 17);
  EXPECT_EQ(back->height, 9);
  EXPECT_EQ(back->pixels, image.pixels);
  const auto bytes = read_file(path);
  for (std::size_t n = 0; n < bytes->size(); ++n) {  // A cut file is an error or the same picture.
    const auto cut = decode_image(ByteSpan(*bytes).first(n), "cut", 3);
    if (cut) EXPECT_EQ(cut->pixels, image.pixels);
  }
  std::filesystem::remove(path);
}

TEST(Image, NeitherPngNorJpegIsNamed) {
  const auto r = decode_image(as_byte_span("GIF89a"), "a.gif", 3);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Code::kMalformed);
  EXPECT_NE(r.error().message().find("a.gif"), std::string::npos);
}

TEST(Image, BrokenJpegIsAnError) {
  const auto r = decode_image(as_byte_span("\xff\xd8\xff\xe0 nonsense"), "a.jpg", 3);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Code::kMalformed);
}

TEST(Resize, SameSizeIsTheSamePicture) {
  const auto image = gradient(8, 6);
  EXPECT_EQ(resize_bilinear(image, 8, 6).pixels, image.pixels);
}

TEST(Resize, HalfSizeAveragesPairs) {
  const Image image{4, 1, 1, {0, 10, 20, 30}};
  EXPECT_EQ(resize_bilinear(image, 2, 1).pixels, (std::vector<std::uint8_t>{5, 25}));
}

}  // namespace
}  // namespace corelane::common
