#include "onnx/lowering/onnx_exactness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using T = ::onnx::TensorProto;

std::string verdict(const TestModel& m) {
  const auto imported = m.import();
  return imported ? imported->lowered[0].unfit : imported.error().to_string();
}

/// y = op(a, b), of one type in and one out.
std::string verdict(const char* op, std::int32_t type, std::int32_t out) {
  TestModel m(18);
  m.input("a", {4}, type).input("b", {4}, type).open_output("y", out);
  m.node(op, {"a", "b"}, {"y"});
  return verdict(m);
}

TEST(OnnxExactness, ArithmeticInFloat64IsUnfit) {
  EXPECT_EQ(verdict("Add", T::DOUBLE, T::DOUBLE),
            "node node_Add1 (Add): float64 is computed in float32 by the engine");
  EXPECT_THAT(verdict("Less", T::DOUBLE, T::BOOL), HasSubstr("float64"));
  TestModel m;
  m.input("x", {4}, T::DOUBLE).open_output("y");
  set_attribute(m.node("Cast", {"x"}, {"y"}), "to", std::int64_t{T::FLOAT});
  EXPECT_THAT(verdict(m), HasSubstr("float64")) << "infinity";
}

TEST(OnnxExactness, Float64OfShapesAloneIsFit) {
  // As exporters write the scales of a Resize.
  TestModel m;
  m.input("x", {"n", 4}).open_output("y").typed("half", T::DOUBLE, {}, {0.5});
  m.node("Shape", {"x"}, {"shape"});
  set_attribute(m.node("Cast", {"shape"}, {"d"}), "to", std::int64_t{T::DOUBLE});
  m.node("Mul", {"d", "half"}, {"h"});
  m.node("Floor", {"h"}, {"f"});
  set_attribute(m.node("Cast", {"f"}, {"i"}), "to", std::int64_t{T::INT64});
  m.node("ConstantOfShape", {"i"}, {"y"});
  EXPECT_EQ(verdict(m), "");
}

TEST(OnnxExactness, Float64ThatIsMadeOfFloat32HasItsRounding) {
  TestModel m;
  m.input("x", {4}).open_output("y", T::DOUBLE).typed("c", T::DOUBLE, {}, {0.1});
  set_attribute(m.node("Cast", {"x"}, {"d"}), "to", std::int64_t{T::DOUBLE});
  m.node("Softmax", {"d"}, {"s"});
  m.node("Mul", {"s", "c"}, {"y"});
  EXPECT_EQ(verdict(m), "");
  TestModel bare;
  bare.input("x", {4}).open_output("y", T::DOUBLE);
  set_attribute(bare.node("Cast", {"x"}, {"y"}), "to", std::int64_t{T::DOUBLE});
  EXPECT_THAT(verdict(bare), HasSubstr("infinity"));
  TestModel time;
  time.input("x", {4}, T::INT64).open_output("y", T::DOUBLE).typed("c", T::DOUBLE, {}, {0.1});
  set_attribute(time.node("Cast", {"x"}, {"d"}), "to", std::int64_t{T::DOUBLE});
  time.node("Mul", {"d", "c"}, {"y"});
  EXPECT_THAT(verdict(time), HasSubstr("float64 is computed"));
}

TEST(OnnxExactness, WideIntegersThatComeOutAgainAreUnfit) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max"})
    for (const std::int32_t type : {T::INT64, T::UINT64})
      EXPECT_THAT(verdict(op, type, type), StartsWith("output y (output): 64-bit")) << op;
  EXPECT_EQ(verdict("Add", T::INT32, T::INT32), "") << "wraps as it should";
  EXPECT_THAT(verdict("Div", T::INT32, T::INT32), HasSubstr("2^24"));
  EXPECT_THAT(verdict("Max", T::UINT32, T::UINT32), HasSubstr("2^31"));
  EXPECT_EQ(verdict("Mul", T::UINT32, T::UINT32), "") << "wraps as it should";
  EXPECT_THAT(verdict("Less", T::INT64, T::BOOL), HasSubstr("compares integers"));
  EXPECT_THAT(verdict("Mod", T::INT64, T::INT64), HasSubstr("divides integers"));
}

TEST(OnnxExactness, WideIntegersThatAreOnlyPassedOnAreUnfit) {
  TestModel m;
  m.input("x", {4}, T::INT64).input("i", {2}, T::INT64).open_output("y", T::INT64);
  m.node("Gather", {"x", "i"}, {"y"});
  EXPECT_THAT(verdict(m), HasSubstr("64-bit integers"));
}

