/// What the device says to products, and what it says where a host asks for the place of a weight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

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

/// A program's own function, by ggml_log_set(), may wait for a thread that uses the backend.
TEST_F(Plugged, LinesAreToldWhileNothingOfThePluginIsLocked) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns - 2, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  const auto b = random_matrix(kRows, kColumns - 2, RowForm::kHalves, 9);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  int lines = 0;
  int idle = 0;
  fake_on_line() = [&] {
    ++lines;
    std::thread([&] { idle += plugin().engine->is_idle() ? 1 : 0; }).join();
  };
  plugin().options.trace = true;
  EXPECT_LT(computed(weights, b.view), 1e-6);
  plugin().options.trace = false;
  fake_on_line() = nullptr;
  EXPECT_GE(lines, 1);
  EXPECT_EQ(idle, lines);
  EXPECT_THAT(fake_log().back(), testing::HasSubstr("M 12, K 62, N 48, f16, weight"));
}

}  // namespace
}  // namespace corelane::ggml
