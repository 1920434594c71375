/// rknn_inputs_set: every type and layout against the API's formulas, sizes,
/// subsets, order.
#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

constexpr Picture kFiveChannels{1, 5, 2, 3};  // Blocks in native form.

/// What the network of doubling() saw, in its own order.
std::vector<float> seen_by_network(const Model& model) {
  EXPECT_EQ(model.run(), RKNN_SUCC);
  return times(model.floats(), 0.5F);
}

TEST(RknnInput, FloatsAreTakenInEveryLayout) {
  const Model model(doubling(kPicture.dims()));
  std::vector<float> x = ramp(kPicture.size());
  ASSERT_EQ(model.set(0, x, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), x);
  x = ramp(kPicture.size(), 7);
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(x), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), x);
  x = ramp(kPicture.size(), 9);  // As INPUT_ATTR reports: NHWC.
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(x), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), x);
}

TEST(RknnInput, BytesAreRealsForAFloatModel) {
  const Model model(doubling(kPicture.dims()));
  std::vector<std::uint8_t> x(kPicture.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(255 - 4 * i);
  const auto reals = each<float>(x, [](int v) { return v; });
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(x), RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), reals);
  ASSERT_EQ(model.set(0, x, RKNN_TENSOR_UINT8, RKNN_TENSOR_NCHW), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), reals);
}

TEST(RknnInput, HalvesAreTakenByAFloatModel) {
  const Model model(doubling(kPicture.dims()));
  const std::vector<float> x = ramp(kPicture.size(), -1.0F / 3, 1.0F / 7);
  const auto bits = halves(x);
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(bits), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NHWC), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), each<float>(bits, half_value));
}

/// Reals that lie away from halves between two steps, some outside the range.
std::vector<float> quantisable(std::size_t count, Affine q) {
  std::vector<float> x;
  for (std::size_t i = 0; i < count; ++i)
    x.push_back((static_cast<float>(i) * 9.3F - 280.2F - static_cast<float>(q.zp)) * q.scale);
  return x;
}

template <class T>
void expect_quantised(Affine q) {
  const Model model(quantised<T>(kPicture.dims(), q, q));
  const std::vector<float> x = quantisable(kPicture.size(), q);
  std::vector<T> expected(x.size());
  std::vector<float> reals(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected[i] = quantise<T>(x[i], q);
    reals[i] = dequantise(expected[i], q);
  }
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(x), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<T>(0, false), expected);
  ASSERT_EQ(model.floats().size(), reals.size());
  for (std::size_t i = 0; i < reals.size(); ++i) EXPECT_FLOAT_EQ(model.floats()[i], reals[i]) << i;
}

TEST(RknnInput, FloatsAreQuantisedByScaleAndZeroPoint) {
  expect_quantised<std::int8_t>({0.25F, 3});
  expect_quantised<std::int8_t>({0.0078125F, -128});
  expect_quantised<std::uint8_t>({0.5F, 128});
}

TEST(RknnInput, IntegersOfAQuantisedModelAreItsOwn) {
  const Affine q{0.25F, -7};
  const Model model(quantised<std::int8_t>(kPicture.dims(), q, q));
  std::vector<std::int8_t> x(kPicture.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int8_t>(i * 4 - 128);
  for (const bool pass_through : {false, true}) {
    const std::size_t stride = pass_through ? 16 : 5;
    ASSERT_EQ(model.set(0, kPicture.to_nhwc<std::int8_t>(x, stride, 99), RKNN_TENSOR_INT8,
                        RKNN_TENSOR_NHWC, pass_through),
              RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.get<std::int8_t>(0, false), x) << pass_through;
  }
}

TEST(RknnInput, BytesAreQuantisedForASignedModel) {
  const Affine q{1.0F, -128};  // What a converter gives for pixels without mean and std.
  const Model model(quantised<std::int8_t>(kPicture.dims(), q, q));
  std::vector<std::uint8_t> x(kPicture.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 4);
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(x), RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int8_t>(0, false), each<std::int8_t>(x, [](int v) { return v - 128; }));
}

TEST(RknnInput, FixedPointIsReadByItsFractionLength) {
  const std::string program = compiled(doubling(kPicture.dims()), {}, [](ProgramDescription& d) {
    d.inputs[0].quant_dtype = DType::kI8;
    d.inputs[0].quant = Quant::dfp(3);
    d.inputs[0].reported_dtype = DType::kI8;
  });
  const Model model(program);
  const rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  EXPECT_EQ(attr.qnt_type, RKNN_TENSOR_QNT_DFP);
  EXPECT_EQ(attr.fl, 3);
  std::vector<std::int8_t> q(kPicture.size());
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<std::int8_t>(i * 4 - 128);
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(q), RKNN_TENSOR_INT8, RKNN_TENSOR_NHWC), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), each<float>(q, [](int v) { return v / 8.0; }));  // q * 2^-fl
}

