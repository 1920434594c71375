/// What the device says to products, and what it says where a host asks for the place of a weight.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "adapters/ggml/plugin/ggml_plugin.h"
#include "adapters/ggml/plugin/testing/ggml_plugged.h"

namespace corelane::ggml {
namespace {

class PluggedFiltered : public Plugged {
 protected:
  void filter(const std::string& text) {
    std::string why;
    ASSERT_TRUE(Filter::parse(text, plugin().filter, why)) << why;
  }
  void TearDown() override {
    plugin().filter = {};
    Plugged::TearDown();
  }
};

TEST_F(PluggedFiltered, WeightsAreTakenByTheirSizesAndNodesByTheirNamesAndRowsToo) {
  filter(R"({"pairs": [{"src0": {"row": 48, "col": 64}, "src1": {"row": 12, "col": 64},
             "name": "ffn_up"}]})");
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 512);
  abi::Buffer nowhere{{}, type_, nullptr, 0, abi::kUsageAny};
  weights.buffer = &nowhere;
  EXPECT_TRUE(supported(fake_product(weights, activations)))
      << "a host's own product, without name";
  abi::Tensor others = fake_tensor(abi::kTypeF16, kColumns, kRows + 1);
  others.buffer = &nowhere;
  EXPECT_FALSE(supported(fake_product(others, activations))) << "no product with it is listed";

  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
  abi::Tensor node = fake_product(weights, activations);
  EXPECT_FALSE(supported(node)) << "not by this name";
  std::strcpy(node.name, "ffn_up-3");
  EXPECT_TRUE(supported(node));
  activations.ne[1] = 16;
  EXPECT_FALSE(supported(node)) << "not so many rows";
}

}  // namespace
}  // namespace corelane::ggml
