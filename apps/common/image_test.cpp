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

/// A PNG of one row; 0 writes no gamma.
std::vector<std::byte> png_row(int depth, int colours, const std::vector<std::uint8_t>& row,
                               double gamma = 0) {
  std::vector<std::byte> bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto write = [](png_structp to, png_bytep data, std::size_t size) {
    auto* all = static_cast<std::vector<std::byte>*>(png_get_io_ptr(to));
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    all->insert(all->end(), begin, begin + size);
  };
  png_set_write_fn(png, &bytes, write, nullptr);
  const std::size_t pixel = static_cast<std::size_t>(depth) / 8 *
                            (colours == PNG_COLOR_TYPE_GRAY  ? 1
                             : colours == PNG_COLOR_TYPE_RGB ? 3
                                                             : 4);
  png_set_IHDR(png, info, static_cast<png_uint_32>(row.size() / pixel), 1, depth, colours,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (gamma > 0) png_set_gAMA(png, info, gamma);
  png_write_info(png, info);
  png_write_row(png, row.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

std::vector<std::uint8_t> pixels_of(ByteSpan bytes, int channels) {
  const auto image = decode_image(bytes, "row.png", channels);
  EXPECT_TRUE(image) << image.error().to_string();
  return image ? image->pixels : std::vector<std::uint8_t>();
}

TEST(Image, GreyOfAPngIsPillowsLuma) {
  const auto bytes = png_row(8, PNG_COLOR_TYPE_RGB, {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9});
  EXPECT_EQ(pixels_of(bytes, 1), (std::vector<std::uint8_t>{76, 150, 29, 9}));
  EXPECT_EQ(pixels_of(png_row(8, PNG_COLOR_TYPE_GRAY, {0, 77, 255}), 1),
            (std::vector<std::uint8_t>{0, 77, 255}));
}

TEST(Image, PngOf16BitsGivesThePixelsOfOneOf8) {
  std::vector<std::uint8_t> wide, narrow;
  for (int v = 0; v < 256; ++v) {
    narrow.push_back(static_cast<std::uint8_t>(v));
    wide.insert(wide.end(), 2, static_cast<std::uint8_t>(v));  // v * 257
  }
  for (const double gamma : {0.0, 1.0})
    EXPECT_EQ(pixels_of(png_row(16, PNG_COLOR_TYPE_GRAY, wide, gamma), 1), narrow) << gamma;
}

TEST(Image, GammaOfAPngChangesNothing) {
  const std::vector<std::uint8_t> row{10, 128, 250, 200, 100, 50};
  EXPECT_EQ(pixels_of(png_row(8, PNG_COLOR_TYPE_RGB, row, 1.0), 3), row);
  EXPECT_EQ(pixels_of(png_row(8, PNG_COLOR_TYPE_RGB, row, 0.3), 3), row);
}

TEST(Image, AlphaOfAPngIsLeftOut) {
  const std::vector<std::uint8_t> row{10, 128, 250, 0, 200, 100, 50, 128};
  const auto bytes = png_row(8, PNG_COLOR_TYPE_RGB_ALPHA, row, 1.0);
  EXPECT_EQ(pixels_of(bytes, 3), (std::vector<std::uint8_t>{10, 128, 250, 200, 100, 50}));
}

TEST(Image, CutPngWithGammaIsRefusedOrWhole) {
  const auto bytes = png_row(8, PNG_COLOR_TYPE_RGB, {1, 2, 3}, 0.5);
  for (std::size_t n = 8; n < bytes.size(); ++n) {
    const auto cut = decode_image(ByteSpan(bytes).first(n), "cut", 3);
    if (cut)
      EXPECT_EQ(cut->pixels, (std::vector<std::uint8_t>{1, 2, 3}));
    else
      EXPECT_EQ(cut.error().code(), Code::kMalformed);
  }
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
