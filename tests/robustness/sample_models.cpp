#include "sample_models.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "onnx/graph/onnx_proto.h"

namespace corelane::robustness {

namespace {

using Names = std::initializer_list<const char*>;
using Dims = std::initializer_list<std::int64_t>;

/// An open dimension gets a symbol.
void set_type(::onnx::ValueInfoProto& value, const char* name, int type, Dims dims) {
  value.set_name(name);
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  auto& shape = *tensor.mutable_shape();
  int index = 0;
  for (const std::int64_t d : dims) {
    auto& dim = *shape.add_dim();
    if (d < 0)
      dim.set_dim_param("d" + std::to_string(index));
    else
      dim.set_dim_value(d);
    ++index;
  }
}

::onnx::NodeProto& add_node(::onnx::GraphProto& g, const char* op, Names inputs, Names outputs) {
  auto& node = *g.add_node();
  node.set_op_type(op);
  node.set_name(std::string(op) + "_" + std::to_string(g.node_size()));
  for (const char* i : inputs) node.add_input(i);
  for (const char* o : outputs) node.add_output(o);
  return node;
}

void add_ints(::onnx::NodeProto& node, const char* name, Dims values) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INTS);
  for (const std::int64_t v : values) a.add_ints(v);
}

void add_int(::onnx::NodeProto& node, const char* name, std::int64_t value) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(value);
}

::onnx::TensorProto& add_tensor(::onnx::GraphProto& g, const char* name, int type, Dims dims) {
  auto& t = *g.add_initializer();
  t.set_name(name);
  t.set_data_type(type);
  for (const std::int64_t d : dims) t.add_dims(d);
  return t;
}

void add_floats(::onnx::GraphProto& g, const char* name, Dims dims, int count) {
  auto& t = add_tensor(g, name, ::onnx::TensorProto::FLOAT, dims);
  for (int i = 0; i < count; ++i) t.add_float_data(static_cast<float>(i) * 0.125F - 1.0F);
}

void add_int64s(::onnx::GraphProto& g, const char* name, Dims values) {
  auto& t =
      add_tensor(g, name, ::onnx::TensorProto::INT64, {static_cast<std::int64_t>(values.size())});
  for (const std::int64_t v : values) t.add_int64_data(v);
}

void add_scalar(::onnx::GraphProto& g, const char* name, int type, std::int32_t value) {
  add_tensor(g, name, type, {}).add_int32_data(value);
}

::onnx::ModelProto new_model(const char* name) {
  ::onnx::ModelProto m;
  m.set_ir_version(8);
  m.set_producer_name("corelane robustness");
  m.set_producer_version("1");
  auto& opset = *m.add_opset_import();
  opset.set_version(18);
  m.mutable_graph()->set_name(name);
  auto& p = *m.add_metadata_props();
  p.set_key("character");
  p.set_value("a\nb\nc");
  return m;
}

constexpr int kFloat = ::onnx::TensorProto::FLOAT;

::onnx::ModelProto convolution() {
  ::onnx::ModelProto m = new_model("convolution");
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "x", kFloat, {-1, 3, 8, 8});
  set_type(*g.add_output(), "y", kFloat, {-1, 2});
  set_type(*g.add_value_info(), "c", kFloat, {-1, 4, 8, 8});
  add_floats(g, "w", {4, 3, 3, 3}, 108);
  add_floats(g, "b", {4}, 4);
  // Over the size from which constants are moved out, as raw data.
  add_tensor(g, "fc", kFloat, {256, 2}).set_raw_data(std::string(2048, '\x3c'));
  auto& conv = add_node(g, "Conv", {"x", "w", "b"}, {"c"});
  add_ints(conv, "pads", {1, 1, 1, 1});
  add_ints(conv, "kernel_shape", {3, 3});
  add_node(g, "Relu", {"c"}, {"r"});
  add_int(add_node(g, "Flatten", {"r"}, {"f"}), "axis", 1);
  add_node(g, "Gemm", {"f", "fc"}, {"y"});
  return m;
}

