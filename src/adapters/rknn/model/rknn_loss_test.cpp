/// Contexts and products of the C API on a device that is lost and comes back.
#include "adapters/rknn/matmul/rknn_matmul_test_support.h"
#include "adapters/rknn/model/rknn_fault_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

/// The first run is struck; the device is back after a millisecond.
std::string one_loss() { return faults("lost=0.2,lost_ms=1", device::Fault::kLost); }

TEST(RknnLoss, ARunSaysThatTheDeviceIsLostAndALaterOneWorks) {
  const Environment plan("CORELANE_FAULTS", one_loss());
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  const Model model(doubling({1, 4}));
  const Model idle(doubling({1, 4}));
  ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
  ASSERT_EQ(idle.set({4, 3, 2, 1}), RKNN_SUCC);
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_run(model.ctx, nullptr), RKNN_ERR_DEVICE_UNAVAILABLE); });
  EXPECT_THAT(lines, HasSubstr("lost"));
  int code = RKNN_ERR_DEVICE_UNAVAILABLE;
  while (code == RKNN_ERR_DEVICE_UNAVAILABLE) code = rknn_run(model.ctx, nullptr);
  ASSERT_EQ(code, RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  ASSERT_EQ(rknn_run(idle.ctx, nullptr), RKNN_SUCC);
  EXPECT_EQ(idle.floats(), (std::vector<float>{8, 6, 4, 2}));
}

TEST(RknnLoss, AProductWorksAgainWithItsWeights) {
  const Environment plan("CORELANE_FAULTS", one_loss());
  const Environment inner("CORELANE_RKNN_INNER", own_device());
  Product product(product_info(RKNN_INT8_MM_INT8_TO_INT32, 4, 128, 64));
  ASSERT_EQ(product.code, RKNN_SUCC);
  product.fill(7);
  product.write();
  ASSERT_EQ(product.bind(), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(product.ctx), RKNN_ERR_DEVICE_UNAVAILABLE);
  int code = RKNN_ERR_DEVICE_UNAVAILABLE;
  while (code == RKNN_ERR_DEVICE_UNAVAILABLE) code = rknn_matmul_run(product.ctx);
  ASSERT_EQ(code, RKNN_SUCC);
  EXPECT_EQ(product.wrong(), 0);
}

}  // namespace
}  // namespace corelane::rknn::test
