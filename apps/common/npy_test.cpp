#include "common/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "corelane/base/file.h"

namespace corelane::common {
namespace {

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::temp_directory_path() /
         ("corelane_npy_" + std::to_string(::getpid()) + name);
}

std::string header(const std::string& text) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size());
  file += '\0';
  return file + text;
}

TEST(Npy, RoundTripKeepsShapeAndBits) {
  const float values[6] = {1, -2, 3.5F, 0, 1e-30F, 7};
  const auto path = scratch("a.npy");
  ASSERT_TRUE(write_npy(path, {values, sizeof(values), DType::kF32, Shape{2, 3}, {}, {}}).ok());
  const auto array = read_npy(path);
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->shape, (Shape{2, 3}));
  EXPECT_EQ(array->dtype, DType::kF32);
  EXPECT_EQ(0, std::memcmp(array->bytes.data(), values, sizeof(values)));
  EXPECT_EQ(read_file(path)->size() % 64, sizeof(values) % 64);  // The header is padded to 64.
  std::filesystem::remove(path);
}

TEST(Npy, ScalarHasRankZero) {
  const auto text = header("{'descr': '<i8', 'fortran_order': False, 'shape': (), }") +
                    std::string("\x05\0\0\0\0\0\0\0", 8);
  const auto array = parse_npy(as_byte_span(text), "scalar");
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->shape.rank(), 0U);
  EXPECT_EQ(array->bytes.size(), 8U);
}

TEST(Npy, FourBitsAreWidened) {
  const std::uint8_t packed[2] = {0x1F, 0x07};  // -1, 1, 7
  const auto path = scratch("i4.npy");
  ASSERT_TRUE(write_npy(path, {packed, 2, DType::kI4, Shape{3}, {}, {}}).ok());
  const auto array = read_npy(path);
  ASSERT_TRUE(array);
  EXPECT_EQ(array->dtype, DType::kI8);
  EXPECT_EQ(static_cast<std::int8_t>(array->bytes[0]), -1);
  EXPECT_EQ(static_cast<std::int8_t>(array->bytes[2]), 7);
  std::filesystem::remove(path);
}

TEST(Npy, DamageIsNamed) {
  const auto code = [](const std::string& text) {
    const auto r = parse_npy(as_byte_span(text), "file.npy");
    EXPECT_FALSE(r);
    EXPECT_NE(r.error().message().find(r.error().code() == Code::kMalformed ? "" : "file.npy"),
              std::string::npos);
    return r.error().code();
  };
  EXPECT_EQ(code(""), Code::kMalformed);
  EXPECT_EQ(code("hello world"), Code::kMalformed);
  EXPECT_EQ(code(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }")),
            Code::kMalformed);
  EXPECT_EQ(
      code(header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }")),
      Code::kMalformed);
  EXPECT_EQ(code(header("{'descr': '<f4', 'fortran_order': True, 'shape': (0,), }")),
            Code::kUnsupported);
  EXPECT_EQ(code(header("{'descr': '>f4', 'fortran_order': False, 'shape': (0,), }")),
            Code::kUnsupported);
}

}  // namespace
}  // namespace corelane::common
