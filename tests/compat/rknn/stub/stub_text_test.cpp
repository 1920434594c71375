// What is read out of a library: its version, its table of layer times, its tensors.
#include <gtest/gtest.h>

#include <cstring>

#include "drivers/rknn/vendor_layers.h"
#include "drivers/rknn/vendor_library.h"
#include "drivers/rknn/vendor_tensor.h"

namespace corelane::drivers::rknn {
namespace {

TEST(StubText, VersionStandsBehindItsMark) {
  EXPECT_EQ(version_in_text("ab librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)\n cd"),
            "2.3.2 (429f97ae6b@2025-04-09T09:09:27)");
  EXPECT_EQ(version_in_text(std::string("librknnrt version: %s\0librknnrt version: 1.5.2\0x", 48)),
            "1.5.2")
      << "a format is not a version";
  for (const char* none : {"", "librknnrt version: ", "librknnrt version: %s", "librknnrt"})
    EXPECT_EQ(version_in_text(none), "") << none;
  EXPECT_LE(version_in_text("librknnrt version: 1" + std::string(5000, '2')).size(), 200U);
}

TEST(StubText, ColumnsAreFoundByTheirNames) {
  const auto old = read_layers(
      "ID OpType DataType Target InputShape OutputShape DDRCycles NPUCycles MaxCycles Time(us) "
      "MacUsage(%) RW(KB) FullName\n1 Conv FLOAT16 NPU (1,2) (3) 1 2 3 45 0 6/7 Conv:c1\n");
  ASSERT_EQ(old.size(), 1U);
  EXPECT_EQ(old[0].duration, std::chrono::microseconds(45));
  EXPECT_EQ(old[0].dtype, DType::kF16);
  EXPECT_EQ(old[0].name, "c1");
  const auto bare = read_layers("ID OpType Time(us)\n1 Conv 2\n");
  ASSERT_EQ(bare.size(), 1U);
  EXPECT_EQ(bare[0].name, "");
  EXPECT_EQ(bare[0].dtype, DType::kUndefined);
}

TEST(StubText, TextThatIsNoTableGivesNoLayers) {
  const std::string head = "ID OpType DataType Target Time(us) FullName\n";
  for (const std::string& text :
       {std::string(), std::string("\n\n\n"), head, head + "x Conv INT8 NPU 5 Conv:a\n",
        head + "1 Conv INT8 NPU\n", head + "1 Conv INT8 NPU nan Conv:a\n",
        head + "1 Conv INT8 NPU -5 Conv:a\n", head + "1 Conv INT8 NPU 1e300 Conv:a\n",
        std::string("ID Time(us)\n1 5\n"), std::string("1 Conv INT8 NPU 5 Conv:a\n")})
    EXPECT_TRUE(read_layers(text).empty()) << text;
}

rknn_tensor_attr attr_of(std::initializer_list<std::uint32_t> dims, rknn_tensor_format fmt,
                         rknn_tensor_type type = RKNN_TENSOR_FLOAT32) {
  rknn_tensor_attr attr{};
  std::copy(dims.begin(), dims.end(), attr.dims);
  attr.n_dims = static_cast<std::uint32_t>(dims.size());
  attr.fmt = fmt;
  attr.type = type;
  std::fill(std::begin(attr.name), std::end(attr.name), 'n');
  return attr;
}

TEST(StubText, NumbersThatTheApiDoesNotKnowAreNoTypesAndNoOrders) {
  rknn_tensor_attr attr = attr_of({1, 2, 3, 4}, RKNN_TENSOR_NHWC);
  const int unknown = 99;
  std::memcpy(&attr.fmt, &unknown, sizeof(unknown));
  std::memcpy(&attr.qnt_type, &unknown, sizeof(unknown));
  const auto port = input_port(attr, nullptr);
  ASSERT_TRUE(port) << port.error().to_string();
  EXPECT_EQ(port->desc.shape, (Shape{1, 2, 3, 4}));
  std::memcpy(&attr.type, &unknown, sizeof(unknown));
  for (const auto& refused : {input_port(attr, nullptr), output_port(attr, nullptr)}) {
    EXPECT_EQ(refused.error().code(), Code::kUnsupported);
    EXPECT_NE(refused.error().message().find("type 99"), std::string::npos);
  }
}

TEST(StubText, NameWithoutAnEndIsCut) {
  const auto port = input_port(attr_of({2}, RKNN_TENSOR_UNDEFINED), nullptr);
  ASSERT_TRUE(port) << port.error().to_string();
  EXPECT_EQ(port->desc.name, std::string(RKNN_MAX_NAME_LEN, 'n'));
}

TEST(StubText, ShapesAreInModelOrder) {
  EXPECT_EQ(*shape_of(attr_of({1, 4, 5, 3}, RKNN_TENSOR_NHWC)), (Shape{1, 3, 4, 5}));
  EXPECT_EQ(*shape_of(attr_of({1, 4, 5, 3}, RKNN_TENSOR_NCHW)), (Shape{1, 4, 5, 3}));
  EXPECT_EQ(*shape_of(attr_of({4, 5, 3}, RKNN_TENSOR_NHWC)), (Shape{4, 5, 3}));
  EXPECT_EQ(*shape_of(attr_of({}, RKNN_TENSOR_UNDEFINED)), Shape{});
  rknn_tensor_attr wrong = attr_of({1}, RKNN_TENSOR_NCHW);
  wrong.n_dims = RKNN_MAX_DIMS + 1;
  EXPECT_EQ(shape_of(wrong).error().code(), Code::kMalformed);
  const auto empty = shape_of(attr_of({1, 0, 3}, RKNN_TENSOR_UNDEFINED));
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code(), Code::kMalformed);
  const auto put_back = reshaped(attr_of({1, 4, 5, 3}, RKNN_TENSOR_NHWC), {1, 3, 8, 9});
  ASSERT_TRUE(put_back);
  EXPECT_EQ(put_back->dims[1], 8U);
  EXPECT_EQ(put_back->dims[3], 3U);
}

TEST(StubText, EachTypeTravelsAsItself) {
  for (int t = RKNN_TENSOR_FLOAT32; t < RKNN_TENSOR_TYPE_MAX; ++t) {
    const auto type = static_cast<rknn_tensor_type>(t);
    const auto dtype = dtype_of(type);
    EXPECT_EQ(dtype.has_value(), type != RKNN_TENSOR_INT4) << t;
    if (dtype) EXPECT_EQ(type_of(*dtype), type);
  }
  EXPECT_FALSE(type_of(DType::kF64));
}

}  // namespace
}  // namespace corelane::drivers::rknn
