#include "common/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>

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
  EXPECT_TRUE(std::ranges::equal(array->bytes, std::as_bytes(std::span(values))));
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

TEST(Npy, SmallTypesComeBackFromTheirBits) {
  const std::uint8_t packed[2] = {0xE4, 0x01};
  for (const DType type :
       {DType::kF8E4M3FN, DType::kF8E8M0, DType::kF4E2M1, DType::kI2, DType::kU2}) {
    const Shape shape{static_cast<std::int64_t>(16 / dtype_bits(type)) - (dtype_bits(type) < 8)};
    const auto file = format_npy({packed, 2, type, shape, {}, {}});
    ASSERT_TRUE(file) << file.error().to_string();
    const auto bytes = parse_npy(as_byte_span(*file), "x.npy");
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    EXPECT_EQ(bytes->dtype, type == DType::kI2 ? DType::kI8 : DType::kU8);
    const auto back = npy_as(*bytes, type);
    ASSERT_TRUE(back) << back.error().to_string();
    EXPECT_EQ(back->dtype, type);
    EXPECT_EQ(back->shape, shape);
    EXPECT_EQ(back->bytes.size(), 2U);
    EXPECT_EQ(0, std::memcmp(back->bytes.data(), packed, 2)) << dtype_name(type);
  }
  const auto two = parse_npy(as_byte_span(*format_npy({packed, 1, DType::kI2, {4}, {}, {}})), "");
  EXPECT_EQ(static_cast<std::int8_t>(two->bytes[2]), -2);
  EXPECT_EQ(static_cast<std::int8_t>(two->bytes[3]), -1);
}

TEST(Npy, OnlyBytesAreBitsOfAType) {
  EXPECT_EQ(npy_as({DType::kF32, {1}, ByteVector(4)}, DType::kF8E5M2).error().code(),
            Code::kTypeMismatch);
  EXPECT_EQ(npy_as({DType::kU8, {1}, ByteVector(1)}, DType::kI4).error().code(),
            Code::kTypeMismatch);
  const auto text = header("{'descr': '<f1', 'fortran_order': False, 'shape': (2,), }") + "<>";
  EXPECT_EQ(parse_npy(as_byte_span(text), "e5m2")->dtype, DType::kU8);
}

TEST(Npy, DamageIsNamed) {
  const auto code = [](const std::string& text) {
    const auto r = parse_npy(as_byte_span(text), "file.npy");
    EXPECT_FALSE(r);
    EXPECT_NE(r.error().message().find("file.npy"), std::string::npos) << r.error().message();
    return r.error().code();
  };
  EXPECT_EQ(code(""), Code::kMalformed);
  EXPECT_EQ(code("hello world"), Code::kMalformed);
  EXPECT_EQ(code(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }")),
            Code::kMalformed);
  // Bytes for each element, but not enough.
  EXPECT_EQ(code(header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }") + "123456"),
            Code::kMalformed);
  EXPECT_EQ(
      code(header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }")),
      Code::kMalformed);
  EXPECT_EQ(code(header("{'descr': '<f4', 'fortran_order': True, 'shape': (0,), }")),
            Code::kUnsupported);
  // Words that begin as others do: long double, and bytes of no type.
  for (const char* descr : {">f4", "<f16", "|V16", "|V20", "<f4x"}) {
    EXPECT_EQ(code(header("{'descr': '" + std::string(descr) +
                          "', 'fortran_order': False, 'shape': (0,), }")),
              Code::kUnsupported);
  }
}

TEST(Npy, MemoryThatIsTooSmallIsNotRead) {
  const float values[2] = {1, 2};
  TensorView view{values, sizeof(values), DType::kF32, Shape{2}, {}, {}};
  EXPECT_TRUE(format_npy(view));
  view.size = 7;
  EXPECT_EQ(format_npy(view).error().code(), Code::kInvalidArgument);
  view.size = sizeof(values);
  view.data = nullptr;
  EXPECT_EQ(format_npy(view).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::common
