/// Weights of few bits as int4, by option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "adapters/ggml/plugin/ggml_plugin.h"
#include "adapters/ggml/plugin/testing/ggml_plugged.h"

namespace corelane::ggml {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// With the option set as the parameter says, whatever the program was started with.
class PluggedInt4 : public Plugged, public testing::WithParamInterface<MmType> {
 protected:
  void SetUp() override {
    Plugged::SetUp();
    type_policy_ = plugin().options.type;
    few_bits_ = plugin().few_bits;
    plugin().options.type = TypePolicy::kInt4;
    plugin().few_bits = GetParam();
    plugin().options.trace = true;
  }
  void TearDown() override {
    plugin().options.trace = false;
    plugin().options.type = type_policy_;
    plugin().few_bits = few_bits_;
    Plugged::TearDown();
  }
  /// Blocks of the type, in a buffer of this usage.
  OwnedBuffer fill(abi::Tensor& tensor, int usage) {
    auto made = buffer(tensor.nb[3], usage);
    place(tensor, made);
    auto* at = static_cast<unsigned char*>(tensor.data);
    std::mt19937 random(3);
    for (std::size_t i = 0; i < tensor.nb[3]; ++i) at[i] = static_cast<unsigned char>(random());
    for (std::size_t block = 0; block < tensor.nb[3]; block += tensor.nb[0]) {
      const float scale = 0.01F * static_cast<float>(1 + block % 5);
      std::memcpy(at + block, &scale, sizeof scale);
    }
    return made;
  }
  static MmMatrix meant(const abi::Tensor& tensor) {
    MmMatrix matrix;
    matrix.data = tensor.data;
    matrix.rows = tensor.ne[1];
    matrix.columns = tensor.ne[0];
    matrix.row_bytes = tensor.nb[1];
    matrix.form = RowForm::kOther;
    matrix.reader = plugin().host->call.get_type_traits(tensor.type)->to_float;
    return matrix;
  }
  static const char* name() { return GetParam() == MmType::kW4A4 ? ", int4x4, " : ", int4, "; }

  TypePolicy type_policy_{};
  MmType few_bits_{};
};

TEST_P(PluggedInt4, WeightsOfFewBitsBecomeInt4AndOthersInt8) {
  abi::Tensor few = fake_tensor(kFakeFewBits, 1024, kRows);
  const auto of_few = fill(few, abi::kUsageWeights);
  const double error = computed(few, meant(few));
  EXPECT_LT(error, bound_of(GetParam()));
  EXPECT_GT(error, 1e-3) << "more exact than int4 can be";
  EXPECT_THAT(fake_log().back(), HasSubstr(std::string(name()) + "weight"));
  abi::Tensor many = fake_tensor(kFakeBlocks, 1024, kRows);
  const auto of_many = fill(many, abi::kUsageWeights);
  EXPECT_LT(computed(many, meant(many)), bound_of(MmType::kInt8));
  EXPECT_THAT(fake_log().back(), HasSubstr(", int8, weight"));
}

TEST_P(PluggedInt4, MatricesThatAreNoWeightsStayInt8) {
  abi::Tensor few = fake_tensor(kFakeFewBits, kColumns, kRows);
  const auto ours = fill(few, abi::kUsageAny);
  EXPECT_LT(computed(few, meant(few)), bound_of(MmType::kInt8));
  EXPECT_THAT(fake_log().back(), HasSubstr(", int8"));
}

TEST_P(PluggedInt4, AVocabularyKeepsItsBits) {
  abi::Tensor few = fake_tensor(kFakeFewBits, kColumns, kRows);
  std::strcpy(few.name, "token_embd.weight");
  const auto ours = fill(few, abi::kUsageWeights);
  EXPECT_LT(computed(few, meant(few)), bound_of(MmType::kF16));
}

TEST_P(PluggedInt4, HalvesStayHalves) {
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 5);
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  EXPECT_LT(computed(weights, b.view), bound_of(MmType::kF16));
}

TEST_P(PluggedInt4, ANodeMayWantFinerActivations) {
  abi::Tensor few = fake_tensor(kFakeFewBits, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
  abi::Tensor node = fake_product(few, activations);
  EXPECT_TRUE(supported(node));
  node.op_params[3] = abi::kPrecisionInt4;
  EXPECT_TRUE(supported(node));
  node.op_params[3] = abi::kPrecisionInt8;
  EXPECT_EQ(supported(node), GetParam() == MmType::kW4A8);
  node.op_params[3] = abi::kPrecisionF16;
  EXPECT_FALSE(supported(node));
}

INSTANTIATE_TEST_SUITE_P(Forms, PluggedInt4, testing::Values(MmType::kW4A8, MmType::kW4A4));

/// Run by ggml_tests_int4 in processes that were started so.
TEST_F(Plugged, AtTheStartTheLibrarySaysHowInt4IsMultiplied) {
  switch (plugin().options.type) {
    case TypePolicy::kInt4:
      EXPECT_EQ(plugin().few_bits, MmType::kW4A8);
      EXPECT_THAT(fake_log(), Contains(HasSubstr("become int4, multiplied with int8")));
      return;
    case TypePolicy::kInt4x4:
      EXPECT_EQ(plugin().few_bits, MmType::kW4A4);
      EXPECT_THAT(fake_log(), Contains(HasSubstr("become int4, multiplied with int4")));
      return;
    default:
      EXPECT_EQ(plugin().few_bits, MmType::kInt8);
      EXPECT_THAT(fake_log(), testing::Not(Contains(HasSubstr("int4, multiplied"))));
  }
}

}  // namespace
}  // namespace corelane::ggml
