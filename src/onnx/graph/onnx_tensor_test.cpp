#include "onnx/graph/onnx_tensor.h"

#include <gtest/gtest.h>

#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

TEST(OnnxTensor, MakingItRawFreesTheTypedValues) {
  T tensor;
  tensor.set_data_type(T::INT8);
  tensor.add_dims(1023);
  for (int i = 0; i < 1023; ++i) tensor.add_int32_data(1);
  ASSERT_TRUE(check_tensor(tensor, "the test").ok());
  make_raw(tensor);
  EXPECT_EQ(tensor.raw_data(), std::string(1023, '\1'));
  EXPECT_EQ(tensor.int32_data().Capacity(), 0);
}

TEST(OnnxFacts, ValuesAreKeptOfTheSmallestConstantsOnly) {
  const auto learned = [](std::int32_t type, std::int64_t elements) {
    FactsTable facts;
    facts.learn("c",
                make_values("c", type, {elements},
                            std::vector<double>(static_cast<std::size_t>(elements), 1)),
                {});
    EXPECT_EQ(facts.of("c").shape, Shape{elements});
    return facts.of("c");
  };
  EXPECT_TRUE(learned(T::INT64, 64).known_ints());
  EXPECT_TRUE(learned(T::INT32, 64).known_ints());
  EXPECT_FALSE(learned(T::INT64, 65).ints);
  EXPECT_TRUE(learned(T::INT8, 8).known_ints());
  EXPECT_FALSE(learned(T::INT8, 9).ints);
  EXPECT_TRUE(learned(T::FLOAT, 64).floats);
  EXPECT_FALSE(learned(T::FLOAT, 65).floats);
}

}  // namespace
}  // namespace corelane::onnx
