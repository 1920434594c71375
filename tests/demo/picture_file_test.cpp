#include "picture_file.h"

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include <cstdlib>
#include <cstring>

#include "corelane/base/file.h"

namespace page_reader {
namespace {

namespace fs = std::filesystem;
using corelane::Code;

class PictureFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("picture_file_") + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

Picture coloured() {
  Picture picture(5, 3);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 5; ++x)
      picture.set(x, y, {static_cast<std::uint8_t>(40 * x), static_cast<std::uint8_t>(80 * y), 7});
  return picture;
}

corelane::ByteVector png_of(std::uint32_t format, int width, int height, const void* pixels) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  corelane::ByteVector bytes(size);
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr), 0);
  bytes.resize(size);
  return bytes;
}

corelane::ByteVector jpeg_of(const Picture& picture) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width());
  info.image_height = static_cast<JDIMENSION>(picture.height());
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  Picture copy = picture;
  for (int y = 0; y < picture.height(); ++y) {
    JSAMPROW row = copy.row(y);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  corelane::ByteVector bytes(first, first + size);
  std::free(memory);
  return bytes;
}

TEST_F(PictureFile, PngComesBackAsWritten) {
  const Picture picture = coloured();
  const fs::path path = folder_ / "new" / "folder" / "a.png";
  ASSERT_TRUE(save_png(path, picture).ok());
  const auto loaded = load_picture(path);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->width(), 5);
  EXPECT_EQ(loaded->bytes(), picture.bytes());
}

TEST_F(PictureFile, GreyBecomesColour) {
  const std::uint8_t grey[] = {0, 100, 255, 7};
  const auto picture = decode_picture(png_of(PNG_FORMAT_GRAY, 2, 2, grey), "grey");
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->at(1, 0), (Colour{100, 100, 100}));
  EXPECT_EQ(picture->at(1, 1), (Colour{7, 7, 7}));
}

TEST_F(PictureFile, TransparentPixelsAreWhite) {
  const std::uint8_t rgba[] = {10, 20, 30, 255, 10, 20, 30, 0};
  const auto picture = decode_picture(png_of(PNG_FORMAT_RGBA, 2, 1, rgba), "rgba");
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->at(0, 0), (Colour{10, 20, 30}));
  EXPECT_EQ(picture->at(1, 0), kWhite);
}

TEST_F(PictureFile, JpegIsRead) {
  const auto picture = decode_picture(jpeg_of(Picture(16, 8, {200, 50, 20})), "jpeg");
  ASSERT_TRUE(picture) << picture.error().to_string();
  EXPECT_EQ(picture->width(), 16);
  EXPECT_EQ(picture->height(), 8);
  EXPECT_NEAR(picture->at(3, 3).r, 200, 3);
  EXPECT_NEAR(picture->at(3, 3).b, 20, 3);
}

TEST_F(PictureFile, EveryTruncationIsAnErrorThatNamesTheFile) {
  for (const corelane::ByteVector& whole :
       {png_of(PNG_FORMAT_RGB, 5, 3, coloured().bytes().data()), jpeg_of(coloured())}) {
    for (std::size_t size = 0; size < whole.size() - 12; ++size) {
      const auto picture = decode_picture(corelane::ByteSpan(whole).first(size), "cut.file");
      ASSERT_FALSE(picture) << size << " of " << whole.size();
      ASSERT_NE(picture.error().message().find("cut.file"), std::string::npos);
    }
  }
}

TEST_F(PictureFile, OtherFilesAreRefused) {
  const auto text = decode_picture(corelane::as_byte_span("hello"), "notes.txt");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), Code::kUnsupported);
  const auto missing = load_picture(folder_ / "none.png");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
}

TEST_F(PictureFile, AHugePngIsRefusedBeforeItTakesMemory) {
  corelane::ByteVector bytes = png_of(PNG_FORMAT_RGB, 5, 3, coloured().bytes().data());
  // Width and height stand after the signature, the chunk's length and its name. The checksum is
  // wrong then, so whichever check comes first must refuse.
  const std::byte huge[] = {std::byte{0x00}, std::byte{0x0f}, std::byte{0x42}, std::byte{0x40}};
  std::memcpy(bytes.data() + 16, huge, 4);
  std::memcpy(bytes.data() + 20, huge, 4);
  EXPECT_FALSE(decode_picture(bytes, "huge.png"));
}

}  // namespace
}  // namespace page_reader
