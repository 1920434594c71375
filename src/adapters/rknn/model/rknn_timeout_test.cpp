/// CORELANE_RKNN_TIMEOUT_MS: the limit of runs whose callers set none.
#include <algorithm>

#include "adapters/rknn/matmul/rknn_matmul_test_support.h"
#include "adapters/rknn/model/rknn_fault_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kLimit = "CORELANE_RKNN_TIMEOUT_MS";

TEST(RknnTimeout, TheVariableEndsAHungRunOfACallerThatSetsNoTime) {
  const Environment plan("CORELANE_FAULTS", faults("hang=0.2", device::Fault::kHang));
  const Environment limit(kLimit, "40");
  for (const bool in_background : {false, true}) {
    const Environment inner("CORELANE_RKNN_INNER", own_device());
    const Model model(doubling({1, 4}));
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    const std::string lines = lines_of([&] {
      if (!in_background) {
        EXPECT_EQ(rknn_run(model.ctx, nullptr), RKNN_ERR_TIMEOUT);
        return;
      }
      rknn_run_extend extend = background();
      EXPECT_EQ(model.run(&extend), RKNN_SUCC);
      EXPECT_EQ(rknn_wait(model.ctx, nullptr), RKNN_ERR_TIMEOUT);
    });
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
    EXPECT_THAT(lines, AllOf(HasSubstr("'doubling'"), HasSubstr("core set '"), HasSubstr("reset"),
                             HasSubstr("40 ms"), HasSubstr(kLimit)));
    int code = RKNN_ERR_TIMEOUT;
    rknn_run_extend extend{};
    extend.timeout_ms = 20000;
    for (int tries = 0; tries < 2 && code == RKNN_ERR_TIMEOUT; ++tries) code = model.run(&extend);
    ASSERT_EQ(code, RKNN_SUCC);
    EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  }
}

TEST(RknnTimeout, TheResultsOfAHungRunInTheBackgroundAreItsFailure) {
  const Environment plan("CORELANE_FAULTS", faults("hang=0.2", device::Fault::kHang));
  const Environment limit(kLimit, "40");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}), RKNN_FLAG_ASYNC_MASK);
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(rknn_run(model.ctx, nullptr), RKNN_SUCC);
  rknn_output output{};
  output.want_float = 1;
  EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_TIMEOUT);
}

TEST(RknnTimeout, ACallersOwnTimeGoesBeforeTheVariable) {
  const Environment plan("CORELANE_FAULTS", "slow=1,slow_ms=100");
  const Environment limit(kLimit, "20");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  rknn_run_extend extend{};
  extend.timeout_ms = 20000;
  EXPECT_EQ(model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(model.run(), RKNN_ERR_TIMEOUT);
}

TEST(RknnTimeout, TheVariableOfADuplicateIsThatOfItsFirstContext) {
  const Environment plan("CORELANE_FAULTS", "slow=1,slow_ms=100");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  Model first;
  {
    const Environment limit(kLimit, "20");
    std::string bytes = doubling({1, 4});
    ASSERT_EQ(
        rknn_init(&first.ctx, bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, nullptr),
        RKNN_SUCC);
  }
  Model second;
  ASSERT_EQ(rknn_dup_context(&first.ctx, &second.ctx), RKNN_SUCC);
  ASSERT_EQ(second.set({1, 2, 3, 4}), RKNN_SUCC);
  EXPECT_EQ(second.run(), RKNN_ERR_TIMEOUT);
}

TEST(RknnTimeout, AVariableThatIsNoNumberFailsRknnInitAndSaysSo) {
  std::string bytes = doubling({1, 4});
  for (const char* bad : {"soon", "-1", "10ms", "1.5", "99999999999"}) {
    const Environment limit(kLimit, bad);
    rknn_context ctx = 0;
    const std::string lines = lines_of([&] {
      EXPECT_EQ(rknn_init(&ctx, bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, nullptr),
                RKNN_ERR_PARAM_INVALID);
    });
    EXPECT_THAT(lines, AllOf(HasSubstr(kLimit), HasSubstr(bad)));
  }
  for (const char* none : {"", "0"}) {
    const Environment limit(kLimit, none);
    const Model model(bytes);
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    EXPECT_EQ(model.run(), RKNN_SUCC);
  }
}

TEST(RknnTimeout, AHungProductEndsAndTheNextOneIsRight) {
  const Environment plan("CORELANE_FAULTS", faults("hang=0.2", device::Fault::kHang));
  const Environment limit(kLimit, "40");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  Product product(product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 64, 32));
  ASSERT_EQ(product.code, RKNN_SUCC);
  product.fill(1);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_TIMEOUT); });
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  EXPECT_THAT(lines, AllOf(HasSubstr("product"), HasSubstr("core set '"), HasSubstr("reset"),
                           HasSubstr("40 ms"), HasSubstr(kLimit)));
  int code = RKNN_ERR_TIMEOUT;
  for (int tries = 0; tries < 5 && code == RKNN_ERR_TIMEOUT; ++tries)
    code = rknn_matmul_run(product.ctx);
  ASSERT_EQ(code, RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

TEST(RknnTimeout, AVariableThatIsNoNumberFailsRknnMatmulCreate) {
  const Environment limit(kLimit, "soon");
  rknn_matmul_info info = product_info(RKNN_INT8_MM_INT8_TO_INT32, 2, 64, 32);
  rknn_matmul_io_attr io{};
  rknn_matmul_ctx ctx = 0;
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_ERR_PARAM_INVALID); });
  EXPECT_THAT(lines, AllOf(HasSubstr("rknn_matmul_create"), HasSubstr(kLimit), HasSubstr("soon")));
}

}  // namespace
}  // namespace corelane::rknn::test
