#include "corelane/onnx/onnx_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Cuts = std::vector<std::vector<std::string>>;

/// x -> Relu a -> Neg b -> Abs c -> Add(c, a) d -> y, with `a` over the middle.
TestModel skipping() {
  TestModel m;
  m.input("x", {1, 4}).output("y", {1, 4});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"b"});
  m.node("Abs", {"b"}, {"c"});
  m.node("Add", {"c", "a"}, {"d"});
  m.node("Sigmoid", {"d"}, {"y"});
  return m;
}

struct Chain {
  ImportedModel whole;
  std::vector<ImportedModel> parts;
};

Result<Chain> cut(const TestModel& model, const Cuts& cuts, const ImportOptions& options = {}) {
  Chain chain;
  CORELANE_ASSIGN(chain.whole, model.import(options));
  CORELANE_ASSIGN(chain.parts, cut_network(chain.whole, cuts, options));
  return chain;
}

Status refusal(const TestModel& model, const Cuts& cuts) {
  auto made = cut(model, cuts);
  EXPECT_FALSE(made);
  return made ? Status() : made.error();
}

std::vector<std::string> names(const std::vector<IoEntry>& entries) {
  std::vector<std::string> list;
  for (const IoEntry& entry : entries) list.push_back(entry.desc.name);
  return list;
}

