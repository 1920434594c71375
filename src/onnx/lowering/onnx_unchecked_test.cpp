#include "onnx/lowering/onnx_unchecked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

/// y = GatherND(x, i); what `make` adds makes i of the input "n".
template <class Make>
std::string reason(const Make& make) {
  TestModel m;
  m.input("x", {4, 4}).input("n", {2, 1}, T::INT64).open_output("y");
  make(m);
  m.node("GatherND", {"x", "i"}, {"y"}).set_name("g");
  const auto found = unchecked_values(m.graph());
  return found ? found->node + " (" + found->op + ")" : "";
}

TEST(UncheckedValues, PlacesThatComeWithARunAreNamed) {
  EXPECT_EQ(reason([](TestModel& m) { m.node("Identity", {"n"}, {"i"}); }), "g (GatherND)");
  EXPECT_EQ(reason([](TestModel& m) { m.node("Add", {"n", "n"}, {"i"}); }), "g (GatherND)");
  EXPECT_EQ(reason([](TestModel& m) {
              m.node("ReduceMax", {"x"}, {"r"});
              m.node("Cast", {"r"}, {"i"});
            }),
            "g (GatherND)");
}

TEST(UncheckedValues, PlacesThatTheNetworkMakesAreTrusted) {
  EXPECT_EQ(reason([](TestModel& m) {
              m.ints("k", {1});
              m.node("TopK", {"x", "k"}, {"v", "i"});
            }),
            "");
  EXPECT_EQ(reason([](TestModel& m) { m.node("Shape", {"n"}, {"i"}); }), "");
  EXPECT_EQ(reason([](TestModel& m) {
              m.node("NonZero", {"n"}, {"t"});
              m.node("Transpose", {"t"}, {"i"});
            }),
            "");
  EXPECT_EQ(reason([](TestModel& m) {
              m.ints("low", {0}).ints("high", {3});
              m.node("Clip", {"n", "low", "high"}, {"i"});
            }),
            "");
  EXPECT_EQ(reason([](TestModel& m) {
              m.ints("a", {0}).ints("b", {1});
              m.node("Greater", {"n", "a"}, {"c"});
              m.node("Where", {"c", "a", "b"}, {"i"});
            }),
            "");
}

TEST(UncheckedValues, GraphsInsideSeeTheValuesAroundThem) {
  TestModel body;
  body.input("it", {}, T::INT64).input("c", {}, T::BOOL).input("s", {1, 1}, T::INT64);
  body.output("go", {}, T::BOOL).open_output("t", T::INT64).open_output("z");
  body.node("Identity", {"c"}, {"go"});
  body.node("Add", {"s", "n"}, {"t"});
  body.node("GatherND", {"x", "s"}, {"z"}).set_name("inner");
  TestModel m;
  m.input("x", {4}).input("n", {1, 1}, T::INT64).ints("zero", {0}).open_output("y");
  set_graph(m.node("Loop", {"", "", "zero"}, {"last", "y"}), "body", body);
  const auto found = unchecked_values(m.graph());
  ASSERT_TRUE(found) << "the second round reads what the first one has added";
  EXPECT_EQ(found->node, "inner");
}

/// Issue 18: OpenVINO crashed over an empty constant whose axes came with the run.
TEST(UncheckedValues, AxesOfAReductionOfAConstantAreNamed) {
  for (const bool constant : {true, false}) {
    TestModel m;
    m.input("axes", {1}, T::INT64).open_output("y");
    if (constant)
      m.floats("x", {2, 0}, {});
    else
      m.input("x", {2, 0});
    m.node("ReduceL2", {"x", "axes"}, {"y"}).set_name("r");
    EXPECT_EQ(unchecked_values(m.graph()).has_value(), constant);
  }
}

TEST(UncheckedValues, SuchANetworkIsUnfit) {
  TestModel m;
  m.input("x", {4, 4}).input("i", {2, 4}, T::INT64).input("u", {2, 4}).open_output("y");
  m.node("ScatterElements", {"x", "i", "u"}, {"y"}).set_name("s");
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->lowered[0].unfit,
              ::testing::StartsWith("node s (ScatterElements): input 1"));
}

}  // namespace
}  // namespace corelane::onnx