// --- Mean and std.
// ------------------------------------------------------------------------------

class RknnNormalised : public ::testing::Test {
 protected:
  static ImportOptions import() {
    ImportOptions options;
    options.mean[""] = {10, 20, 30};
    options.std[""] = {2, 4, 8};
    return options;
  }
  static std::vector<float> normalised(const std::vector<float>& x) {
    const float mean[] = {10, 20, 30}, std[] = {2, 4, 8};
    std::vector<float> y(x.size());
    kPicture.each(
        [](auto...) { return std::size_t{0}; },
        [&](std::size_t at, std::size_t c, std::size_t) { y[at] = (x[at] - mean[c]) / std[c]; });
    return y;
  }
  const std::vector<float> pixels_ = ramp(kPicture.size(), 0, 4);
  const std::vector<std::uint8_t> bytes_ = each<std::uint8_t>(pixels_, [](float x) { return x; });
  const Model model_{compiled(doubling(kPicture.dims()), import())};
};

TEST_F(RknnNormalised, BytesAndFloatsAre) {
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc(bytes_), RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), normalised(pixels_));
  ASSERT_EQ(model_.set(0, bytes_, RKNN_TENSOR_UINT8, RKNN_TENSOR_NCHW), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), normalised(pixels_));
  ASSERT_EQ(model_.set(0, pixels_, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), normalised(pixels_));
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc(pixels_), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), normalised(pixels_));
}

TEST_F(RknnNormalised, AnUndefinedLayoutIsNot) {
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc(pixels_), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_UNDEFINED),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), pixels_);
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc(bytes_), RKNN_TENSOR_UINT8, RKNN_TENSOR_UNDEFINED),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), pixels_);
}

TEST_F(RknnNormalised, TheModelsOwnHalvesAreNot) {
  const auto bits = halves(pixels_);
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc(bits), RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NHWC),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), pixels_);
  ASSERT_EQ(model_.set(0, kPicture.to_nhwc<std::uint16_t>(bits, 16, 0x7C00), RKNN_TENSOR_FLOAT16,
                       RKNN_TENSOR_NHWC, true),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model_), pixels_);
}

TEST_F(RknnNormalised, QuantisedModelsTakePixelsThroughMeanStdAndScale) {
  const Affine q{0.125F, -5};
  const Model model(compiled(quantised<std::int8_t>(kPicture.dims(), q, q), import()));
  const auto real = normalised(pixels_);
  const auto expected =
      each<std::int8_t>(real, [&](float x) { return quantise<std::int8_t>(x, q); });
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(bytes_), RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int8_t>(0, false), expected);
  // Its own integers are past all that.
  ASSERT_EQ(model.set(0, kPicture.to_nhwc(expected), RKNN_TENSOR_INT8, RKNN_TENSOR_NHWC),
            RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int8_t>(0, false), expected);
}

// --- Native bytes.
// ------------------------------------------------------------------------------

TEST(RknnInput, PassThroughTakesRowsOfTheNativePitch) {
  const Model model(doubling(kPicture.dims()));
  const rknn_tensor_attr native = model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
  ASSERT_EQ(native.fmt, RKNN_TENSOR_NHWC);
  ASSERT_EQ(native.w_stride, 16U);
  const std::vector<float> x = ramp(kPicture.size());
  const auto bytes = kPicture.to_nhwc<std::uint16_t>(halves(x), 16, 0x7C00);
  ASSERT_EQ(bytes.size() * 2, native.size_with_stride);
  // type and fmt are not looked at, apart from the size.
  ASSERT_EQ(model.set(0, bytes, RKNN_TENSOR_INT8, RKNN_TENSOR_NCHW, true), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), x);
}

TEST(RknnInput, PassThroughTakesBlocksOfChannels) {
  const Model model(doubling(kFiveChannels.dims()));
  ASSERT_EQ(model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR).fmt, RKNN_TENSOR_NC1HWC2);
  const std::vector<float> x = ramp(kFiveChannels.size());
  ASSERT_EQ(model.set(0, kFiveChannels.to_blocks<std::uint16_t>(halves(x), 8, 0x7C00),
                      RKNN_TENSOR_FLOAT16, RKNN_TENSOR_NC1HWC2, true),
            RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), x);

  const Affine q{0.5F, 1};
  const Model small(quantised<std::int8_t>(kFiveChannels.dims(), q, q));
  std::vector<std::int8_t> own(kFiveChannels.size());
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int8_t>(i * 8 - 120);
  ASSERT_EQ(small.set(0, kFiveChannels.to_blocks<std::int8_t>(own, 16, 77), RKNN_TENSOR_INT8,
                      RKNN_TENSOR_UNDEFINED, true),
            RKNN_SUCC);
  ASSERT_EQ(small.run(), RKNN_SUCC);
  EXPECT_EQ(small.get<std::int8_t>(0, false), own);
}

