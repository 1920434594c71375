/// rknn_outputs_get and rknn_outputs_release: types, sizes, whose memory,
/// order.
#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

rknn_output wanted(std::uint32_t index, bool want_float) {
  rknn_output output{};
  output.index = index;
  output.want_float = want_float ? 1 : 0;
  return output;
}

template <class T>
rknn_output into(std::vector<T>& memory, std::uint32_t index, bool want_float) {
  rknn_output output = wanted(index, want_float);
  output.is_prealloc = 1;
  output.buf = memory.data();
  output.size = static_cast<std::uint32_t>(memory.size() * sizeof(T));
  return output;
}

TEST(RknnOutput, FloatsComeInTheModelsOrder) {
  const Model model(doubling(kPicture.dims()));
  const std::vector<float> x = ramp(kPicture.size());
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), times(x, 2));
}

TEST(RknnOutput, WithoutWantFloatTheTypeIsThatOfTheAttr) {
  const Model model(doubling(kPicture.dims()));
  const rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
  ASSERT_EQ(attr.type, RKNN_TENSOR_FLOAT16);
  ASSERT_EQ(attr.fmt, RKNN_TENSOR_NCHW);
  // Thirds, numbers below the least normal half, and one beyond the greatest.
  std::vector<float> x = ramp(kPicture.size(), -1.0F / 3, 1.0F / 7);
  x[1] = 3.1e-6F;
  x[2] = -4.4e-8F;
  x[3] = 50000;
  x[4] = 1e-9F;
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  const auto got = model.get<std::uint16_t>(0, false);
  EXPECT_EQ(got.size() * 2, attr.size);
  EXPECT_EQ(got, halves(times(x, 2)));
}

/// A scale for each channel, which an attr has no place for: clients dequantise by the one it
/// tells.
TEST(RknnOutput, QuantisedByChannelTheAttrTellsWhatTheBytesAre) {
  const std::string onnx = OnnxBuilder()
                               .input("x", dims_of(kPicture.dims()))
                               .output("y", dims_of(kPicture.dims()))
                               .constant<float>("s", {3}, testing::kOnnxFloat, {0.5F, 1, 2})
                               .constant<std::int8_t>("z", {3}, testing::kOnnxInt8, {1, 2, 3})
                               .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
                               .node("DequantizeLinear", {"q", "s", "z"}, {"y"})
                               .build("by_channel");
  for (const std::string& bytes : {onnx, compiled(onnx)}) {
    const Model model(bytes);
    EXPECT_EQ(model.attr(RKNN_QUERY_INPUT_ATTR).type, RKNN_TENSOR_FLOAT16);
    EXPECT_EQ(model.attr(RKNN_QUERY_OUTPUT_ATTR).type, RKNN_TENSOR_FLOAT16);
    const std::vector<float> x = times(ramp(kPicture.size(), -10, 1), 2);
    ASSERT_EQ(model.set(0, halves(x), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NCHW), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), x);
    EXPECT_EQ(model.get<std::uint16_t>(0, false), halves(x));
  }
}

