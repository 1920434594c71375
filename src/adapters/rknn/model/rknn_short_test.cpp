/// The fault 'short': a run whose result is incomplete fails, and so do its results.
#include "adapters/rknn/model/rknn_fault_support.h"

namespace corelane::rknn::test {
namespace {

TEST(RknnShort, ARunWithAShortResultFails) {
  const Environment plan("CORELANE_FAULTS", "short=1");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  EXPECT_EQ(model.run(), RKNN_ERR_FAIL);
  rknn_run_extend extend = background();
  ASSERT_EQ(model.run(&extend), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(model.ctx, nullptr), RKNN_ERR_FAIL);
  rknn_output output{};
  output.want_float = 1;
  EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_FAIL);
}

TEST(RknnShort, ARunThatFailedInTheBackgroundDoesNotRefuseTheNextOne) {
  const Environment plan("CORELANE_FAULTS", "short=1");
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  for (int i = 0; i < 3; ++i) {
    rknn_run_extend extend = background();
    ASSERT_EQ(model.run(&extend), RKNN_SUCC) << "run " << i << ", nobody waited for the one before";
  }
  rknn_run_extend first{};
  first.frame_id = 1;
  EXPECT_EQ(rknn_wait(model.ctx, &first), RKNN_ERR_FAIL);
  EXPECT_EQ(rknn_wait(model.ctx, nullptr), RKNN_ERR_FAIL);
}

}  // namespace
}  // namespace corelane::rknn::test