// --- Other ranks and types.
// ---------------------------------------------------------------------

TEST(RknnInput, OtherRanksKeepTheirOrderWhateverTheLayoutSays) {
  for (const Dims& dims :
       {Dims{24}, Dims{4, 6}, Dims{2, 3, 4}, Dims{1, 2, 3, 2, 2}, Dims{1, 2, 1, 3, 2, 2}}) {
    const Model model(doubling(dims));
    const rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
    EXPECT_EQ(Dims(attr.dims, attr.dims + attr.n_dims), dims);
    const std::vector<float> x = ramp(24);
    for (const auto fmt : {RKNN_TENSOR_NCHW, RKNN_TENSOR_NHWC, RKNN_TENSOR_UNDEFINED}) {
      ASSERT_EQ(model.set(0, x, RKNN_TENSOR_FLOAT32, fmt), RKNN_SUCC);
      EXPECT_EQ(seen_by_network(model), x);
      ASSERT_EQ(model.set(0, halves(x), RKNN_TENSOR_FLOAT16, fmt, true), RKNN_SUCC);
      EXPECT_EQ(seen_by_network(model), x);
    }
  }
}

std::string plus_self(const Dims& dims, int type) {
  return OnnxBuilder()
      .input("x", dims_of(dims), type)
      .output("y", dims_of(dims), type)
      .node("Add", {"x", "x"}, {"y"})
      .build();
}

TEST(RknnInput, LongsAreTakenAsLongsOnlyAndExactly) {
  const Model model(plus_self({1, 2, 1, 2}, testing::kOnnxInt64));
  const rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  EXPECT_EQ(attr.type, RKNN_TENSOR_INT64);
  EXPECT_EQ(attr.fmt, RKNN_TENSOR_NCHW);
  const std::vector<std::int64_t> x{1, -2, (std::int64_t{1} << 29) + 1, 4};
  ASSERT_EQ(model.set(0, x, RKNN_TENSOR_INT64, RKNN_TENSOR_NCHW), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int64_t>(0, false),
            each<std::int64_t>(x, [](std::int64_t v) { return 2 * v; }));
  const std::vector<float> floats(8);
  const std::string lines = lines_of([&] {
    EXPECT_EQ(model.set(0, floats, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW), RKNN_ERR_PARAM_INVALID);
    EXPECT_EQ(model.set(0, floats, RKNN_TENSOR_INT32, RKNN_TENSOR_NCHW), RKNN_ERR_PARAM_INVALID);
    EXPECT_EQ(model.set(0, floats, RKNN_TENSOR_BOOL, RKNN_TENSOR_NCHW), RKNN_ERR_PARAM_INVALID);
  });
  EXPECT_THAT(lines, HasSubstr("INT64"));
}