::onnx::ModelProto quantised() {
  ::onnx::ModelProto m = new_model("quantised");
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "x", kFloat, {1, 3, 4, 4});
  set_type(*g.add_output(), "y", kFloat, {1, 3, 4, 4});
  add_floats(g, "s", {}, 1);
  g.mutable_initializer(0)->set_float_data(0, 0.02F);
  add_scalar(g, "z", ::onnx::TensorProto::INT8, -3);
  auto& scales = add_tensor(g, "ws", kFloat, {3});
  for (int i = 1; i <= 3; ++i) scales.add_float_data(0.1F * static_cast<float>(i));
  auto& zeros = add_tensor(g, "wz", ::onnx::TensorProto::INT8, {3});
  for (int i = 0; i < 3; ++i) zeros.add_int32_data(0);
  add_tensor(g, "w", ::onnx::TensorProto::INT8, {3, 3, 1, 1}).set_raw_data(std::string(9, '\x7f'));
  add_node(g, "QuantizeLinear", {"x", "s", "z"}, {"xq"});
  add_node(g, "DequantizeLinear", {"xq", "s", "z"}, {"xd"});
  add_int(add_node(g, "DequantizeLinear", {"w", "ws", "wz"}, {"wd"}), "axis", 0);
  add_node(g, "Conv", {"xd", "wd"}, {"c"});
  add_node(g, "QuantizeLinear", {"c", "s", "z"}, {"cq"});
  add_node(g, "DequantizeLinear", {"cq", "s", "z"}, {"y"});
  auto& note = *g.add_quantization_annotation();
  note.set_tensor_name("x");
  return m;
}

void branch(::onnx::NodeProto& node, const char* attribute, const char* op, const char* output) {
  auto& a = *node.add_attribute();
  a.set_name(attribute);
  a.set_type(::onnx::AttributeProto::GRAPH);
  auto& g = *a.mutable_g();
  g.set_name(attribute);
  add_node(g, op, {"x"}, {output});
  set_type(*g.add_output(), output, kFloat, {2, 3});
}

::onnx::ModelProto conditional() {
  ::onnx::ModelProto m = new_model("conditional");
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "cond", ::onnx::TensorProto::BOOL, {});
  set_type(*g.add_input(), "x", kFloat, {2, 3});
  set_type(*g.add_output(), "y", kFloat, {2, 3});
  auto& node = add_node(g, "If", {"cond"}, {"y"});
  branch(node, "then_branch", "Relu", "t");
  branch(node, "else_branch", "Sigmoid", "e");
  return m;
}

/// What the import rewrites: Resize by axes, CastLike, and constants as nodes.
::onnx::ModelProto rewritten() {
  ::onnx::ModelProto m = new_model("rewritten");
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "x", kFloat, {1, 2, 4, 4});
  set_type(*g.add_output(), "y", ::onnx::TensorProto::FLOAT16, {1, 4, 8, 8});
  add_int64s(g, "sizes", {8, 8});
  add_int64s(g, "repeats", {1, 2, 1, 1});
  add_scalar(g, "like", ::onnx::TensorProto::FLOAT16, 0);
  add_ints(add_node(g, "Resize", {"x", "", "", "sizes"}, {"r"}), "axes", {2, 3});
  add_node(g, "Tile", {"r", "repeats"}, {"t"});
  add_node(g, "CastLike", {"t", "like"}, {"y"});
  return m;
}

::onnx::ModelProto tensor_forms() {
  ::onnx::ModelProto m = new_model("forms");
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "x", kFloat, {4});
  set_type(*g.add_output(), "y", kFloat, {4});
  set_type(*g.add_output(), "n", ::onnx::TensorProto::INT64, {2});
  add_tensor(g, "h", ::onnx::TensorProto::FLOAT16, {2})
      .set_raw_data(std::string("\0\x3c\0\x40", 4));
  auto& d = add_tensor(g, "d", ::onnx::TensorProto::DOUBLE, {2});
  d.add_double_data(1.5);
  d.add_double_data(-2.5);
  auto& u = add_tensor(g, "u", ::onnx::TensorProto::UINT64, {1});
  u.add_uint64_data(~std::uint64_t{0});
  add_int64s(g, "i", {1, -1});
  auto& four = add_tensor(g, "four", ::onnx::TensorProto::INT4, {3});
  four.set_raw_data(std::string("\x21\x0f", 2));
  add_floats(g, "f", {4}, 4);
  auto& constant = add_node(g, "Constant", {}, {"k"});
  auto& value = *constant.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  auto& t = *value.mutable_t();
  t.set_data_type(kFloat);
  t.add_dims(4);
  t.set_raw_data(std::string(16, '\x3f'));
  add_node(g, "Add", {"x", "f"}, {"a"});
  add_node(g, "Mul", {"a", "k"}, {"y"});
  add_node(g, "Identity", {"i"}, {"n"});
  g.set_doc_string("all kinds of tensors");
  return m;
}