TEST(OnnxExactness, IntegersOfTextModelsAreFit) {
  // Token ids, a mask that makes positions, ids that are compared, and handed back.
  TestModel m;
  m.input("ids", {"n", "t"}, T::INT64).input("mask", {"n", "t"}, T::INT64).open_output("y");
  m.open_output("same", T::INT64).open_output("at", T::INT64);
  m.floats("table", {9, 2}, std::vector<double>(18, 0.5)).ints("axis", {1}).ints("one", {1});
  m.node("Gather", {"table", "ids"}, {"embedded"});
  m.node("CumSum", {"mask", "axis"}, {"count"});
  m.node("Mul", {"count", "mask"}, {"kept"});
  m.node("Add", {"kept", "one"}, {"at"});
  m.node("Gather", {"table", "at"}, {"positions"});
  m.node("Add", {"embedded", "positions"}, {"y"});
  m.node("Equal", {"ids", "one"}, {"pad"});
  m.node("Where", {"pad", "one", "ids"}, {"same"});
  EXPECT_EQ(verdict(m), "");
}

TEST(OnnxExactness, LengthsThatMakeAMaskAndComeOutAreFit) {
  TestModel m;
  m.input("x", {"n", "t", 4}).input("lengths", {"n"}, T::INT64);
  m.open_output("y").open_output("halves", T::INT64);
  m.ints("one", {1}).ints("two", {2}).ints("last", {1}).ints("steps", {0, 1, 2, 3});
  m.node("Add", {"lengths", "one"}, {"more"});
  m.node("Div", {"more", "two"}, {"halves"});
  m.node("Unsqueeze", {"halves", "last"}, {"wide"});
  m.node("Less", {"steps", "wide"}, {"b"});
  set_attribute(m.node("Cast", {"b"}, {"y"}), "to", std::int64_t{T::FLOAT});
  EXPECT_EQ(verdict(m), "");
}

TEST(OnnxExactness, IndicesThatTheNetworkMakesAreFit) {
  TestModel m;
  m.input("x", {"n", 4}).open_output("best", T::INT64).open_output("rest", T::INT64);
  m.ints("k", {2}).ints("three", {3}).open_output("values");
  m.node("ArgMax", {"x"}, {"best"});
  m.node("TopK", {"x", "k"}, {"values", "places"});
  m.node("Mod", {"places", "three"}, {"rest"});
  EXPECT_EQ(verdict(m), "");
}

TEST(OnnxExactness, ConstantsBeyond32BitsAreUnfitInSumsButNotAsTheEndsOfASlice) {
  const auto with = [](const char* op, std::int64_t value) {
    TestModel m(18);
    m.input("x", {9}).open_output("y").ints("c", {value}).ints("zero", {0});
    m.node("ArgMax", {"x"}, {"best"});
    if (std::string_view(op) == "Slice")
      m.node(op, {"x", "zero", "c"}, {"y"});
    else
      m.node(op, {"best", "c"}, {"i"}), m.node("Gather", {"x", "i"}, {"y"});
    return verdict(m);
  };
  const std::int64_t large = std::int64_t{1} << 33;
  EXPECT_THAT(with("Add", large), HasSubstr("cuts a constant"));
  EXPECT_EQ(with("Add", 5), "");
  EXPECT_EQ(with("Min", large), "") << "bounds are cut to the same effect";
  EXPECT_EQ(with("Slice", std::numeric_limits<std::int64_t>::max()), "");
}

TEST(OnnxExactness, EndsOfASliceThatComeAsAnInputAreUnfit) {
  const auto sliced = [](bool computed) {
    TestModel m;
    m.input("x", {9}).input("end", {1}, T::INT64).open_output("y").ints("zero", {0});
    if (computed) m.node("Add", {"end", "zero"}, {"e"});
    m.node("Slice", {"x", "zero", computed ? "e" : "end"}, {"y"});
    return verdict(m);
  };
  EXPECT_THAT(sliced(false), HasSubstr("INT64_MAX"));
  EXPECT_EQ(sliced(true), "");
}

TEST(OnnxExactness, BytesThatWrapAroundAreUnfit) {
  for (const char* op : {"Add", "Sub", "Mul"})
    for (const std::int32_t type : {T::INT8, T::UINT8})
      EXPECT_THAT(verdict(op, type, type), HasSubstr("saturate")) << op;
  EXPECT_EQ(verdict("Max", T::UINT8, T::UINT8), "");
  EXPECT_EQ(verdict("Add", T::INT16, T::INT16), "");
}

