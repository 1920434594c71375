#include "onnx/check/onnx_functions.h"

#include <gmock/gmock.h>

#include <string>

#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

using ::testing::HasSubstr;

/// x -> local.f -> y, with a function of the given name beside it for each call of add().
class FunctionModel {
 public:
  FunctionModel() {
    model_.input("x", {1, 4, 8}).output("y", {1, 4, 8});
    model_.node("f", {"x"}, {"y"}).set_domain("local");
    auto& import = *model_.proto().add_opset_import();
    import.set_domain("local");
    import.set_version(1);
  }

  /// A function a -> b of one node.
  ::onnx::NodeProto& add(const std::string& name, const std::string& op,
                         const std::string& domain = "") {
    auto& f = *model_.proto().add_functions();
    f.set_domain("local");
    f.set_name(name);
    f.add_input("a");
    f.add_output("b");
    for (const char* each : {"", "local"}) {
      auto& import = *f.add_opset_import();
      import.set_domain(each);
      import.set_version(*each == '\0' ? 17 : 1);
    }
    auto& node = *f.add_node();
    node.set_op_type(op);
    node.set_domain(domain);
    node.add_input("a");
    node.add_output("b");
    return node;
  }
  ::onnx::NodeProto& call() { return *model_.graph().mutable_node(0); }
  ::onnx::FunctionProto& function(int i) { return *model_.proto().mutable_functions(i); }
  std::string problem() const {
    const auto imported = model_.import();
    return imported ? "" : imported.error().to_string();
  }

 private:
  TestModel model_;
};

TEST(OnnxFunctions, OnesThatAreSoundAreTaken) {
  FunctionModel m;
  m.add("f", "g", "local");
  m.add("g", "Relu");
  EXPECT_EQ(m.problem(), "");
}

TEST(OnnxFunctions, BodiesAreCheckedAsGraphsAre) {
  FunctionModel unknown;
  unknown.add("f", "Relu").set_input(0, "c");
  EXPECT_THAT(unknown.problem(), HasSubstr("reads 'c', which nothing makes"));
  FunctionModel without;
  without.add("f", "Relu").clear_input();
  EXPECT_THAT(without.problem(), HasSubstr("Relu"));
  FunctionModel open;
  open.add("f", "Relu").set_output(0, "c");
  EXPECT_THAT(open.problem(), HasSubstr("nothing produces its output 'b'"));
  FunctionModel twice;
  twice.add("f", "Relu");
  twice.function(0).add_input("a");
  EXPECT_THAT(twice.problem(), HasSubstr("'a' is empty or used twice"));
  FunctionModel version;
  version.add("f", "Relu");
  version.function(0).mutable_opset_import(0)->set_version(std::int64_t{1} << 40);
  EXPECT_THAT(version.problem(), HasSubstr("1 to 28 are known"));
}

TEST(OnnxFunctions, OneThatCallsItselfIsRefused) {
  FunctionModel m;
  m.add("f", "g", "local");
  m.add("g", "f", "local");
  EXPECT_THAT(m.problem(), HasSubstr("calls itself"));
}

TEST(OnnxFunctions, TwoOfOneNameAreRefused) {
  FunctionModel m;
  m.add("f", "Relu");
  m.add("f", "Neg");
  EXPECT_THAT(m.problem(), HasSubstr("two functions 'f'"));
}

TEST(OnnxFunctions, ACallWithMoreInputsThanTheFunctionIsRefused) {
  FunctionModel m;
  m.add("f", "Relu");
  m.call().add_input("x");
  EXPECT_THAT(m.problem(), HasSubstr("has 2 inputs and 1 outputs; its function takes 1"));
}

/// f calls g twice, g calls the next one twice, and so on.
TEST(OnnxFunctions, OnesThatGrowWithoutBoundAreRefused) {
  FunctionModel m;
  for (int i = 0; i < 30; ++i) {
    const std::string name = i == 0 ? "f" : "f" + std::to_string(i);
    auto& first = m.add(name, "f" + std::to_string(i + 1), "local");
    first.set_output(0, "c");
    ::onnx::NodeProto second = first;
    second.set_input(0, "c");
    second.set_output(0, "b");
    *m.function(i).add_node() = second;
  }
  m.add("f30", "Relu");
  EXPECT_THAT(m.problem(), HasSubstr("more than 1000000 nodes"));
}

TEST(OnnxFunctions, AttributesAreCheckedWithTheValuesOfACall) {
  for (const std::int64_t block : {0, 2}) {
    FunctionModel m;
    auto& attribute = *m.add("f", "DepthToSpace").add_attribute();
    attribute.set_name("blocksize");
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_ref_attr_name("size");
    m.function(0).add_attribute("size");
    set_attribute(m.call(), "size", block);
    const std::string problem = m.problem();
    if (block == 0)
      EXPECT_THAT(problem, HasSubstr("blocksize is 0; 1 or more is allowed"));
    else
      EXPECT_EQ(problem, "");
  }
  FunctionModel outside;
  outside.add("f", "Relu");
  outside.call().add_attribute()->set_ref_attr_name("size");
  EXPECT_THAT(outside.problem(), HasSubstr("refers to one of a function, but is in none"));
}

TEST(OnnxFunctions, AReferenceInAModelWithoutFunctionsIsRefused) {
  TestModel m;
  m.input("x", {1, 4, 2, 2}).open_output("y");
  auto& attribute = *m.node("DepthToSpace", {"x"}, {"y"}).add_attribute();
  attribute.set_name("blocksize");
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_ref_attr_name("size");
  const auto imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message(), HasSubstr("refers to one of a function, but is in none"));
}

TEST(OnnxFunctions, AValueIsPassedOnFromCallToCall) {
  for (const bool given : {false, true}) {
    FunctionModel m;
    const auto refer = [](::onnx::NodeProto& node, const char* name, const char* to) {
      auto& attribute = *node.add_attribute();
      attribute.set_name(name);
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_ref_attr_name(to);
    };
    refer(m.add("f", "g", "local"), "inner", "outer");
    refer(m.add("g", "DepthToSpace"), "blocksize", "inner");
    auto& standard = *m.function(1).add_attribute_proto();
    standard.set_name("inner");
    standard.set_type(::onnx::AttributeProto::INT);
    standard.set_i(2);
    if (given) set_attribute(m.call(), "outer", std::int64_t{0});
    EXPECT_EQ(m.problem().find("blocksize is 0") != std::string::npos, given) << m.problem();
  }
}

TEST(OnnxFunctions, OnesThatAreNestedDeeplyAreRefused) {
  FunctionModel m;
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = i == 0 ? "f" : "f" + std::to_string(i);
    m.add(name, "f" + std::to_string(i + 1), "local");
  }
  EXPECT_THAT(m.problem(), HasSubstr("nested more than 128 deep"));
}

}  // namespace
}  // namespace corelane::onnx