TEST(OnnxCut, EachPartHasItsNodesAndTheValuesThatCross) {
  const auto chain = cut(skipping(), {{"a"}, {"c", "a"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  ASSERT_EQ(chain->parts.size(), 3U);
  EXPECT_EQ(operators_of(given_graph_of(chain->parts[0])), "Relu");
  EXPECT_EQ(operators_of(given_graph_of(chain->parts[1])), "Neg Abs");
  EXPECT_EQ(operators_of(given_graph_of(chain->parts[2])), "Add Sigmoid");
  EXPECT_THAT(names(chain->parts[0].description.inputs), ElementsAre("x"));
  EXPECT_THAT(names(chain->parts[0].description.outputs), ElementsAre("a"));
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre("a"));
  EXPECT_THAT(names(chain->parts[1].description.outputs), ElementsAre("c"));
  EXPECT_THAT(names(chain->parts[2].description.inputs), ElementsAre("c", "a"));
  EXPECT_THAT(names(chain->parts[2].description.outputs), ElementsAre("y"));
  EXPECT_EQ(chain->parts[1].description.inputs[0].desc.shape, (Shape{1, 4}));
  for (const ImportedModel& part : chain->parts) EXPECT_TRUE(part.constants.empty());
}

TEST(OnnxCut, ACutThatIsNoneIsRefusedByName) {
  const TestModel model = skipping();
  Status why = refusal(model, {{"nowhere"}});
  EXPECT_EQ(why.code(), Code::kNotFound);
  EXPECT_THAT(why.message(), HasSubstr("'nowhere'"));
  EXPECT_THAT(refusal(model, {{"x"}}).message(), HasSubstr("'x' is an input of the network"));
  EXPECT_THAT(refusal(model, {{"y"}}).message(), HasSubstr("no node of the network comes after"));
  why = refusal(model, {{"c"}});
  EXPECT_EQ(why.code(), Code::kInvalidArgument);
  EXPECT_THAT(why.message(), HasSubstr("reads 'a'"));
  EXPECT_THAT(why.message(), HasSubstr("--cut c,a"));
  EXPECT_EQ(why.detail(Detail::kAllowed), "c,a");
  EXPECT_THAT(refusal(model, {{"a", "b"}, {"b", "a"}}).message(),
              HasSubstr("no node lies between"));
  EXPECT_THAT(refusal(model, {{"c", "a"}, {"b"}}).message(), HasSubstr("in the order"));
  EXPECT_THAT(refusal(model, {{"c", "a", "b"}}).message(),
              HasSubstr("no node after the cut reads"));
  EXPECT_THAT(refusal(model, {{}}).message(), HasSubstr("names no value"));
}

TEST(OnnxCut, ConstantsAreOfEachPartThatReadsThem) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {1, 2}).floats("w", {2}, {2, 3});
  m.node("Neg", {"w"}, {"negative"});  // Computed from constants alone.
  m.node("Mul", {"x", "negative"}, {"a"});
  m.node("Add", {"a", "negative"}, {"b"});
  m.node("Mul", {"b", "w"}, {"y"});
  EXPECT_THAT(refusal(m, {{"w"}}).message(), HasSubstr("is a constant"));
  EXPECT_THAT(refusal(m, {{"negative"}}).message(), HasSubstr("is a constant"));
  const auto chain = cut(m, {{"a"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_EQ(operators_of(given_graph_of(chain->parts[0])), "Neg Mul");
  EXPECT_EQ(operators_of(given_graph_of(chain->parts[1])), "Neg Add Mul");
  EXPECT_EQ(given_graph_of(chain->parts[0]).initializer_size(), 1);
  EXPECT_EQ(given_graph_of(chain->parts[1]).initializer_size(), 1);
}

TEST(OnnxCut, AnOutputThatLaterPartsReadHasACopyForThem) {
  TestModel m;
  m.input("x", {1, 2}).output("a", {1, 2}).output("y", {1, 2});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"y"});
  const auto chain = cut(m, {{"a"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_THAT(names(chain->parts[0].description.outputs), ElementsAre("a", "a/cut"));
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre("a/cut"));
  EXPECT_THAT(names(chain->parts[1].description.outputs), ElementsAre("y"));
}

TEST(OnnxCut, CopiesForLaterPartsHaveNamesThatNothingElseHas) {
  TestModel m;
  m.input("x", {1, 2}).output("a", {1, 2}).output("a/cut", {1, 2}).output("y", {1, 2});
  m.floats("a/cut/cut", {2}, {2, 3});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"a/cut"});
  m.node("Add", {"a", "a/cut"}, {"b"});
  m.node("Mul", {"b", "a/cut/cut"}, {"y"});
  const auto chain = cut(m, {{"a", "a/cut"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  const auto made = names(chain->parts[0].description.outputs);
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), 4U);
  EXPECT_EQ(std::ranges::count(made, "a/cut/cut"), 0);
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre(made[2], made[3]));
  EXPECT_EQ(given_graph_of(chain->parts[1]).initializer_size(), 1);
}

TEST(OnnxCut, InputsAreOfThePartsThatReadThem) {
  TestModel m;
  m.input("x", {1, 2}).input("z", {1, 2}).input("unread", {1}).output("y", {1, 2});
  m.node("Add", {"x", "z"}, {"a"});
  m.node("Mul", {"a", "z"}, {"y"});
  const auto chain = cut(m, {{"a"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_THAT(names(chain->parts[0].description.inputs), ElementsAre("x", "z", "unread"));
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre("a", "z"));
}

TEST(OnnxCut, SubgraphsReadAcrossACutToo) {
  TestModel then(17);
  then.output("t", {1, 2});
  then.node("Neg", {"a"}, {"t"});
  TestModel other(17);
  other.output("e", {1, 2});
  other.node("Abs", {"b"}, {"e"});
  TestModel m;
  m.input("x", {1, 2}).input("c", {}, ::onnx::TensorProto::BOOL).output("y", {1, 2});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"b"});
  auto& branch = m.node("If", {"c"}, {"y"});
  set_graph(branch, "then_branch", then);
  set_graph(branch, "else_branch", other);
  EXPECT_THAT(refusal(m, {{"b"}}).message(), HasSubstr("--cut b,a"));
  const auto chain = cut(m, {{"b", "a"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre("b", "a", "c"));
}

TEST(OnnxCut, AValueOfUnknownTypeIsRefused) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {1, 2});
  m.node("Mystery", {"x"}, {"a"}).set_domain("test");
  m.node("Relu", {"a"}, {"y"});
  ImportOptions options;
  options.custom_operators = {"test.Mystery"};
  const auto made = cut(m, {{"a"}}, options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnsupportedModel);
  EXPECT_THAT(made.error().message(), HasSubstr("'a'"));
}

/// An If whose branches give `then` and `other`.
TestModel branching(const TestModel::Dims& then, const TestModel::Dims& other) {
  TestModel yes(17);
  yes.output("t", then);
  yes.node("Neg", {"a"}, {"t"});
  TestModel no(17);
  no.output("e", other);
  no.node("Abs", {"a"}, {"e"});
  TestModel m;
  m.input("x", {1, 2}).input("c", {}, ::onnx::TensorProto::BOOL).output("y", {1, 2});
  m.node("Relu", {"x"}, {"a"});
  auto& branch = m.node("If", {"c"}, {"b"});
  set_graph(branch, "then_branch", yes);
  set_graph(branch, "else_branch", no);
  m.node("Abs", {"b"}, {"d"});
  m.node("Sigmoid", {"d"}, {"y"});
  return m;
}

TEST(OnnxCut, WhatBothBranchesOfAnIfDeclareIsKnownAfterIt) {
  for (const char* const value : {"b", "d"}) {
    auto chain = cut(branching({1, 2}, {1, 2}), {{value}});
    ASSERT_TRUE(chain) << chain.error().to_string();
    EXPECT_EQ(chain->parts[1].description.inputs[0].desc.shape, (Shape{1, 2}));
    chain = cut(branching({1, 2}, {1, "n"}), {{value}});
    ASSERT_TRUE(chain) << chain.error().to_string();
    EXPECT_EQ(chain->parts[1].description.inputs[0].desc.shape, (Shape{1, -1}));
    EXPECT_THAT(refusal(branching({1, 2}, {2}), {{value}}).message(),
                HasSubstr("its type and rank are not known"));
  }
}

TEST(OnnxCut, WhatALoopCarriesIsKnownWhereItsBodyDeclaresIt) {
  TestModel body(17);
  body.input("i", {}, ::onnx::TensorProto::INT64).input("go", {}, ::onnx::TensorProto::BOOL);
  body.input("in", {1, 2}).output("on", {}, ::onnx::TensorProto::BOOL);
  body.output("out", {1, 2}).output("each", {2});
  body.node("Identity", {"go"}, {"on"});
  body.node("Neg", {"in"}, {"out"});
  body.node("Reshape", {"in", "two"}, {"each"});
  TestModel m;
  m.input("x", {1, 2}).input("n", {}, ::onnx::TensorProto::INT64).output("y", {1, 2});
  m.ints("two", {2});
  m.node("Relu", {"x"}, {"a"});
  set_graph(m.node("Loop", {"n", "", "a"}, {"last", "all"}), "body", body);
  m.node("ReduceSum", {"all"}, {"sum"});
  m.node("Add", {"last", "sum"}, {"y"});
  const auto chain = cut(m, {{"last", "all"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_EQ(chain->parts[1].description.inputs[0].desc.shape, (Shape{1, 2}));
  EXPECT_EQ(chain->parts[1].description.inputs[1].desc.shape, (Shape{-1, 2}));
}

TEST(OnnxCut, ASequenceDoesNotCross) {
  TestModel m;
  m.input("x", {2, 2}).output("y", {2, 2});
  m.node("SplitToSequence", {"x"}, {"s"});
  m.node("ConcatFromSequence", {"s"}, {"y"});
  set_int(*m.graph().mutable_node(1), "axis", 0);
  const Status why = refusal(m, {{"s"}});
  EXPECT_EQ(why.code(), Code::kUnsupportedModel);
  EXPECT_THAT(why.message(), HasSubstr("it is not a tensor of numbers"));
  EXPECT_THAT(why.message(), ::testing::Not(HasSubstr("value_info")));
}

/// Heads are split by a shape that is computed from the input's, as PyTorch exports it.
TestModel split_heads(const TestModel::Dims& x) {
  TestModel m;
  m.input("x", x).open_output("y");
  m.ints("zero", {0}).ints("tail", {5, 2, 4});
  m.node("Relu", {"x"}, {"a"});
  m.node("Shape", {"a"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"n"});
  m.node("Concat", {"n", "tail"}, {"heads"});
  set_int(*m.graph().mutable_node(3), "axis", 0);
  m.node("Reshape", {"a", "heads"}, {"r"});
  m.node("Softmax", {"r"}, {"p"});
  m.node("Reshape", {"p", "heads"}, {"q"});
  m.node("Neg", {"q"}, {"y"});
  return m;
}

TEST(OnnxCut, ShapesThatFixedInputsDecideAreConstantsOfEachPart) {
  const TestModel m = split_heads({2, 5, 8});
  EXPECT_THAT(refusal(m, {{"p", "heads"}}).message(), HasSubstr("'heads' is a constant"));
  const auto chain = cut(m, {{"p"}, {"q"}});
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_THAT(names(chain->parts[0].description.inputs), ElementsAre("x"));
  EXPECT_THAT(names(chain->parts[1].description.inputs), ElementsAre("p"));
  EXPECT_EQ(chain->parts[1].description.outputs[0].desc.shape, (Shape{2, 5, 2, 4}));
  EXPECT_EQ(chain->parts[2].description.inputs[0].desc.shape, (Shape{2, 5, 2, 4}));
  EXPECT_THAT(refusal(split_heads({"n", 5, 8}), {{"p"}}).message(), HasSubstr("--cut p,heads"));
}

TEST(OnnxCut, AValueWhoseSizeTheRunDecidesDoesNotCross) {
  TestModel m;
  m.input("x", {3, 2}).open_output("y");
  m.node("NonZero", {"x"}, {"at"});
  m.node("Transpose", {"at"}, {"rows"});
  m.node("Cast", {"rows"}, {"y"});
  set_int(*m.graph().mutable_node(2), "to", ::onnx::TensorProto::FLOAT);
  for (const char* const value : {"at", "rows"}) {
    const Status why = refusal(m, {{value}});
    EXPECT_EQ(why.code(), Code::kUnsupportedModel);
    EXPECT_THAT(why.message(), HasSubstr("only a run decides its size"));
  }
}

TEST(OnnxCut, PartsKnowTheCustomOperatorsThatTheyHave) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {1, 2});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"b"});
  m.node("Abs", {"b"}, {"y"});
  ImportOptions options;
  options.custom_operators = {"Relu", "Neg"};  // Of the standard: to be run by the host.
  const auto chain = cut(m, {{"a"}, {"b"}}, options);
  ASSERT_TRUE(chain) << chain.error().to_string();
  ASSERT_EQ(chain->parts.size(), 3U);
  const auto declared = [&](std::size_t part) {
    std::vector<std::string> types;
    for (const auto& op : chain->parts[part].description.custom_operators) types.push_back(op.type);
    return types;
  };
  EXPECT_THAT(declared(0), ElementsAre("Relu"));
  EXPECT_THAT(declared(1), ElementsAre("Neg"));
  EXPECT_TRUE(declared(2).empty());
}