::onnx::ModelProto custom() {
  ::onnx::ModelProto m = new_model("custom");
  auto& domain = *m.add_opset_import();
  domain.set_domain("mine");
  domain.set_version(1);
  auto& g = *m.mutable_graph();
  set_type(*g.add_input(), "x", kFloat, {1, 4});
  set_type(*g.add_output(), "y", kFloat, {1, 4});
  auto& node = add_node(g, "MyOp", {"x"}, {"h"});
  node.set_domain("mine");
  auto& a = *node.add_attribute();
  a.set_name("text");
  a.set_type(::onnx::AttributeProto::STRING);
  a.set_s("words");
  set_type(*g.add_value_info(), "h", kFloat, {1, 4});
  add_node(g, "Relu", {"h"}, {"y"});
  return m;
}

ByteVector bytes_of(const ::onnx::ModelProto& m) {
  const std::string s = m.SerializeAsString();
  const ByteSpan span = as_byte_span(s);
  return {span.begin(), span.end()};
}

/// Inputs of a node for rule_models(): f a float tensor, i 64-bit axes or sizes, n a number, -
/// none.
struct RuleNode {
  const char* op;
  const char* inputs;
  const char* domain = "";
};

constexpr RuleNode kRuleNodes[] = {
    {"Attention", "fff"},
    {"CausalConvWithState", "fff"},
    {"LinearAttention", "fff"},
    {"TensorScatter", "ffi"},
    {"CastLike", "fi"},
    {"BitCast", "f"},
    {"FlexAttention", "fff", "ai.onnx.preview"},
    {"OptionalHasElement", "f"},
    {"OptionalGetElement", "f"},
    {"DFT", "f-n"},
    {"STFT", "fnf"},
    {"Mod", "ff"},
    {"Equal", "ff"},
    {"Dropout", "f"},
    {"Det", "f"},
    {"Binarizer", "f", "ai.onnx.ml"},
    {"ArrayFeatureExtractor", "fi", "ai.onnx.ml"},
    {"CumProd", "fn"},
    {"Celu", "f"},
    {"SwiGLU", "ff"},
    {"NegativeLogLikelihoodLoss", "fi"},
    {"LSTM", "fff"},
    {"GRU", "fff"},
    {"RNN", "fff"},
    {"Resize", "f--i"},
    {"Resize", "f-f"},
    {"Unsqueeze", "fi"},
    {"Squeeze", "fi"},
    {"ReduceSum", "fi"},
    {"ReduceL2", "fi"},
    {"ReduceLogSumExp", "fi"},
    {"MaxPool", "f"},
    {"Tile", "fi"},
    {"SpaceToDepth", "f"},
    {"Pad", "fi"},
};

void add_text(::onnx::NodeProto& node, const char* name, const char* value) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::STRING);
  a.set_s(value);
}

::onnx::ModelProto rule_model(const RuleNode& rule) {
  ::onnx::ModelProto m = new_model(rule.op);
  auto& domain = *m.add_opset_import();
  domain.set_domain(*rule.domain == 0 ? "mine" : rule.domain);
  domain.set_version(1);
  auto& g = *m.mutable_graph();
  auto& node = add_node(g, rule.op, {}, {"y", "y2"});
  node.set_domain(rule.domain);
  for (const char* kind = rule.inputs; *kind != 0; ++kind) {
    const std::string name = *kind == '-' ? "" : *kind + std::to_string(g.input_size());
    node.add_input(name);
    if (*kind == 'f') set_type(*g.add_input(), name.c_str(), kFloat, {1, 2, 4, -1});
    if (*kind == 'i') add_int64s(g, name.c_str(), {0, 1, 2, 3});
    if (*kind == 'n') add_tensor(g, name.c_str(), ::onnx::TensorProto::INT64, {}).add_int64_data(2);
  }
  add_int(node, "axis", 1);
  add_int(node, "layout", 1);
  add_int(node, "hidden_size", 4);
  add_int(node, "blocksize", 2);
  add_int(node, "ceil_mode", 1);
  add_int(node, "ignore_index", 1);
  add_ints(node, "kernel_shape", {2, 2});
  add_ints(node, "axes", {2, 3});
  add_text(node, "mode", *rule.inputs == 'f' && rule.op[0] == 'P' ? "wrap" : "cubic");
  set_type(*g.add_output(), "y", kFloat, {1, 2, 4, -1});
  return m;
}

}  // namespace

std::vector<SampleModel> rule_models() {
  std::vector<SampleModel> models;
  for (const RuleNode& rule : kRuleNodes)
    models.push_back({std::string(rule.op) + "_" + rule.inputs, bytes_of(rule_model(rule))});
  return models;
}

std::vector<SampleModel> sample_models() {
  return {{"convolution", bytes_of(convolution())}, {"quantised", bytes_of(quantised())},
          {"conditional", bytes_of(conditional())}, {"rewritten", bytes_of(rewritten())},
          {"forms", bytes_of(tensor_forms())},      {"custom", bytes_of(custom())}};
}

}  // namespace corelane::robustness
