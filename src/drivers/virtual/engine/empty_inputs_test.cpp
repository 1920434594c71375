#include "drivers/virtual/engine/empty_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/virtual/test_programs.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<bool> fine_of(const NetworkBuilder& network) {
  const auto patched = patch_onnx(onnx_image(network.bytes()), {});
  EXPECT_TRUE(patched) << patched.error().to_string();
  return inputs_that_may_be_empty(*patched).value();
}

NetworkBuilder two_inputs() {
  NetworkBuilder network;
  network.input("past", {-1, 2}).input("x", {-1, 2}).output("y", {-1, 2});
  return network;
}

TEST(EmptyInputs, WhatIsJoinedOrMeasuredMayBeEmpty) {
  EXPECT_THAT(fine_of(two_inputs()
                          .node("Shape", {"past"}, {"sizes"})
                          .node("Identity", {"past"}, {"same"})
                          .node("Relu", {"x"}, {"h"})
                          .node("Concat", {"same", "h"}, {"all"}, {},
                                {NetworkBuilder::int_attribute("axis", 0)})
                          .node("Relu", {"all"}, {"y"})),
              ElementsAre(true, false));
}

TEST(EmptyInputs, WhatIsJoinedToNothingElseMayNot) {
  EXPECT_THAT(fine_of(two_inputs()
                          .node("Concat", {"past", "x"}, {"all"}, {},
                                {NetworkBuilder::int_attribute("axis", 0)})
                          .node("Relu", {"all"}, {"y"})),
              ElementsAre(false, false));
}

TEST(EmptyInputs, NodesWithinANodeReadThem) {
  NetworkBuilder branch;
  branch.node("Neg", {"past"}, {"n"}).output("n", {-1, 2});
  NetworkBuilder passed;
  passed.node("Identity", {"x"}, {"p"}).output("p", {-1, 2});
  NetworkBuilder network = two_inputs();
  network.input("c", {}, 9)
      .node("If", {"c"}, {"y"}, {},
            {branch.graph_attribute("then_branch"), passed.graph_attribute("else_branch")});
  EXPECT_THAT(fine_of(network), ElementsAre(false, false, false));
}

/// Its numbers were those of the run before, or bytes that nobody wrote.
TEST(EmptyInputs, ARunOfNothingIsRefusedByNameAndTheNextIsRight) {
  const auto program = prepare(onnx_image(NetworkBuilder()
                                              .input("x", {-1, -1})
                                              .node("ArgMax", {"x"}, {"y"}, "place",
                                                    {NetworkBuilder::int_attribute("axis", 1),
                                                     NetworkBuilder::int_attribute("keepdims", 0)})
                                              .output("y", {-1}, kOnnxInt64)
                                              .bytes()));
  ASSERT_TRUE(program);
  const auto r = request(*program);
  std::vector<float> x = {1, 9, 2, 3};
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(r->set_input(0, {x.data(), 0, Shape{2, 0}, nullptr}).ok());
    for (int again = 0; again < 2; ++again) {
      const Status status = r->run(1);
      EXPECT_EQ(status.code(), Code::kOutOfRange);
      EXPECT_EQ(status.detail(Detail::kInput), "x");
      EXPECT_THAT(status.message(), HasSubstr("'x' has no elements ([2, 0])"));
    }
    ASSERT_TRUE(r->set_input(0, tensor_ref(x, {2, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    const auto* places = static_cast<const std::int64_t*>(r->output(0)->data);
    EXPECT_THAT(std::vector<std::int64_t>(places, places + 2), ElementsAre(1, 1));
  }
}

/// As the first step of a decoder has nothing kept yet.
TEST(EmptyInputs, NothingJoinedToSomethingIsThat) {
  const auto program = prepare(onnx_image(
      two_inputs()
          .node("Relu", {"x"}, {"h"})
          .node("Concat", {"past", "h"}, {"y"}, {}, {NetworkBuilder::int_attribute("axis", 0)})
          .bytes()));
  ASSERT_TRUE(program);
  const auto r = request(*program);
  std::vector<float> x = {1, 2};
  std::vector<float> past = {5, 6};
  for (int round = 0; round < 3; ++round) {
    x[0] = static_cast<float>(round);
    ASSERT_TRUE(r->set_input(0, {past.data(), 0, Shape{0, 2}, nullptr}).ok());
    ASSERT_TRUE(r->set_input(1, tensor_ref(x, {1, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(static_cast<float>(round), 2));
    ASSERT_TRUE(r->set_input(0, tensor_ref(past, {1, 2})).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_THAT(floats_of(*r, 0), ElementsAre(5, 6, static_cast<float>(round), 2));
  }
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
