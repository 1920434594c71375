#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <random>

#include "tensor/convert/convert_check.h"
#include "tensor/convert/convert_kernels.h"

namespace corelane::testing {
namespace {

/// Every instruction set that was compiled and that this CPU has.
class ConvertFast : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { use(GetParam()); }
  void TearDown() override { use(0); }
  static void use(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

Pick pick_from(std::mt19937& random) {
  return [&random](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
}

TEST_P(ConvertFast, AgreesWithTheReferenceOnRandomConversions) {
  std::mt19937 random(20240607);
  const Pick pick = pick_from(random);
  int fast = 0;
  constexpr int kCases = 2500;
  for (int i = 0; i < kCases; ++i) {
    const ConvertCase k = random_case(pick);
    const CheckResult r = check_case(k, pick);
    ASSERT_EQ(r.problem, "") << "case " << i << ": " << k.to_string();
    fast += r.fast ? 1 : 0;
  }
  EXPECT_GT(fast, kCases / 3);  // Else this test proves little.
}

TEST_P(ConvertFast, ServesEveryImportantPairInEveryLayout) {
  std::mt19937 random(7);
  const Pick pick = pick_from(random);
  const std::vector<std::pair<DType, DType>> pairs{
      {DType::kF32, DType::kI8},   {DType::kF32, DType::kU8},   {DType::kF32, DType::kI16},
      {DType::kF32, DType::kF16},  {DType::kF32, DType::kBF16}, {DType::kI8, DType::kF32},
      {DType::kU8, DType::kF32},   {DType::kI16, DType::kF32},  {DType::kF16, DType::kF32},
      {DType::kBF16, DType::kF32}, {DType::kI8, DType::kI8},    {DType::kU8, DType::kI8},
      {DType::kF32, DType::kF32},  {DType::kI16, DType::kI16},  {DType::kF16, DType::kF16},
      {DType::kI32, DType::kI32},  {DType::kU8, DType::kU8},    {DType::kI64, DType::kI64}};
  for (const auto& [from, to] : pairs) {
    for (std::uint32_t from_kind = 0; from_kind < 3; ++from_kind) {
      for (std::uint32_t to_kind = 0; to_kind < 3; ++to_kind) {
        ConvertCase k;
        k.src.dtype = from;
        k.dst.dtype = to;
        k.src.shape = k.dst.shape = {2, 19, 5, 37};
        k.src.layout = {static_cast<LayoutKind>(from_kind), from_kind == 2 ? 8U : 0U, 40};
        k.dst.layout = {static_cast<LayoutKind>(to_kind), to_kind == 2 ? 16U : 0U, 0};
        if (from == DType::kI8) k.src.quant = Quant::affine(0.07F, -11);
        if (to == DType::kI8) k.dst.quant = Quant::affine(0.03F, 5);
        k.seed = from_kind * 3 + to_kind;
        const CheckResult r = check_case(k, pick);
        EXPECT_TRUE(r.fast) << k.to_string();
        EXPECT_EQ(r.problem, "") << k.to_string();
      }
    }
  }
}

/// More than a tile's pixels; or planes that share sets of the first cache level; or many channels.
Shape shape_of_many_tiles(std::int64_t channels) {
  if (channels == 19 || channels == 64) return {1, channels, 64, 64};
  return channels > 66 ? Shape{1, channels, 9, 97} : Shape{1, channels, 23, 97};
}

TEST_P(ConvertFast, AgreesOnImagesOfManyTilesAndPanels) {
  std::mt19937 random(11);
  const Pick pick = pick_from(random);
  const std::vector<std::pair<DType, DType>> pairs{
      {DType::kI8, DType::kI8},    {DType::kF16, DType::kF16}, {DType::kF32, DType::kF32},
      {DType::kF32, DType::kI8},   {DType::kI8, DType::kF32},  {DType::kU8, DType::kF32},
      {DType::kF32, DType::kF16},  {DType::kF16, DType::kF32}, {DType::kF32, DType::kBF16},
      {DType::kBF16, DType::kF32}, {DType::kF32, DType::kU8}};
  for (const auto& [from, to] : pairs) {
    for (const std::int64_t channels : {2, 3, 6, 8, 12, 16, 17, 19, 32, 48, 64, 66, 80, 130, 192}) {
      for (std::uint32_t kinds = 0; kinds < 9; ++kinds) {
        ConvertCase k;
        k.src.dtype = from;
        k.dst.dtype = to;
        k.src.shape = k.dst.shape = shape_of_many_tiles(channels);
        const std::uint32_t block = channels == 192 ? 192 : 16;
        k.src.layout = {static_cast<LayoutKind>(kinds / 3), kinds / 3 == 2 ? block : 0U, 0};
        k.dst.layout = {static_cast<LayoutKind>(kinds % 3), kinds % 3 == 2 ? block : 0U, 0};
        if (from != to && from == DType::kI8) k.src.quant = Quant::affine(0.07F, -11);
        if (from != to && to == DType::kI8) k.dst.quant = Quant::affine(0.03F, 5);
        if (to == DType::kU8) k.dst.quant = Quant::affine(0.03F, kinds == 2 ? 300 : 128);
        if (from == DType::kU8) {  // Of all channels: then the tile's kernels convert.
          k.options.mean.assign(1, 123.675F);
          k.options.std.assign(1, 58.395F);
        }
        k.seed = kinds;
        const CheckResult r = check_case(k, pick);
        ASSERT_EQ(r.problem, "") << k.to_string();
      }
    }
  }
}

/// Both paths over one row of elements.
template <class To, class From>
void expect_same(const std::vector<From>& from, DType src, DType dst) {
  const Shape shape{static_cast<std::int64_t>(from.size())};
  std::vector<To> expected(from.size());
  std::vector<To> actual(from.size());
  const TensorView view{from.data(), from.size() * sizeof(From), src, shape, {}, {}};
  const auto run = [&](std::vector<To>& out, ConvertPath path) {
    return convert(view, {out.data(), out.size() * sizeof(To), dst, shape, {}, {}}, {{}, {}, path});
  };
  ASSERT_TRUE(run(expected, ConvertPath::kReference).ok());
  ASSERT_TRUE(run(actual, ConvertPath::kFast).ok());
  EXPECT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(To)), 0)
      << dtype_name(src) << " to " << dtype_name(dst);
}

TEST_P(ConvertFast, EveryHalfAndBfloatBecomesTheSameFloat) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  expect_same<std::uint32_t>(all, DType::kF16, DType::kF32);
  expect_same<std::uint32_t>(all, DType::kBF16, DType::kF32);
  expect_same<std::uint16_t>(all, DType::kF16, DType::kBF16);
  expect_same<std::int8_t>(all, DType::kF16, DType::kI8);
}

TEST_P(ConvertFast, FloatsOfAllMagnitudesRoundTheSameWay) {
  // Every exponent with mantissas around the ties of f16, bf16 and integers, both signs.
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000; upper += 3) {
    for (const std::uint32_t lower :
         {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U, 0xF000U, 0xFFFFU}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  for (int i = -70000; i <= 70000; ++i) x.push_back(static_cast<float>(i) / 2);
  expect_same<std::uint16_t>(x, DType::kF32, DType::kF16);
  expect_same<std::uint16_t>(x, DType::kF32, DType::kBF16);
  expect_same<std::int8_t>(x, DType::kF32, DType::kI8);
  expect_same<std::uint8_t>(x, DType::kF32, DType::kU8);
  expect_same<std::int16_t>(x, DType::kF32, DType::kI16);
  expect_same<std::uint16_t>(x, DType::kF32, DType::kU16);
}

TEST_P(ConvertFast, QuantizesAroundTiesAsTheReferenceDoes) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const float scale = std::ldexp(1.0F + static_cast<float>(random() % 0x800000) * 0x1p-23F,
                                   static_cast<int>(random() % 40) - 20);
    std::vector<float> x;
    for (int k = -600; k <= 600; ++k) {
      float tie = (static_cast<float>(k) + 0.5F) * scale;
      for (int i = 0; i < 4; ++i) tie = std::nextafter(tie, -INFINITY);
      for (int i = 0; i < 8; ++i) x.push_back(tie = std::nextafter(tie, INFINITY));
      x.insert(x.end(), random() % 3 * 64, static_cast<float>(k) * scale);  // Far from ties.
    }
    x.insert(x.end(), {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 1e-40F, scale * 0x1p23F});
    for (const DType type : {DType::kI8, DType::kU8, DType::kI16}) {
      const Shape shape{static_cast<std::int64_t>(x.size())};
      const auto zero = static_cast<std::int32_t>(random() % 300) - 150;
      const std::size_t bytes = x.size() * (type == DType::kI16 ? 2 : 1);
      std::vector<std::byte> expected(bytes);
      std::vector<std::byte> actual(bytes);
      const auto run = [&](std::vector<std::byte>& out, ConvertPath path) {
        return convert({x.data(), x.size() * 4, DType::kF32, shape, {}, {}},
                       {out.data(), bytes, type, shape, {}, Quant::affine(scale, zero)},
                       {{}, {}, path});
      };
      ASSERT_TRUE(run(expected, ConvertPath::kReference).ok());
      ASSERT_TRUE(run(actual, ConvertPath::kFast).ok());
      ASSERT_EQ(expected, actual) << dtype_name(type) << " scale " << scale << " zero " << zero;
    }
  }
}