TEST(OnnxCut, OutputThatIsAnInputIsRefusedByName) {
  TestModel m;
  m.input("x", {1, 2}).output("y", {1, 2}).output("x", {1, 2});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"y"});
  EXPECT_THAT(refusal(m, {{"a"}}).message(), HasSubstr("output 'x' is input 'x' itself"));
}

TEST(OnnxCut, FixedShapesAndTheBordersAreThoseOfTheWhole) {
  TestModel m;
  m.input("x", {"n", 3, 8, 8}).output("y", {"n", 3, 8, 8});
  m.node("Relu", {"x"}, {"a"});
  m.node("Neg", {"a"}, {"y"});
  ImportOptions options;
  options.dims["n"] = 2;
  options.mean[""] = {1, 2, 3};
  options.cores = 2;
  const auto chain = cut(m, {{"a"}}, options);
  ASSERT_TRUE(chain) << chain.error().to_string();
  EXPECT_EQ(chain->parts[0].description.inputs[0], chain->whole.description.inputs[0]);
  EXPECT_EQ(chain->parts[1].description.outputs[0], chain->whole.description.outputs[0]);
  EXPECT_EQ(chain->parts[1].description.inputs[0].desc.shape, (Shape{2, 3, 8, 8}));
  EXPECT_EQ(chain->parts[1].description.cores, 2U);
}