TEST(OnnxExactness, QuantizationTo16BitsIsUnfitAndReadingThemIsNot) {
  for (const std::int32_t type : {T::UINT8, T::UINT16, T::INT16}) {
    TestModel m(21);
    m.input("x", {4}).open_output("q", type).floats("s", {}, {0.5}).typed("z", type, {}, {0});
    m.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    EXPECT_EQ(verdict(m).empty(), type == T::UINT8);
    TestModel read(21);
    read.input("q", {4}, type).open_output("y").floats("s", {}, {0.5}).typed("z", type, {}, {0});
    read.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    EXPECT_EQ(verdict(read), "");
  }
}

TEST(OnnxExactness, RoundingThroughFloat16IsUnfitAndANetworkInFloat16IsNot) {
  const auto through = [](bool math) {
    TestModel m;
    m.input("x", {4}).open_output("y");
    set_attribute(m.node("Cast", {"x"}, {"h"}), "to", std::int64_t{T::FLOAT16});
    if (math) m.node("Relu", {"h"}, {"r"});
    set_attribute(m.node("Cast", {math ? "r" : "h"}, {"y"}), "to", std::int64_t{T::FLOAT});
    return verdict(m);
  };
  EXPECT_THAT(through(false), HasSubstr("float16 and back"));
  EXPECT_EQ(through(true), "");
}

/// Seen with OpenVINO 2026.4.1 on a processor with AVX2 alone. ONNX Runtime has few operators of
/// bfloat16: a network in it stays with the engine.
TEST(OnnxExactness, ACastToBfloat16IsUnfitAndANetworkInBfloat16IsNot) {
  const auto network = [](const char* op) {
    TestModel m;
    m.input("x", {4}).open_output("y", T::BFLOAT16);
    set_attribute(m.node("Cast", {"x"}, {op == nullptr ? "y" : "h"}), "to",
                  std::int64_t{T::BFLOAT16});
    if (op != nullptr) m.node(op, {"h"}, {"y"});
    return verdict(m);
  };
  EXPECT_EQ(network(nullptr),
            "node node_Cast1 (Cast): the engine does not round to the nearest bfloat16 on some "
            "processors");
  EXPECT_EQ(network("Relu"), "");
  EXPECT_EQ(network("Identity"), "");
  TestModel back;
  back.input("x", {4}, T::BFLOAT16).open_output("y");
  set_attribute(back.node("Cast", {"x"}, {"y"}), "to", std::int64_t{T::FLOAT});
  EXPECT_EQ(verdict(back), "");
}

TEST(OnnxExactness, InnerGraphsAreLookedAtWithTheValuesAroundThem) {
  TestModel body;
  body.input("i", {}, T::INT64).input("c", {}, T::BOOL).output("go", {}, T::BOOL);
  body.open_output("s", T::DOUBLE);
  body.node("Identity", {"c"}, {"go"});
  body.node("Add", {"x", "x"}, {"s"});
  TestModel m;
  m.input("x", {4}, T::DOUBLE).typed("n", T::INT64, {}, {3}).open_output("y", T::DOUBLE);
  set_graph(m.node("Loop", {"n", ""}, {"y"}), "body", body);
  EXPECT_THAT(verdict(m), HasSubstr("node_Add2 (Add): float64"));
}

TEST(OnnxExactness, OneWarningOfAKindIsEnough) {
  TestModel m;
  m.input("x", {4}, T::DOUBLE).open_output("y", T::DOUBLE);
  m.node("Abs", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"y"});
  const auto imported = m.import();
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->description.findings.size(), 1U);
  EXPECT_EQ(imported->description.findings[0].op, "Abs");
}

TEST(OnnxExactness, FamiliesJoinAndStayBounded) {
  IntegerFamilies families;
  const int a = families.add();
  const int b = families.add();
  const int c = families.add();
  families.mark_bounded(b);
  EXPECT_EQ(families.join(-1, c), c);
  EXPECT_FALSE(families.is_bounded(a));
  const int both = families.join(a, b);
  EXPECT_TRUE(families.is_bounded(both));
  EXPECT_TRUE(families.is_bounded(a));
  EXPECT_FALSE(families.is_bounded(c));
  families.mark_bounded(-1);
  EXPECT_TRUE(families.is_bounded(families.join(c, b)));
}

}  // namespace
}  // namespace corelane::onnx