/// One lane of a vector whose other lanes are far from ties.
TEST_P(ConvertFast, BoundsWhatIsFarBeyondTheIntegersAsTheReferenceDoes) {
  for (const float scale : {0.0472F, 1 / 1.2499F, 3.0F}) {
    const std::vector<float> values{INFINITY,
                                    -INFINITY,
                                    4.4e6F * scale,
                                    -4.4e6F * scale,
                                    5e6F * scale,
                                    -1.9e7F * scale,
                                    1.2582912e7F * scale,
                                    -1.2582912e7F * scale,
                                    1e30F,
                                    -1e30F,
                                    NAN,
                                    3e38F};
    for (const float value : values) {
      for (const std::int32_t zero : {-128, 0, 150}) {
        for (const DType type : {DType::kI8, DType::kU8}) {
          std::vector<float> x(256, 0.3F * scale);
          x[70] = x[201] = value;
          const Shape shape{256};
          std::vector<std::byte> expected(x.size());
          std::vector<std::byte> actual(x.size());
          const auto run = [&](std::vector<std::byte>& out, ConvertPath path) {
            return convert({x.data(), x.size() * 4, DType::kF32, shape, {}, {}},
                           {out.data(), out.size(), type, shape, {}, Quant::affine(scale, zero)},
                           {{}, {}, path});
          };
          ASSERT_TRUE(run(expected, ConvertPath::kReference).ok());
          ASSERT_TRUE(run(actual, ConvertPath::kFast).ok());
          ASSERT_EQ(expected, actual) << dtype_name(type) << " " << value << " / " << scale;
        }
      }
    }
  }
}

