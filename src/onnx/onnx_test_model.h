/// Small ONNX models for tests, built with the generated classes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/onnx/onnx_import.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_proto.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {

/// Builds one graph. Dimensions: a number, or a symbol.
class TestModel {
 public:
  struct Dim {
    Dim(int v) : value(v) {}           // NOLINT
    Dim(std::int64_t v) : value(v) {}  // NOLINT
    Dim(const char* s) : symbol(s) {}  // NOLINT
    std::int64_t value = -1;
    std::string symbol;
  };
  using Dims = std::vector<Dim>;

  explicit TestModel(std::int64_t opset = 17) {
    model_.set_ir_version(8);
    model_.set_producer_name("test");
    model_.mutable_graph()->set_name("g");
    model_.add_opset_import()->set_version(opset);
  }

  ::onnx::ModelProto& proto() { return model_; }
  ::onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  TestModel& input(const std::string& name, const Dims& dims,
                   std::int32_t type = ::onnx::TensorProto::FLOAT) {
    fill(*graph().add_input(), name, dims, type);
    return *this;
  }
  TestModel& output(const std::string& name, const Dims& dims,
                    std::int32_t type = ::onnx::TensorProto::FLOAT) {
    fill(*graph().add_output(), name, dims, type);
    return *this;
  }
  TestModel& inner(const std::string& name, const Dims& dims,
                   std::int32_t type = ::onnx::TensorProto::FLOAT) {
    fill(*graph().add_value_info(), name, dims, type);
    return *this;
  }
  /// An output without a declared shape.
  TestModel& open_output(const std::string& name, std::int32_t type = ::onnx::TensorProto::FLOAT) {
    auto& value = *graph().add_output();
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
    auto& n = *graph().add_node();
    n.set_op_type(op);
    n.set_name("node_" + op + std::to_string(graph().node_size()));
    for (const auto& in : inputs) n.add_input(in);
    for (const auto& out : outputs) n.add_output(out);
    return n;
  }
  TestModel& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                    const std::vector<double>& values) {
    *graph().add_initializer() = make_values(name, ::onnx::TensorProto::FLOAT, dims, values);
    return *this;
  }
  TestModel& ints(const std::string& name, const std::vector<std::int64_t>& values) {
    *graph().add_initializer() =
        make_ints(name, {static_cast<std::int64_t>(values.size())}, values);
    return *this;
  }
  TestModel& typed(const std::string& name, std::int32_t type,
                   const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
    *graph().add_initializer() = make_values(name, type, dims, values);
    return *this;
  }

  ByteVector bytes() const {
    ByteVector result(model_.ByteSizeLong());
    model_.SerializeToArray(result.data(), static_cast<int>(result.size()));
    return result;
  }
  Result<ImportedModel> import(const ImportOptions& options = {}) const {
    return import_onnx(bytes(), options);
  }

 private:
  static void fill(::onnx::ValueInfoProto& value, const std::string& name, const Dims& dims,
                   std::int32_t type) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const auto& d : dims) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (!d.symbol.empty())
        dim.set_dim_param(d.symbol);
      else if (d.value >= 0)
        dim.set_dim_value(d.value);
    }
  }

  ::onnx::ModelProto model_;
};

/// The network of an imported model as it was given.
inline ::onnx::GraphProto given_graph_of(const ImportedModel& imported) {
  ::onnx::ModelProto model;
  model.ParseFromArray(imported.graph.data(), static_cast<int>(imported.graph.size()));
  return model.graph();
}

/// The model as an engine is given it.
inline ::onnx::ModelProto lowered_model_of(const ImportedModel& imported,
                                           std::string_view engine = "openvino") {
  const ByteVector* bytes = &imported.graph;
  for (const LoweredGraph& form : imported.lowered)
    if (form.tag.starts_with(engine) && !form.graph.empty()) bytes = &form.graph;
  ::onnx::ModelProto model;
  model.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()));
  return model;
}

/// The graph of it.
inline ::onnx::GraphProto graph_of(const ImportedModel& imported) {
  return lowered_model_of(imported).graph();
}

/// Operators in order, "Add Relu".
inline std::string operators_of(const ::onnx::GraphProto& graph) {
  std::string text;
  for (const auto& n : graph.node()) text += (text.empty() ? "" : " ") + n.op_type();
  return text;
}

inline void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  set_attribute(node, name, value);
}

inline void set_graph(::onnx::NodeProto& node, const char* name, TestModel& inner) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::GRAPH);
  *a.mutable_g() = inner.graph();
}

}  // namespace corelane::onnx
