/// Weights in buffers of the plugin, and when they are made ready anew.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "adapters/ggml/plugin/ggml_plugin.h"
#include "adapters/ggml/plugin/testing/ggml_plugged.h"

namespace corelane::ggml {
namespace {

/// As a convolution has them that is computed as a product.
TEST_F(Plugged, AWeightOfRowsThatOverlapIsMadeReadyAnewWhereOnlyItsLastOneIsWritten) {
  auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 6);
  const OwnedBuffer mapped(device_->iface.buffer_from_host_ptr(
      device_, b.halves.data(), b.halves.size() * 2, b.halves.size() * 2));
  mapped->usage = abi::kUsageWeights;
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  place(weights, mapped);
  b.view.row_bytes = weights.nb[1] = 4;
  EXPECT_LT(computed(weights, b.view), 1e-6);
  const std::vector<std::uint16_t> ones(16, 0x3c00);
  mapped->iface.set_tensor(mapped.get(), &weights, ones.data(), kRows * weights.nb[1], 32);
  EXPECT_LT(computed(weights, b.view), 1e-6);
}

TEST_F(Plugged, ABufferThatTheHostHasNoMemoryForIsRefusedAndLeavesNothing) {
  const auto before = plugin().engine->allocated();
  char mapped[64];
  fake_lacks_memory() = true;
  EXPECT_EQ(fake_alloc(type_, 4096), nullptr);
  EXPECT_EQ(device_->iface.buffer_from_host_ptr(device_, mapped, sizeof mapped, sizeof mapped),
            nullptr);
  fake_lacks_memory() = false;
  EXPECT_EQ(plugin().engine->allocated(), before);
}

}  // namespace
}  // namespace corelane::ggml
