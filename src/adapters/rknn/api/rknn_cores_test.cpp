/// rknn_set_core_mask and rknn_set_batch_core_num on chips of one, two and three cores.
#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

int mask(const Model& model, std::uint32_t bits) {
  return rknn_set_core_mask(model.ctx, static_cast<rknn_core_mask>(bits));
}

void expect_runs(const Model& model) {
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
}

/// The record of the last run as the API tells it: the column WorkLoad has the share of each core.
std::string perf_detail(const Model& model) {
  rknn_perf_detail detail{};
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail), RKNN_SUCC);
  return detail.perf_data;
}

TEST(RknnCores, ThreeCoresTakeEveryMaskOfTheApi) {
  const Model model(doubling({1, 4}));
  for (const std::uint32_t bits :
       {RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2, RKNN_NPU_CORE_0_1,
        RKNN_NPU_CORE_0_1_2, RKNN_NPU_CORE_ALL}) {
    ASSERT_EQ(mask(model, bits), RKNN_SUCC) << bits;
    expect_runs(model);
  }
}

TEST(RknnCores, MasksOfOtherCoresAreRefusedAndChangeNothing) {
  const Model model(doubling({1, 4}));
  for (const std::uint32_t bits : {8U, 9U, 0x8000U, std::uint32_t{RKNN_NPU_CORE_UNDEFINED}, ~0U}) {
    const std::string lines = lines_of([&] { EXPECT_EQ(mask(model, bits), RKNN_ERR_FAIL); });
    EXPECT_THAT(lines, HasSubstr("not support core mask: " + std::to_string(bits)));
    EXPECT_THAT(lines, HasSubstr("3 cores"));
  }
  expect_runs(model);
}

TEST(RknnCores, TwoCoresHaveNoThirdOne) {
  const Environment inner("CORELANE_RKNN_INNER", "virtual:rk3576");
  const Model model(doubling({1, 4}));
  for (const std::uint32_t bits : {0U, 1U, 2U, 3U, 0xffffU}) {
    EXPECT_EQ(mask(model, bits), RKNN_SUCC) << bits;
    expect_runs(model);
  }
  for (const std::uint32_t bits : {4U, 7U, 5U}) EXPECT_EQ(mask(model, bits), RKNN_ERR_FAIL) << bits;
}

TEST(RknnCores, OneCoreHasNoMasks) {
  for (const char* chip : {"virtual:rk3566", "virtual:rk3568", "virtual:rk3562"}) {
    const Environment inner("CORELANE_RKNN_INNER", chip);
    const Model model(doubling({1, 4}));
    for (const std::uint32_t bits : {0U, 1U, 2U, 4U, 7U, 0xffffU, 8U, ~0U}) {
      const std::string lines =
          lines_of([&] { EXPECT_EQ(mask(model, bits), RKNN_ERR_TARGET_PLATFORM_UNMATCH) << chip; });
      // What clients of all chips ask for makes no error line; what no chip has does.
      EXPECT_EQ(lines.find("one core") != std::string::npos, bits == 8 || bits == ~0U) << bits;
    }
    expect_runs(model);
  }
}

TEST(RknnCores, TheMaskIsWhereTheRunIsDone) {
  const Model model(doubling({1, 3, 32, 32}), RKNN_FLAG_COLLECT_PERF_MASK);
  ASSERT_EQ(model.set(ramp(3 * 32 * 32)), RKNN_SUCC);
  for (const auto& [bits, load] : {std::pair{1U, "100.0%/0.0%/0.0%"},
                                   {2U, "0.0%/100.0%/0.0%"},
                                   {4U, "0.0%/0.0%/100.0%"},
                                   {RKNN_NPU_CORE_0_1, "50.0%/50.0%/0.0%"},
                                   {RKNN_NPU_CORE_ALL, "33.3%/33.3%/33.3%"}}) {
    ASSERT_EQ(mask(model, bits), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_THAT(perf_detail(model), HasSubstr(load));
  }
}

TEST(RknnCores, AllIsEveryCoreForAProgramOfThreeToo) {
  ImportOptions options;
  options.cores = 3;
  const Model model(compiled(doubling({1, 3, 32, 32}), options), RKNN_FLAG_COLLECT_PERF_MASK);
  ASSERT_EQ(model.set(ramp(3 * 32 * 32)), RKNN_SUCC);
  for (const std::uint32_t bits : {RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_ALL}) {
    ASSERT_EQ(mask(model, bits), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_THAT(perf_detail(model), HasSubstr("33.3%/33.3%/33.3%")) << bits;
  }
}

TEST(RknnCores, DuplicatesStartWithTheMaskAndChangeTheirOwn) {
  Model master(doubling({1, 4}));
  ASSERT_EQ(mask(master, 2), RKNN_SUCC);
  Model clone;
  ASSERT_EQ(rknn_dup_context(&master.ctx, &clone.ctx), RKNN_SUCC);
  ASSERT_EQ(mask(clone, 4), RKNN_SUCC);
  expect_runs(master);
  expect_runs(clone);
}

TEST(RknnCores, ABatchIsSpreadOverCores) {
  ImportOptions options;
  options.batch = 6;
  const Model model(compiled(doubling({1, 4}), options));
  const rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  EXPECT_EQ(attr.dims[0], 6U);
  EXPECT_EQ(model.attr(RKNN_QUERY_OUTPUT_ATTR).dims[0], 6U);
  const std::vector<float> x = ramp(24);
  for (const int cores : {1, 2, 3}) {
    ASSERT_EQ(rknn_set_batch_core_num(model.ctx, cores), RKNN_SUCC);
    ASSERT_EQ(model.set(x), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(x, 2));
  }
  for (const int cores : {0, -1, 4}) {
    const std::string lines = lines_of(
        [&] { EXPECT_EQ(rknn_set_batch_core_num(model.ctx, cores), RKNN_ERR_PARAM_INVALID); });
    EXPECT_THAT(lines, HasSubstr(std::to_string(cores)));
  }
}

TEST(RknnCores, BatchesOfPicturesKeepTheirOrder) {
  ImportOptions options;
  options.batch = 3;
  const Picture picture{3, 3, 4, 5};
  const Model model(compiled(doubling({1, 3, 4, 5}), options));
  const std::vector<float> x = ramp(picture.size());
  ASSERT_EQ(model.set(0, picture.to_nhwc(x), RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NHWC), RKNN_SUCC);
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), times(x, 2));
}

TEST(RknnCores, WithoutABatchThereIsNothingToSpread) {
  const Model model(doubling({1, 4}));
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_set_batch_core_num(model.ctx, 2), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, HasSubstr("--batch"));
  expect_runs(model);
}

TEST(RknnCores, PrioritiesRunAlike) {
  for (const std::uint32_t flag :
       {RKNN_FLAG_PRIOR_HIGH, RKNN_FLAG_PRIOR_MEDIUM, RKNN_FLAG_PRIOR_LOW})
    expect_runs(Model(doubling({1, 4}), flag));
}

}  // namespace
}  // namespace corelane::rknn::test
