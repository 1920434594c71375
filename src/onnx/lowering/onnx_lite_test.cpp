// What the import relies on in the generated lite classes.
#include <gtest/gtest.h>

#include <string>

#include "onnx/graph/onnx_proto.h"

namespace corelane {
namespace {

using namespace std::string_literals;

// Field 1000, length-delimited; field 1001, varint.
const std::string kUnknown = "\xc2\x3e\x03"s + "abc" + "\xc8\x3e\x2a";

TEST(OnnxLite, KeepsUnknownFieldsOfTheModel) {
  const std::string model = "\x08\x08"s + kUnknown;
  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(model));
  EXPECT_EQ(parsed.ir_version(), 8);
  EXPECT_EQ(parsed.SerializeAsString(), model);
}

TEST(OnnxLite, KeepsUnknownFieldsOfANode) {
  // graph { node { op_type "Relu", <unknown> } }
  const std::string node = "\x22\x04Relu"s + kUnknown;
  const std::string graph = "\x0a"s + static_cast<char>(node.size()) + node;
  const std::string model = "\x3a"s + static_cast<char>(graph.size()) + graph;
  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(model));
  ASSERT_EQ(parsed.graph().node_size(), 1);
  parsed.mutable_graph()->mutable_node(0)->set_name("n");
  const std::string written = parsed.SerializeAsString();
  EXPECT_NE(written.find(kUnknown), std::string::npos);
}

TEST(OnnxLite, KeepsUnknownEnumValues) {
  // graph { node { attribute { name "a", type 99 } } }
  const std::string model = "\x3a\x0a\x0a\x08\x2a\x06\x0a\x01"s + "a" + "\xa0\x01\x63";
  ::onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(model));
  EXPECT_EQ(parsed.SerializeAsString(), model);
}

}  // namespace
}  // namespace corelane
