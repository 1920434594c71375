#include "drivers/virtual/ort/ort_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace corelane::drivers::virtual_npu::ort {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

/// A line as the engine writes it.
std::string node(const std::string& name, const std::string& op, int begin, int length,
                 const std::string& type = "float") {
  return "{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :1,\"dur\" :" + std::to_string(length) +
         ",\"ts\" :" + std::to_string(begin) + ",\"ph\" : \"X\",\"name\" :\"" + name +
         "_kernel_time\",\"args\" : {\"provider\" : \"CPUExecutionProvider\"," +
         "\"output_type_shape\" : [{\"" + type + "\":[3,64]}],\"op_name\" : \"" + op + "\"}},\n";
}

std::string run(int begin, int length) {
  return "{\"cat\" : \"Session\",\"pid\" :1,\"tid\" :1,\"dur\" :" + std::to_string(length) +
         ",\"ts\" :" + std::to_string(begin) +
         ",\"ph\" : \"X\",\"name\" :\"model_run\",\"args\" : {}},\n";
}

TEST(OrtProfile, TheLastRunCounts) {
  const std::string text = "[\n" + node("a", "MatMul", 10, 900) + run(5, 920) +
                           node("a", "MatMul", 1000, 7) + node("b", "ArgMax", 1010, 2, "int64") +
                           run(990, 30) + "]\n";
  const auto layers = read_ort_profile(text, 2);
  ASSERT_TRUE(layers) << layers.error().to_string();
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_EQ((*layers)[0].name, "a");
  EXPECT_EQ((*layers)[0].type, "MatMul");
  EXPECT_EQ((*layers)[0].kernel, "CPUExecutionProvider");
  EXPECT_EQ((*layers)[0].dtype, DType::kF32);
  EXPECT_EQ((*layers)[0].duration, microseconds(7));
  EXPECT_EQ((*layers)[1].name, "b");
  EXPECT_EQ((*layers)[1].dtype, DType::kI64);
}

TEST(OrtProfile, NodesWithinANodeArePartOfIt) {
  const std::string text = node("before", "Add", 1, 3) + node("body", "Mul", 11, 4) +
                           node("body", "Mul", 16, 4) + node("loop", "Loop", 10, 12) +
                           node("after", "Add", 25, 1) + run(0, 40);
  const auto layers = read_ort_profile(text, 1);
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->size(), 3U);
  EXPECT_EQ((*layers)[0].name, "before");
  EXPECT_EQ((*layers)[1].name, "loop");
  EXPECT_EQ((*layers)[2].name, "after");
}

TEST(OrtProfile, NamesMayHoldQuotes) {
  const std::string name = R"(a \"name\" :\"model_run\",\"ts\" :9,)";
  const auto layers = read_ort_profile(node(name, "Add", 1, 3) + run(0, 9), 1);
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->size(), 1U);
  EXPECT_EQ(layers->front().name, R"(a "name" :"model_run","ts" :9,)");
  EXPECT_EQ(layers->front().duration, microseconds(3));
}

TEST(OrtProfile, AProfileWithoutARunIsAFailure) {
  for (const std::string& text : {std::string(), std::string("[\n]\n"), node("a", "Add", 1, 2)}) {
    const auto layers = read_ort_profile(text, 1);
    ASSERT_FALSE(layers);
    EXPECT_EQ(layers.error().code(), Code::kEngineFailed);
    EXPECT_THAT(layers.error().message(), HasSubstr("does not hold the last run"));
  }
}

/// The engine drops what comes after a million events: the times would be those of an earlier run.
TEST(OrtProfile, ALastRunThatIsMissingIsAFailure) {
  const std::string text = node("a", "Loop", 1, 3) + run(0, 9) + node("body", "Mul", 11, 4);
  EXPECT_TRUE(read_ort_profile(text, 1));
  const auto layers = read_ort_profile(text, 2);
  ASSERT_FALSE(layers);
  EXPECT_EQ(layers.error().code(), Code::kEngineFailed);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