/// Pictures of every byte: enough pixels for all 256 of them in each channel, of an odd width.
ConvertCase picture_case(DType from, DType to, std::int64_t channels) {
  ConvertCase k;
  k.src.dtype = from;
  k.dst.dtype = to;
  k.src.shape = k.dst.shape = {1, channels, 11, 373};
  return k;
}

TEST_P(ConvertFast, NormalisesEveryByteAsTheReferenceDoesWithAnyMeanAndDeviation) {
  std::mt19937 random(3);
  const Pick pick = pick_from(random);
  const std::vector<float> means{0.0F, -0.0F,  1e-45F, 123.675F, 127.5F,
                                 3.0F, 1e-30F, 1e10F,  3.4e38F,  -3.4e38F};
  const std::vector<float> stds{1.0F,     -1.0F,   58.395F, 127.5F, 255.0F, 3.0F,   1e-45F,
                                1.2e-38F, 0x1p30F, 1e-20F,  3e38F,  -3e38F, 1e-10F, 0.017F};
  const std::vector<float> scales{2.0F / 255, 0.0472F, 1.0F / 64, 1.0F, 1e-12F, 1e12F};
  for (const DType from : {DType::kU8, DType::kI8}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8, DType::kU8}) {
      // Channels have parameters of their own: a channel for each pair.
      const auto channels = static_cast<std::int64_t>(means.size() * stds.size());
      ConvertCase k = picture_case(from, to, channels);
      for (std::size_t i = 0; i < means.size() * stds.size(); ++i) {
        k.options.mean.push_back(means[i / stds.size()]);
        k.options.std.push_back(stds[i % stds.size()]);
      }
      const std::size_t rounds = is_integer(to) ? scales.size() : 1;
      for (std::size_t i = 0; i < rounds; ++i) {
        if (is_integer(to)) k.dst.quant = Quant::affine(scales[i], static_cast<int>(i * 40) - 100);
        k.src.layout.kind = i % 2 == 0 ? LayoutKind::kPlain : LayoutKind::kNHWC;
        k.seed = static_cast<std::uint32_t>(i);
        const CheckResult r = check_case(k, pick);
        ASSERT_EQ(r.problem, "") << k.to_string();
        EXPECT_TRUE(r.fast);
      }
    }
  }
}

