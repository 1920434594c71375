/// rknn_query over whole models: what the commands report, and that the figures
/// fit each other.
#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class T>
T asked(const Model& model, rknn_query_cmd cmd) {
  T info{};
  EXPECT_EQ(rknn_query(model.ctx, cmd, &info, sizeof info), RKNN_SUCC);
  return info;
}

TEST(RknnQuery, NumbersOfInputsAndOutputs) {
  const Model model(two_by_two({1, 2}));
  const auto count = asked<rknn_input_output_num>(model, RKNN_QUERY_IN_OUT_NUM);
  EXPECT_EQ(count.n_input, 2U);
  EXPECT_EQ(count.n_output, 2U);
}

TEST(RknnQuery, AttrsAreInTheModelsPlaces) {
  const Model model(two_by_two({1, 2}));
  EXPECT_STREQ(model.attr(RKNN_QUERY_INPUT_ATTR, 1).name, "b");
  EXPECT_STREQ(model.attr(RKNN_QUERY_OUTPUT_ATTR, 1).name, "difference");
  EXPECT_EQ(model.attr(RKNN_QUERY_OUTPUT_ATTR, 1).index, 1U);
  rknn_tensor_attr attr{};
  attr.index = 2;
  for (const auto cmd : {RKNN_QUERY_INPUT_ATTR, RKNN_QUERY_OUTPUT_ATTR,
                         RKNN_QUERY_NATIVE_INPUT_ATTR, RKNN_QUERY_CURRENT_OUTPUT_ATTR})
    EXPECT_EQ(rknn_query(model.ctx, cmd, &attr, sizeof attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnQuery, PicturesComeInAsNhwcAndGoOutAsNchw) {
  const Model model(doubling({1, 3, 6, 10}));
  const rknn_tensor_attr in = model.attr(RKNN_QUERY_INPUT_ATTR);
  EXPECT_EQ(in.fmt, RKNN_TENSOR_NHWC);
  EXPECT_EQ(dims(in), (Dims{1, 6, 10, 3}));
  EXPECT_EQ(in.type, RKNN_TENSOR_FLOAT16);
  EXPECT_EQ(in.qnt_type, RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC);
  EXPECT_EQ(in.zp, 0);
  EXPECT_EQ(in.scale, 1.0F);
  EXPECT_EQ(in.n_elems, 180U);
  EXPECT_EQ(in.size, 360U);
  EXPECT_EQ(in.w_stride, 16U);
  EXPECT_EQ(in.size_with_stride, 6U * 16 * 3 * 2);
  const rknn_tensor_attr out = model.attr(RKNN_QUERY_OUTPUT_ATTR);
  EXPECT_EQ(out.fmt, RKNN_TENSOR_NCHW);
  EXPECT_EQ(dims(out), (Dims{1, 3, 6, 10}));
  EXPECT_EQ(out.w_stride, 0U);
  EXPECT_EQ(out.size_with_stride,
            8U * 6 * 10 * 2);  // Channels padded to a block.
}

TEST(RknnQuery, RowsArePaddedByTheRuleOfTheChip) {
  const Environment inner("CORELANE_RKNN_INNER", "virtual:rk3566");
  const Affine q{0.5F, 0};
  const Model model(quantised<std::int8_t>({1, 5, 2, 10}, q, q));
  EXPECT_EQ(model.attr(RKNN_QUERY_INPUT_ATTR).w_stride, 16U);  // To 8 pixels.
  EXPECT_EQ(dims(model.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR)), (Dims{1, 1, 2, 10, 8}));
  const Model wide(doubling({1, 3, 2, 17}));
  EXPECT_EQ(wide.attr(RKNN_QUERY_INPUT_ATTR).w_stride, 24U);
}

TEST(RknnQuery, NativeFormsAreBlocksOfChannels) {
  const Affine q{0.5F, 3};
  const Model model(quantised<std::int8_t>({2, 20, 3, 4}, q, q));
  for (const auto cmd :
       {RKNN_QUERY_NATIVE_INPUT_ATTR, RKNN_QUERY_NATIVE_OUTPUT_ATTR,
        RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR, RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR}) {
    const rknn_tensor_attr attr = model.attr(cmd);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_NC1HWC2);
    EXPECT_EQ(dims(attr), (Dims{2, 2, 3, 4, 16}));
    EXPECT_EQ(attr.size_with_stride, 2U * 2 * 3 * 4 * 16);
    EXPECT_EQ(attr.type, RKNN_TENSOR_INT8);
    EXPECT_EQ(attr.zp, 3);
  }
  for (const auto cmd : {RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR, RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR}) {
    const rknn_tensor_attr attr = model.attr(cmd);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_NHWC);
    EXPECT_EQ(dims(attr), (Dims{2, 3, 4, 20}));
  }
  const Model half(doubling({1, 20, 3, 4}));
  EXPECT_EQ(dims(half.attr(RKNN_QUERY_NATIVE_OUTPUT_ATTR)), (Dims{1, 3, 3, 4, 8}));
}

TEST(RknnQuery, NativeInputsOfPixelsAreNhwc) {
  for (const std::int64_t channels : {1, 3, 4}) {
    const Model model(doubling({1, channels, 2, 5}));
    const rknn_tensor_attr attr = model.attr(RKNN_QUERY_NATIVE_INPUT_ATTR);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_NHWC) << channels;
    EXPECT_EQ(dims(attr), (Dims{1, 2, 5, channels}));
    EXPECT_EQ(attr.w_stride, 16U);
  }
}