TEST(RknnInput, BoolsAreTakenAsBoolsOnly) {
  const Model model(OnnxBuilder()
                        .input("x", {1, 2, 2, 1}, kOnnxBool)
                        .output("y", {1, 2, 2, 1}, kOnnxBool)
                        .node("Not", {"x"}, {"y"})
                        .build());
  EXPECT_EQ(model.attr(RKNN_QUERY_INPUT_ATTR).type, RKNN_TENSOR_BOOL);
  EXPECT_EQ(model.attr(RKNN_QUERY_INPUT_ATTR).fmt, RKNN_TENSOR_NCHW);
  const std::vector<std::uint8_t> x{1, 0, 0, 1};
  ASSERT_EQ(model.set(0, x, RKNN_TENSOR_BOOL, RKNN_TENSOR_NCHW), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::uint8_t>(0, false), (std::vector<std::uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(model.set(0, x, RKNN_TENSOR_UINT8, RKNN_TENSOR_NCHW), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnInput, IntsAreTakenAsInts) {
  const Model model(plus_self({2, 2}, kOnnxInt32));
  EXPECT_EQ(model.attr(RKNN_QUERY_INPUT_ATTR).type, RKNN_TENSOR_INT32);
  const std::vector<std::int32_t> x{1, -2, 1 << 29, 16777217};
  ASSERT_EQ(model.set(0, x, RKNN_TENSOR_INT32, RKNN_TENSOR_UNDEFINED), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.get<std::int32_t>(0, false),
            each<std::int32_t>(x, [](std::int32_t v) { return 2 * v; }));
}

// --- Sizes, subsets, order.
// ---------------------------------------------------------------------

TEST(RknnInput, SizeIsThatOfTheTypeWhetherOrNotBytesPassThrough) {
  const Model model(doubling({1, 16}));
  std::vector<float> x(16);
  rknn_input input{};  // Zeroed: FLOAT32, the most frequent mistake.
  input.buf = x.data();
  input.size = 32;  // As for halves.
  for (const std::uint8_t pass_through : {0, 1}) {
    input.pass_through = pass_through;
    const std::string lines =
        lines_of([&] { EXPECT_EQ(rknn_inputs_set(model.ctx, 1, &input), RKNN_ERR_PARAM_INVALID); });
    EXPECT_THAT(lines, HasSubstr("param input size(32) < model input size(64)"));
    EXPECT_THAT(lines, HasSubstr("FLOAT32"));
    EXPECT_THAT(lines, HasSubstr("type"));
  }
  input.type = RKNN_TENSOR_FLOAT16;
  EXPECT_EQ(rknn_inputs_set(model.ctx, 1, &input), RKNN_SUCC);
  input.size = 31;
  EXPECT_EQ(rknn_inputs_set(model.ctx, 1, &input), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnInput, LargerIsAccepted) {
  const Model model(doubling({1, 4}));
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  EXPECT_EQ(seen_by_network(model), (std::vector<float>{1, 2, 3, 4}));
}

TEST(RknnInput, BufferMayBeReusedAtOnce) {
  const Model model(doubling({1, 4}));
  std::vector<float> x{1, 2, 3, 4};
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  std::fill(x.begin(), x.end(), 99.0F);
  EXPECT_EQ(seen_by_network(model), (std::vector<float>{1, 2, 3, 4}));
}

TEST(RknnInput, SetOnceServesManyRuns) {
  const Model model(doubling({1, 4}));
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_EQ(model.set(x), RKNN_SUCC);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(seen_by_network(model), x);
}

TEST(RknnInput, ASubsetLeavesTheOthersAsTheyWere) {
  const Model model(two_by_two({1, 2}));
  rknn_input both[2] = {};
  std::vector<float> a{1, 2}, b{10, 20};
  // In any order.
  both[0].index = 1;
  both[0].buf = b.data();
  both[1].index = 0;
  both[1].buf = a.data();
  both[0].size = both[1].size = 8;
  ASSERT_EQ(rknn_inputs_set(model.ctx, 2, both), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(0), (std::vector<float>{11, 22}));
  EXPECT_EQ(model.floats(1), (std::vector<float>{-9, -18}));
  ASSERT_EQ(model.set({5, 6}, 0), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(0), (std::vector<float>{15, 26}));
}

TEST(RknnInput, NothingIsWrittenWhenOneOfThemIsWrong) {
  const Model model(two_by_two({1, 2}));
  ASSERT_EQ(model.set({1, 2}, 0), RKNN_SUCC);
  ASSERT_EQ(model.set({3, 4}, 1), RKNN_SUCC);
  std::vector<float> other{50, 60};
  rknn_input both[2] = {};
  both[0].buf = both[1].buf = other.data();
  both[0].size = 8;
  both[1].index = 1;
  both[1].size = 7;
  EXPECT_EQ(rknn_inputs_set(model.ctx, 2, both), RKNN_ERR_PARAM_INVALID);
  both[1].size = 8;
  both[1].index = 2;
  EXPECT_EQ(rknn_inputs_set(model.ctx, 2, both), RKNN_ERR_INPUT_INVALID);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(0), (std::vector<float>{4, 6}));
}

TEST(RknnInput, NothingIsWrittenWhenOneHasNoRoomForItsLastBlock) {
  const Picture five{1, 5, 2, 2};
  const Model model(two_by_two(five.dims()));
  const Mem bound(model.ctx, static_cast<std::uint32_t>(five.size() * sizeof(float)));
  bound.fill(std::vector<float>(five.size(), 7));
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  attr.fmt = RKNN_TENSOR_NCHW;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, bound.mem, &attr), RKNN_SUCC);
  ASSERT_EQ(model.set(std::vector<float>(five.size(), 1), 1), RKNN_SUCC);
  std::vector<float> other(five.size(), 50);
  rknn_input both[2] = {};
  for (rknn_input& input : both) {
    input.buf = other.data();
    input.size = static_cast<std::uint32_t>(other.size() * sizeof(float));
  }
  both[1].index = 1;
  both[1].fmt = RKNN_TENSOR_NC1HWC2;
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_inputs_set(model.ctx, 2, both), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("input 1 'b' takes 128 bytes"));
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(0), std::vector<float>(five.size(), 8));
}

TEST(RknnInput, AnUnknownTypeOrLayoutIsRefused) {
  const Model model(doubling(kPicture.dims()));
  const std::vector<float> x(kPicture.size());
  EXPECT_EQ(model.set(0, x, static_cast<rknn_tensor_type>(12), RKNN_TENSOR_NHWC),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(model.set(0, x, RKNN_TENSOR_FLOAT32, static_cast<rknn_tensor_format>(4)),
            RKNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace corelane::rknn::test