TEST_P(ConvertFast, ConvertsPicturesOfAnyLayoutAndStride) {
  std::mt19937 random(4);
  const Pick pick = pick_from(random);
  for (const DType to : {DType::kF32, DType::kF16, DType::kI8}) {
    for (const std::int64_t channels : {1, 3, 4, 16}) {
      for (std::uint32_t kinds = 0; kinds < 18; ++kinds) {
        ConvertCase k = picture_case(DType::kU8, to, channels);
        const std::uint32_t stride = kinds < 9 ? 0 : 379;
        k.src.layout = {static_cast<LayoutKind>(kinds % 3), kinds % 3 == 2 ? 16U : 0U, stride};
        k.dst.layout = {static_cast<LayoutKind>(kinds / 3 % 3), kinds / 3 % 3 == 2 ? 8U : 0U,
                        stride == 0 ? 0 : stride + 5};
        k.options.mean.assign(pick(2) == 0 ? 1 : static_cast<std::size_t>(channels), 116.28F);
        for (std::int64_t c = 0; c < channels; ++c)
          k.options.std.push_back(57.12F + static_cast<float>(c));
        if (to == DType::kI8) k.dst.quant = Quant::affine(0.0186F, -14);
        k.seed = kinds;
        const CheckResult r = check_case(k, pick);
        ASSERT_EQ(r.problem, "") << k.to_string();
        EXPECT_TRUE(r.fast);
      }
    }
  }
}