TEST(RknnQuery, NativeFormsOfFiveDimensionsAreTheirOwnShape) {
  const Model model(doubling({1, 2, 3, 4, 5}));
  for (const auto cmd : {RKNN_QUERY_NATIVE_INPUT_ATTR, RKNN_QUERY_NATIVE_OUTPUT_ATTR,
                         RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR}) {
    const rknn_tensor_attr attr = model.attr(cmd);
    EXPECT_EQ(attr.fmt, RKNN_TENSOR_UNDEFINED);
    EXPECT_EQ(dims(attr), (Dims{1, 2, 3, 4, 5}));
    EXPECT_EQ(attr.size, 240U);
  }
}

TEST(RknnQuery, ShortStructsAreRefusedButForOldOnes) {
  const Model model(doubling({1, 3, 4, 4}));
  rknn_tensor_attr attr{};
  const std::string lines = lines_of([&] {
    EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_ATTR, &attr, 375), RKNN_ERR_PARAM_INVALID);
  });
  EXPECT_THAT(lines, HasSubstr("info_len(375) < sizeof(rknn_tensor_attr)(376)"));
  std::memset(&attr, 0xEE, sizeof attr);
  attr.index = 0;
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_ATTR, &attr, 372), RKNN_SUCC);
  EXPECT_EQ(attr.w_stride, 16U);
  EXPECT_EQ(attr.h_stride, 0xEEEEEEEEU);  // After the old struct: the caller's.
  rknn_mem_size size{};
  size.total_dma_allocated_size = 77;
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &size, 8), RKNN_SUCC);
  EXPECT_EQ(size.total_dma_allocated_size, 77U);
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &size, 7), RKNN_ERR_PARAM_INVALID);
  rknn_input_output_num count{};
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_IN_OUT_NUM, &count, 7), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnQuery, MemorySizesCanBeAllocated) {
  const Model model(doubling({1, 3, 4, 4}));
  const auto size = asked<rknn_mem_size>(model, RKNN_QUERY_MEM_SIZE);
  EXPECT_GT(size.total_weight_size, 0U);
  EXPECT_GT(size.total_internal_size, 0U);
  const Mem mem(model.ctx, size.total_internal_size);
  EXPECT_EQ(size.total_sram_size, 0U);
  EXPECT_EQ(size.free_sram_size, 0U);
}

TEST(RknnQuery, VersionsAreReadFromTheLeft) {
  const Model model(doubling({1, 2}));
  const auto version = asked<rknn_sdk_version>(model, RKNN_QUERY_SDK_VERSION);
  EXPECT_THAT(version.api_version, StartsWith("2.5.0 ("));
  EXPECT_THAT(version.drv_version, StartsWith("0.9.8"));
}

TEST(RknnQuery, CustomStringIsThatOfTheModelOrEmpty) {
  ImportOptions options;
  options.custom_string = std::string(1023, 'c');
  EXPECT_EQ(asked<rknn_custom_string>(Model(compiled(doubling({1, 2}), options)),
                                      RKNN_QUERY_CUSTOM_STRING)
                .string,
            options.custom_string);
  EXPECT_STREQ(asked<rknn_custom_string>(Model(doubling({1, 2})), RKNN_QUERY_CUSTOM_STRING).string,
               "");
}

TEST(RknnQuery, PerfIsAskedBeforeAndAfterARunWithAndWithoutTheFlag) {
  for (const std::uint32_t flags : {0U, std::uint32_t{RKNN_FLAG_COLLECT_PERF_MASK}}) {
    const Model model(doubling({1, 3, 4, 4}), flags);
    for (int runs = 0; runs < 2; ++runs) {
      const auto detail = asked<rknn_perf_detail>(model, RKNN_QUERY_PERF_DETAIL);
      ASSERT_NE(detail.perf_data, nullptr);
      EXPECT_EQ(std::strlen(detail.perf_data), detail.data_len);
      EXPECT_GE(asked<rknn_perf_run>(model, RKNN_QUERY_PERF_RUN).run_duration, 0);
      ASSERT_EQ(model.set(ramp(48)), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
    }
    const auto detail = asked<rknn_perf_detail>(model, RKNN_QUERY_PERF_DETAIL);
    if (flags == 0) continue;
    EXPECT_THAT(detail.perf_data, HasSubstr("OutputOperator"));
  }
}

TEST(RknnQuery, UnknownCommandsAreRefused) {
  const Model model(doubling({1, 2}));
  rknn_input_range info{};
  for (const std::uint32_t cmd : {18U, 19U, 1000U, UINT32_MAX})
    EXPECT_EQ(rknn_query(model.ctx, static_cast<rknn_query_cmd>(cmd), &info, sizeof info),
              RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &info, sizeof info),
            RKNN_ERR_PARAM_INVALID);  // Not a dynamic model.
}

TEST(RknnQuery, AskingAStaticModelForItsShapesIsNoErrorLine) {
  const Model model(doubling({1, 4}));
  const std::string lines = lines_of([&] {
    for (int i = 0; i < 2; ++i) {
      rknn_input_range info{};
      EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_DYNAMIC_RANGE, &info, sizeof info),
                RKNN_ERR_PARAM_INVALID);
    }
  });
  EXPECT_EQ(lines, "");
}

}  // namespace
}  // namespace corelane::rknn::test