template <class T>
void expect_requantised(Affine in, Affine out) {
  const Model model(quantised<T>(kPicture.dims(), in, out));
  const rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
  EXPECT_EQ(attr.type, std::is_signed_v<T> ? RKNN_TENSOR_INT8 : RKNN_TENSOR_UINT8);
  EXPECT_EQ(attr.qnt_type, RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT_EQ(attr.scale, out.scale);
  EXPECT_EQ(attr.zp, out.zp);
  std::vector<T> q(kPicture.size());
  for (std::size_t i = 0; i < q.size(); ++i)
    q[i] = static_cast<T>(std::numeric_limits<T>::min() + static_cast<int>(i) * 4 + 1);
  ASSERT_EQ(
      model.set(0, kPicture.to_nhwc(q), std::is_signed_v<T> ? RKNN_TENSOR_INT8 : RKNN_TENSOR_UINT8,
                RKNN_TENSOR_UNDEFINED),
      RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  const auto got = model.get<T>(0, false);
  const auto floats = model.floats();
  ASSERT_EQ(got.size(), q.size());
  ASSERT_EQ(floats.size(), q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    EXPECT_EQ(+got[i], +quantise<T>(dequantise(q[i], in), out)) << i;
    EXPECT_FLOAT_EQ(floats[i], dequantise(got[i], out)) << i;
  }
}

TEST(RknnOutput, IntegersAreThoseOfTheNetworkAndFloatsTheirReals) {
  expect_requantised<std::int8_t>({0.3F, -3}, {0.7F, 11});
  expect_requantised<std::int8_t>({0.3F, -3}, {0.11F, -128});  // Saturates.
  expect_requantised<std::uint8_t>({0.3F, 3}, {0.7F, 200});
}

TEST(RknnOutput, FixedPointIsWrittenByItsFractionLength) {
  const Model model(compiled(doubling({1, 6}), {}, [](ProgramDescription& d) {
    d.outputs[0].quant_dtype = DType::kI8;
    d.outputs[0].quant = Quant::dfp(2);
    d.outputs[0].reported_dtype = DType::kI8;
  }));
  ASSERT_EQ(model.set({0.5F, -0.5F, 3.3F, 30, -30, 0}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  // x * 2^fl, rounded, within the range.
  EXPECT_EQ(model.get<std::int8_t>(0, false), (std::vector<std::int8_t>{4, -4, 26, 127, -128, 0}));
}

TEST(RknnOutput, OtherRanksKeepTheirOrder) {
  for (const Dims& dims : {Dims{24}, Dims{2, 3, 4}, Dims{1, 2, 3, 2, 2}}) {
    const Model model(doubling(dims));
    const rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
    EXPECT_EQ(Dims(attr.dims, attr.dims + attr.n_dims), dims);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
    const std::vector<float> x = ramp(24);
    ASSERT_EQ(model.set(x), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2));
    EXPECT_EQ(model.get<std::uint16_t>(0, false), halves(times(x, 2)));
  }
}

TEST(RknnOutput, IntegersOfTheModelComeAsFloatsToo) {
  const Model model(OnnxBuilder()
                        .input("x", {3}, testing::kOnnxInt64)
                        .output("y", {3}, testing::kOnnxInt64)
                        .node("Add", {"x", "x"}, {"y"})
                        .build());
  ASSERT_EQ(model.set(0, std::vector<std::int64_t>{1, -2, 70000}, RKNN_TENSOR_INT64,
                      RKNN_TENSOR_UNDEFINED),
            RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, -4, 140000}));
  EXPECT_EQ(model.get<std::int64_t>(0, false), (std::vector<std::int64_t>{2, -4, 140000}));
}

TEST(RknnOutput, SizeTellsTheBytesWhosesoeverTheMemoryIs) {
  const Model model(two_by_two({1, 3}));
  ASSERT_EQ(model.set({1, 2, 3}, 0), RKNN_SUCC);
  ASSERT_EQ(model.set({10, 20, 30}, 1), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  std::vector<float> mine(5, -1);
  std::vector<rknn_output> outputs{into(mine, 1, true), wanted(0, true)};
  rknn_output_extend extend{};
  ASSERT_EQ(rknn_outputs_get(model.ctx, 2, outputs.data(), &extend), RKNN_SUCC);
  EXPECT_EQ(outputs[0].size, 12U);
  EXPECT_EQ(outputs[0].buf, mine.data());
  EXPECT_EQ(mine, (std::vector<float>{-9, -18, -27, -1, -1}));  // Nothing after it is touched.
  EXPECT_EQ(outputs[1].size, 12U);
  EXPECT_EQ(static_cast<float*>(outputs[1].buf)[2], 33);
  EXPECT_EQ(extend.frame_id, 1U);
  EXPECT_EQ(rknn_outputs_release(model.ctx, 2, outputs.data()), RKNN_SUCC);
  EXPECT_EQ(mine[0], -9);
}

TEST(RknnOutput, MemoryOfTheCallerMustHoldIt) {
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  std::vector<float> mine(3, -1);
  rknn_output output = into(mine, 0, true);
  const std::string lines = lines_of(
      [&] { EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("16 bytes"));
  EXPECT_EQ(mine, std::vector<float>(3, -1));
  output = into(mine, 0, false);  // Halves fit.
  ASSERT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_SUCC);
  EXPECT_EQ(output.size, 8U);
  output.buf = nullptr;
  EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnOutput, WhatTheLibraryAllocatedLivesUntilItsRelease) {
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  rknn_output first = wanted(0, true);
  ASSERT_EQ(rknn_outputs_get(model.ctx, 1, &first, nullptr), RKNN_SUCC);
  ASSERT_EQ(model.set({5, 6, 7, 8}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(static_cast<float*>(first.buf)[0],
            2);  // A later run leaves it alone.
  rknn_output copy = first;
  EXPECT_EQ(rknn_outputs_release(model.ctx, 1, &first), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_release(model.ctx, 1, &first),
            RKNN_SUCC);  // It is empty now.
  EXPECT_EQ(rknn_outputs_release(model.ctx, 1, &copy), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnOutput, ReleaseOfMoreOutputsThanThereAreTouchesNone) {
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.run(), RKNN_SUCC);
  std::array<rknn_output, 2> outputs{};
  ASSERT_EQ(rknn_outputs_get(model.ctx, 1, outputs.data(), nullptr), RKNN_SUCC);
  const std::string line = lines_of([&] {
    EXPECT_EQ(rknn_outputs_release(model.ctx, 2, outputs.data()), RKNN_ERR_PARAM_INVALID);
  });
  EXPECT_THAT(line, HasSubstr("2 outputs given, the model has 1"));
  EXPECT_NE(outputs[0].buf, nullptr);
  EXPECT_EQ(rknn_outputs_release(model.ctx, 1, outputs.data()), RKNN_SUCC);
}

TEST(RknnOutput, WhatIsNotReleasedGoesWithTheContext) {
  Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  rknn_output output = wanted(0, true);
  ASSERT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_SUCC);
  model.destroy();  // LeakSanitizer finds the rest.
}

TEST(RknnOutput, GetIsTheLastRunHoweverOftenItIsAsked) {
  const Model model(doubling({1, 2}));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(model.set({static_cast<float>(i), 1}), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
  }
  EXPECT_EQ(model.floats(), (std::vector<float>{4, 2}));
  EXPECT_EQ(model.floats(), (std::vector<float>{4, 2}));
  // Inputs that are set after a run do not change its result.
  ASSERT_EQ(model.set({9, 9}), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{4, 2}));
}

TEST(RknnOutput, BeforeTheFirstRunThereIsNone) {
  const Model model(doubling({1, 2}));
  rknn_output output = wanted(0, true);
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_FAIL); });
  EXPECT_THAT(lines, HasSubstr("rknn_run"));
  EXPECT_EQ(output.buf, nullptr);
}