TEST_P(ConvertFast, LooksBytesOfFewChannelsUpInEveryLayout) {
  std::mt19937 random(8);
  const Pick pick = pick_from(random);
  const std::vector<Layout> layouts{{LayoutKind::kPlain, 0, 0},   {LayoutKind::kNHWC, 0, 0},
                                    {LayoutKind::kNC1HWC2, 4, 0}, {LayoutKind::kNC1HWC2, 16, 0},
                                    {LayoutKind::kNHWC, 0, 377},  {LayoutKind::kNC1HWC2, 16, 380}};
  for (const std::int64_t channels : {1, 2, 3, 4, 6, 19}) {
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        ConvertCase k = picture_case(DType::kU8, pick(2) == 0 ? DType::kI8 : DType::kU8, channels);
        k.src.layout = from;
        k.dst.layout = to;
        k.dst.quant = Quant::affine(0.0186F, -14);
        if (pick(2) == 0) {  // Channels with quantizations of their own, or images.
          k.src.shape = k.dst.shape = {2, channels, 11, 373};
          k.dst.quant.axis = pick(3) == 0 ? 0 : 1;
          const auto count = k.dst.quant.axis == 0 ? 2 : static_cast<std::int32_t>(channels);
          k.dst.quant.scales.clear();
          k.dst.quant.zero_points.clear();
          for (std::int32_t i = 0; i < count; ++i) {
            k.dst.quant.scales.push_back(0.0186F + 0.001F * static_cast<float>(i));
            k.dst.quant.zero_points.push_back(3 + 10 * i);
          }
        }
        if (pick(3) == 0) {
          k.src.dtype = DType::kI8;
          k.src.quant = Quant::affine(0.9F, 3);
        }
        const std::size_t lists = pick(3) == 0 ? 1 : static_cast<std::size_t>(channels);
        for (std::size_t c = 0; c < lists; ++c) {
          k.options.mean.push_back(116.28F + static_cast<float>(c));
          k.options.std.push_back(57.12F - 3 * static_cast<float>(c));
        }
        k.seed = pick(1000);
        const CheckResult r = check_case(k, pick);
        ASSERT_EQ(r.problem, "") << k.to_string();
        EXPECT_TRUE(r.fast);
      }
    }
  }
}

TEST_P(ConvertFast, RequantizesEveryByteAsTheReferenceDoes) {
  std::mt19937 random(6);
  const Pick pick = pick_from(random);
  // Powers of two lie on ties, the others next to them.
  for (const float from : {0.5F, 1.0F, 0.3F, 1e-6F, 1e20F, 1e-40F}) {
    for (const float to : {1.0F, 0.25F, 0.6F, 0.0472F, 1e-8F, 1e20F}) {
      for (const DType type : {DType::kI8, DType::kU8}) {
        ConvertCase k = picture_case(DType::kI8, type, 3);
        k.src.quant = Quant::affine(from, -128 + static_cast<int>(pick(256)));
        k.dst.quant = Quant::affine(to, static_cast<int>(pick(256)) - 128);
        k.seed = pick(1000);
        const CheckResult r = check_case(k, pick);
        ASSERT_EQ(r.problem, "") << k.to_string();
      }
    }
  }
}

TEST_P(ConvertFast, ShortensWhatRealProgramsAskFor) {
  detail::RowParams params;
  detail::ByteResults results;
  params.normalise = true;
  params.mean = 123.675F;
  params.std = 58.395F;
  params.std_reciprocal = 1 / params.std;
  detail::find_row_kernel(DType::kU8, DType::kF32).shorten(params, results);
  EXPECT_NE(params.shortcut, nullptr);
  // Each result lies next to a tie: [-1, 1] in steps of 2 / 255.
  params.shortcut = nullptr;
  params.mean = params.std = 127.5F;
  params.std_reciprocal = 1 / params.std;
  params.quantize = true;
  params.dst_scale = 2.0F / 255;
  params.dst_reciprocal = 1 / params.dst_scale;
  params.low = -128;
  params.high = 127;
  detail::find_row_kernel(DType::kU8, DType::kI8).shorten(params, results);
  EXPECT_NE(params.shortcut, nullptr);
}

std::string target_name(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}
INSTANTIATE_TEST_SUITE_P(Targets, ConvertFast,
                         ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), target_name);

TEST(ConvertIsa, NamesTheBestInstructionSetOfThisCpu) {
  EXPECT_EQ(convert_isa(), hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()));
}

TEST(ConvertPathFast, RefusesWhatHasNoKernel) {
  const std::vector<std::int64_t> x(3);
  std::vector<float> y(3);
  const Status s = convert({x.data(), 24, DType::kI64, {3}, {}, {}},
                           {y.data(), 12, DType::kF32, {3}, {}, {}}, {{}, {}, ConvertPath::kFast});
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_NE(s.message().find("i64"), std::string::npos);
}

}  // namespace
}  // namespace corelane::testing