/// Cuts random networks at random places: the values that a message asks for make a cut, and the
/// parts have every node once.
TEST(OnnxCut, RandomNetworksAreCutWhereTheMessageSaysWhatIsMissing) {
  std::uint32_t state = 7;
  const auto below = [&](std::uint32_t n) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % n;
  };
  for (int round = 0; round < 200; ++round) {
    TestModel m;
    m.input("x", {1, 2});
    std::vector<std::string> made{"x"};
    const std::uint32_t nodes = 4 + below(12);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const std::string out = "v" + std::to_string(i);
      const auto any = [&] {
        return made[made.size() - 1 -
                    below(std::min<std::uint32_t>(4, static_cast<std::uint32_t>(made.size())))];
      };
      if (below(2) == 0)
        m.node("Neg", {any()}, {out});
      else
        m.node("Add", {any(), any()}, {out});
      made.push_back(out);
    }
    m.output(made.back(), {1, 2});
    std::vector<std::string> wanted{"v" + std::to_string(below(nodes - 1))};
    auto chain = cut(m, {wanted});
    for (int tries = 0; !chain && tries < 3; ++tries) {
      const std::string allowed(chain.error().detail(Detail::kAllowed));
      if (allowed.empty()) break;
      wanted.clear();
      for (std::size_t at = 0; at <= allowed.size();) {
        const std::size_t end = std::min(allowed.find(',', at), allowed.size());
        wanted.push_back(allowed.substr(at, end - at));
        at = end + 1;
      }
      chain = cut(m, {wanted});
    }
    if (!chain) {
      // Nothing reads the value, or nothing comes after it.
      EXPECT_THAT(chain.error().message(),
                  ::testing::AnyOf(HasSubstr("no node"), HasSubstr("no cut")));
      continue;
    }
    std::multiset<std::string> seen;
    for (const ImportedModel& part : chain->parts) {
      const ::onnx::GraphProto graph = given_graph_of(part);
      for (const auto& node : graph.node()) seen.insert(node.output(0));
    }
    EXPECT_EQ(seen.size(), nodes) << "round " << round;
    EXPECT_TRUE(std::ranges::is_permutation(std::set<std::string>(seen.begin(), seen.end()),
                                            std::set<std::string>(made.begin() + 1, made.end())));
  }
}

}  // namespace
}  // namespace corelane::onnx