TEST(RknnOutput, OneWrongOutputGivesNoneAndLeaksNothing) {
  const Model model(two_by_two({1, 2}));
  ASSERT_EQ(model.set({1, 2}, 0), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2}, 1), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  std::vector<float> small(1);
  std::vector<rknn_output> outputs{wanted(0, true), into(small, 1, true)};
  EXPECT_EQ(rknn_outputs_get(model.ctx, 2, outputs.data(), nullptr), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(outputs[0].buf, nullptr);
  EXPECT_EQ(outputs[1].buf, small.data());
  outputs[1].index = 2;
  EXPECT_EQ(rknn_outputs_get(model.ctx, 2, outputs.data(), nullptr), RKNN_ERR_OUTPUT_INVALID);
}

/// The vendor's header: where the library allocates, `index` need not be set.
TEST(RknnOutput, OutputsWithoutNumbersComeInTheirOrder) {
  const Model model(two_by_two({1, 2}));
  ASSERT_EQ(model.set({5, 6}, 0), RKNN_SUCC);
  ASSERT_EQ(model.set({1, 2}, 1), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  for (const std::uint32_t index : {0U, 77U}) {
    std::vector<rknn_output> outputs{wanted(index, true), wanted(index, true)};
    ASSERT_EQ(rknn_outputs_get(model.ctx, 2, outputs.data(), nullptr), RKNN_SUCC);
    EXPECT_EQ(*static_cast<float*>(outputs[0].buf), 6);
    EXPECT_EQ(*static_cast<float*>(outputs[1].buf), 4);
    EXPECT_EQ(outputs[0].index, 0U);
    EXPECT_EQ(outputs[1].index, 1U);
    EXPECT_EQ(rknn_outputs_release(model.ctx, 2, outputs.data()), RKNN_SUCC);
  }
  // Numbers that differ are meant as they are.
  std::vector<rknn_output> turned{wanted(1, true), wanted(0, true)};
  ASSERT_EQ(rknn_outputs_get(model.ctx, 2, turned.data(), nullptr), RKNN_SUCC);
  EXPECT_EQ(*static_cast<float*>(turned[0].buf), 4);
  EXPECT_EQ(rknn_outputs_release(model.ctx, 2, turned.data()), RKNN_SUCC);
}

TEST(RknnOutput, OutputsWithOpenDimensionsHaveTheSizeOfTheRun) {
  const Model model(OnnxBuilder()
                        .input("x", {4})
                        .output("y", {1, "found"}, testing::kOnnxInt64)
                        .node("NonZero", {"x"}, {"y"})
                        .build());
  ASSERT_EQ(model.set({0, 5, 0, 6}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int64_t>(0, false), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(model.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR).dims[1], 2U);
  ASSERT_EQ(model.set({1, 5, 0, 6}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int64_t>(0, false), (std::vector<std::int64_t>{0, 1, 3}));
}

}  // namespace
}  // namespace corelane::rknn::test
