#include "drivers/virtual/ort/ort_quotients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "drivers/virtual/common/onnx_node.h"
#include "drivers/virtual/ort/ort_engine.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::ElementsAreArray;

constexpr std::int64_t kFloat = 1;
constexpr std::int64_t kInt32 = 6;
constexpr std::int64_t kInt64 = 7;

PatchedModel guarded(const std::string& model) {
  device::Image image;
  image.bytes = as_byte_span(model);
  PatchedModel patched = patch_onnx(image, {}, PatchFor::kOnnxRuntime).value();
  EXPECT_TRUE(guard_quotients(patched).ok());
  return patched;
}

bool is_guarded(const NetworkBuilder& network) {
  return guarded(network.bytes()).bytes.find("corelane:quotient") != std::string::npos;
}

std::string int64_bytes(std::int64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

NetworkBuilder quotient(std::string_view op, std::int64_t type) {
  return NetworkBuilder()
      .input("a", {6}, type)
      .input("b", {6}, type)
      .node(op, {"a", "b"}, {"y"}, "quotient")
      .output("y", {6}, type);
}

/// Each was SIGFPE (issue 18). Expected: numpy's.
template <class T>
void check_results(std::string_view op, std::int64_t type, const std::vector<T>& expected) {
  constexpr T kLowest = std::numeric_limits<T>::min();
  std::vector<T> a = {kLowest, kLowest, 7, -7, 7, kLowest + 1};
  std::vector<T> b = {-1, 2, -1, -1, -2, -1};
  std::vector<T> y(6);
  const std::string network = quotient(op, type).bytes();
  const auto program = make_ort_engine(1)->prepare(onnx_image(network), {});
  ASSERT_TRUE(program) << program.error().to_string();
  const auto request = (*program)->new_request(1, 0);
  ASSERT_TRUE(request);
  ASSERT_TRUE((*request)->set_input(0, tensor_ref(a, {6})).ok());
  ASSERT_TRUE((*request)->set_input(1, tensor_ref(b, {6})).ok());
  ASSERT_TRUE((*request)->set_output(0, tensor_ref(y, {6})).ok());
  const Status ran = (*request)->run(1);
  ASSERT_TRUE(ran.ok()) << ran.to_string();
  EXPECT_THAT(y, ElementsAreArray(expected));
}

TEST(OrtQuotients, TheSmallestIntegerByMinusOneIsItself) {
  constexpr auto kLowest32 = std::numeric_limits<std::int32_t>::min();
  constexpr auto kLowest64 = std::numeric_limits<std::int64_t>::min();
  check_results<std::int32_t>("Div", kInt32,
                              {kLowest32, kLowest32 / 2, -7, 7, -3, -(kLowest32 + 1)});
  check_results<std::int64_t>("Div", kInt64,
                              {kLowest64, kLowest64 / 2, -7, 7, -3, -(kLowest64 + 1)});
  check_results<std::int32_t>("Mod", kInt32, {0, 0, 0, 0, -1, 0});
  check_results<std::int64_t>("Mod", kInt64, {0, 0, 0, 0, -1, 0});
}

TEST(OrtQuotients, ConstantsAreDividedWhileTheNetworkIsLoaded) {
  const std::string network =
      NetworkBuilder()
          .input("x", {1}, kInt64)
          .constant("a", {1}, kInt64, int64_bytes(std::numeric_limits<std::int64_t>::min()))
          .constant("b", {1}, kInt64, int64_bytes(-1))
          .node("Div", {"a", "b"}, {"q"})
          .node("Add", {"x", "q"}, {"y"})
          .output("y", {1}, kInt64)
          .bytes();
  EXPECT_TRUE(make_ort_engine(1)->prepare(onnx_image(network), {}));
}

TEST(OrtQuotients, FloatsAndConstantDivisorsStay) {
  EXPECT_TRUE(is_guarded(quotient("Div", kInt64)));
  EXPECT_FALSE(is_guarded(quotient("Div", kFloat)));
  const auto by_constant = [](std::int64_t divisor) {
    return NetworkBuilder()
        .input("a", {6}, kInt64)
        .constant("b", {1}, kInt64, int64_bytes(divisor))
        .node("Div", {"a", "b"}, {"y"})
        .output("y", {6}, kInt64);
  };
  EXPECT_FALSE(is_guarded(by_constant(2)));
  EXPECT_TRUE(is_guarded(by_constant(-1)));
}

/// The attribute was lost: the rest had the sign of the divisor.
TEST(OrtQuotients, TheRestOfADividendKeepsItsSign) {
  const std::string network =
      NetworkBuilder()
          .input("a", {2}, kInt64)
          .input("b", {2}, kInt64)
          .node("Mod", {"a", "b"}, {"y"}, "rest", {NetworkBuilder::int_attribute("fmod", 1)})
          .output("y", {2}, kInt64)
          .bytes();
  const auto program = make_ort_engine(1)->prepare(onnx_image(network), {});
  ASSERT_TRUE(program) << program.error().to_string();
  const auto request = (*program)->new_request(1, 0);
  std::vector<std::int64_t> a{-7, 7}, b{3, -3}, y(2);
  ASSERT_TRUE((*request)->set_input(0, tensor_ref(a, {2})).ok());
  ASSERT_TRUE((*request)->set_input(1, tensor_ref(b, {2})).ok());
  ASSERT_TRUE((*request)->set_output(0, tensor_ref(y, {2})).ok());
  ASSERT_TRUE((*request)->run(1).ok());
  EXPECT_THAT(y, ElementsAreArray({-1, 1}));
}

TEST(OrtQuotients, IntegersOfConstantsAreRead) {
  const auto by = [](std::int64_t number) {
    return NetworkBuilder()
        .input("a", {6}, kInt64)
        .node("Constant", {}, {"b"}, "number", {NetworkBuilder::int_attribute("value_int", number)})
        .node("Div", {"a", "b"}, {"y"})
        .output("y", {6}, kInt64);
  };
  EXPECT_FALSE(is_guarded(by(2)));
  EXPECT_TRUE(is_guarded(by(-1)));
}

TEST(OrtQuotients, TypesFollowFromNodesBefore) {
  const auto through = [](std::int64_t to) {
    return NetworkBuilder()
        .input("a", {6})
        .node("Cast", {"a"}, {"c"}, "cast", {NetworkBuilder::int_attribute("to", to)})
        .node("Neg", {"c"}, {"n"})
        .node("Mod", {"n", "c"}, {"m"})
        .node("Cast", {"m"}, {"y"}, "back", {NetworkBuilder::int_attribute("to", kFloat)})
        .output("y", {6});
  };
  EXPECT_TRUE(is_guarded(through(kInt32)));
  EXPECT_FALSE(is_guarded(through(kFloat)));
}

/// Each ended the process.
TEST(OrtQuotients, TypesFollowThroughSequencesOptionalsAndLabels) {
  using Nodes = std::function<void(NetworkBuilder&, const std::string&, const std::string&)>;
  const std::map<std::string, Nodes> between = {
      {"SequenceAt",
       [](NetworkBuilder& n, const std::string& from, const std::string& to) {
         n.node("SequenceConstruct", {from}, {to + "s"});
         n.node("SequenceAt", {to + "s", "zero"}, {to});
       }},
      {"ConcatFromSequence",
       [](NetworkBuilder& n, const std::string& from, const std::string& to) {
         n.node("SequenceEmpty", {}, {to + "e"}, {}, {make_integer_attribute("dtype", kInt64)});
         n.node("SequenceInsert", {to + "e", from}, {to + "s"});
         n.node("ConcatFromSequence", {to + "s"}, {to}, {}, {make_integer_attribute("axis", 0)});
       }},
      {"CenterCropPad",
       [](NetworkBuilder& n, const std::string& from, const std::string& to) {
         n.node("CenterCropPad", {from, "size"}, {to});
       }},
      {"OptionalGetElement",
       [](NetworkBuilder& n, const std::string& from, const std::string& to) {
         n.node("Optional", {from}, {to + "o"}).node("OptionalGetElement", {to + "o"}, {to});
       }},
      {"LabelEncoder", [](NetworkBuilder& n, const std::string& from, const std::string& to) {
         n.node("LabelEncoder", {from}, {to}, {},
                {NetworkBuilder::ints_attribute("keys_int64s", {1}),
                 NetworkBuilder::ints_attribute("values_int64s", {-1})},
                "ai.onnx.ml");
       }}};
  for (const auto& [name, write] : between) {
    for (const char* op : {"Div", "Mod"}) {
      NetworkBuilder network;
      network.input("a", {1}, kInt64)
          .input("b", {1}, kInt64)
          .constant("zero", {}, kInt64, int64_bytes(0))
          .constant("size", {1}, kInt64, int64_bytes(1));
      write(network, "a", "p");
      write(network, "b", "q");
      network.node(op, {"p", "q"}, {"r"})
          .node("Cast", {"r"}, {"y"}, {}, {make_integer_attribute("to", kFloat)})
          .output("y", {1}, kFloat);
      EXPECT_TRUE(is_guarded(network)) << name << " " << op;
    }
  }
}

TEST(OrtQuotients, TheDeclaredTypeOfTheResultIsEnough) {
  const auto of_unknown = [](std::int64_t type) {
    return NetworkBuilder()
        .input("a", {1}, type)
        .node("Unheard", {"a"}, {"p"}, {}, {}, "my")
        .node("Div", {"p", "p"}, {"y"})
        .output("y", {1}, type);
  };
  EXPECT_TRUE(is_guarded(of_unknown(kInt64)));
  EXPECT_FALSE(is_guarded(of_unknown(kFloat)));
}

TEST(OrtQuotients, ADivisionByZeroNamesItsNode) {
  const std::string network = NetworkBuilder()
                                  .input("a", {1}, kInt64)
                                  .input("b", {1}, kInt64)
                                  .node("Div", {"a", "b"}, {"y"}, "share")
                                  .output("y", {1}, kInt64)
                                  .bytes();
  const auto program = make_ort_engine(1)->prepare(onnx_image(network), {});
  ASSERT_TRUE(program) << program.error().to_string();
  const auto request = (*program)->new_request(1, 0);
  std::vector<std::int64_t> a{5}, b{0};
  ASSERT_TRUE((*request)->set_input(0, tensor_ref(a, {1})).ok());
  ASSERT_TRUE((*request)->set_input(1, tensor_ref(b, {1})).ok());
  EXPECT_EQ((*request)->run(1).detail(Detail::kNode), "share");
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
