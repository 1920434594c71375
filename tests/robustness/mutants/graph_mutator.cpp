#include "graph_mutator.h"

#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "corelane/tensor/dtype.h"

namespace corelane::robustness {
namespace {

using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::lowest();
constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kEdges[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   3,
                                   4,
                                   7,
                                   8,
                                   16,
                                   17,
                                   63,
                                   64,
                                   100,
                                   1000,
                                   65536,
                                   1 << 20,
                                   1 << 24,
                                   1LL << 31,
                                   1LL << 32,
                                   1LL << 40,
                                   (1LL << 31) - 1,
                                   -(1LL << 31),
                                   1LL << 62,
                                   kLow,
                                   kHigh,
                                   kHigh - 1};
constexpr float kFloats[] = {0,
                             -0.0F,
                             1,
                             -1,
                             0.5F,
                             1e30F,
                             -1e30F,
                             1e-40F,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
constexpr const char* kTexts[] = {
    "",           "linear",       "nearest",       "cubic",   "reflect",
    "edge",       "wrap",         "max",           "add",     "mul",
    "SAME_UPPER", "VALID",        "bidirectional", "reverse", "tanh_crop_and_resize",
    "a,b->c",     "...ij,jk->ik", "ii->i",         "exact",   "\xff\xfe",
    "none"};
/// Operators that others are turned into: those that move memory, fold, or take sizes.
constexpr const char* kOperators[] = {"Gather",
                                      "GatherND",
                                      "GatherElements",
                                      "ScatterND",
                                      "ScatterElements",
                                      "Slice",
                                      "Pad",
                                      "Tile",
                                      "Expand",
                                      "Reshape",
                                      "ConstantOfShape",
                                      "Range",
                                      "Resize",
                                      "Concat",
                                      "Split",
                                      "Squeeze",
                                      "Unsqueeze",
                                      "Transpose",
                                      "Identity",
                                      "Cast",
                                      "Shape",
                                      "MatMul",
                                      "Gemm",
                                      "Conv",
                                      "ConvTranspose",
                                      "MaxPool",
                                      "AveragePool",
                                      "TopK",
                                      "Where",
                                      "OneHot",
                                      "NonZero",
                                      "CumSum",
                                      "ReduceSum",
                                      "ReduceMax",
                                      "Softmax",
                                      "LayerNormalization",
                                      "LSTM",
                                      "GRU",
                                      "RNN",
                                      "Loop",
                                      "If",
                                      "Scan",
                                      "QuantizeLinear",
                                      "DequantizeLinear",
                                      "Einsum",
                                      "DepthToSpace",
                                      "Col2Im",
                                      "Attention",
                                      "NonMaxSuppression",
                                      "RoiAlign",
                                      "GridSample",
                                      "Clip",
                                      "Mod",
                                      "Div",
                                      "Unique",
                                      "Trilu",
                                      "EyeLike",
                                      "Compress",
                                      "ReverseSequence",
                                      "DFT",
                                      "BlackmanWindow",
                                      "SequenceAt",
                                      "StringConcat",
                                      "Bernoulli",
                                      "RandomNormal",
                                      "Multinomial",
                                      "ImageDecoder",
                                      "TfIdfVectorizer",
                                      "BitShift"};

class GraphMutator {
 public:
  GraphMutator(GraphProto& graph, const ::onnx::ModelProto& donor, Mutator& mutator)
      : g_(graph), donor_(donor), m_(mutator) {}

  void harm() {
    using Harm = void (GraphMutator::*)();
    constexpr Harm kHarms[] = {&GraphMutator::dimension,         &GraphMutator::dimension,
                               &GraphMutator::attribute_number,  &GraphMutator::attribute_number,
                               &GraphMutator::attribute_list,    &GraphMutator::attribute_text,
                               &GraphMutator::attribute_kind,    &GraphMutator::drop_node,
                               &GraphMutator::repeat_node,       &GraphMutator::swap_nodes,
                               &GraphMutator::node_input,        &GraphMutator::node_input,
                               &GraphMutator::node_output,       &GraphMutator::node_type,
                               &GraphMutator::tensor_header,     &GraphMutator::tensor_values,
                               &GraphMutator::tensor_values,     &GraphMutator::element_type,
                               &GraphMutator::graph_ends,        &GraphMutator::input_to_constant,
                               &GraphMutator::input_to_constant, &GraphMutator::constant_to_input,
                               &GraphMutator::foreign_node,      &GraphMutator::long_chain};
    (this->*kHarms[m_.below(std::size(kHarms))])();
  }

 private:
  std::int64_t edge() { return kEdges[m_.below(std::size(kEdges))]; }
  float edge_float() { return kFloats[m_.below(std::size(kFloats))]; }
  std::string text() { return kTexts[m_.below(std::size(kTexts))]; }
  template <class List>
  int any(const List& list) {
    return static_cast<int>(m_.below(static_cast<std::size_t>(list.size())));
  }
  NodeProto* node() { return g_.node_size() == 0 ? nullptr : g_.mutable_node(any(g_.node())); }
  AttributeProto* attribute() {
    NodeProto* const n = node();
    if (n == nullptr || n->attribute_size() == 0) return nullptr;
    return n->mutable_attribute(any(n->attribute()));
  }
  /// A tensor of the initialisers, or of an attribute.
  TensorProto* tensor() {
    AttributeProto* const a = attribute();
    if (a != nullptr && a->has_t() && m_.below(2) == 0) return a->mutable_t();
    if (g_.initializer_size() == 0) return nullptr;
    return g_.mutable_initializer(any(g_.initializer()));
  }
  ValueInfoProto* value() {
    switch (m_.below(3)) {
      case 0:
        return g_.input_size() == 0 ? nullptr : g_.mutable_input(any(g_.input()));
      case 1:
        return g_.output_size() == 0 ? nullptr : g_.mutable_output(any(g_.output()));
      default:
        return g_.value_info_size() == 0 ? nullptr : g_.mutable_value_info(any(g_.value_info()));
    }
  }
  std::string value_name() {
    std::vector<std::string> names{"", "unknown"};
    for (const auto& v : g_.input()) names.push_back(v.name());
    for (const auto& t : g_.initializer()) names.push_back(t.name());
    for (const auto& n : g_.node())
      for (const auto& out : n.output()) names.push_back(out);
    return names[m_.below(names.size())];
  }

  void dimension() {
    ValueInfoProto* const v = value();
    if (v == nullptr || !v->type().has_tensor_type()) return;
    auto& shape = *v->mutable_type()->mutable_tensor_type()->mutable_shape();
    const std::size_t what = m_.below(6);
    if (what == 0 || shape.dim_size() == 0) {
      shape.add_dim()->set_dim_value(edge());
      return;
    }
    auto& dim = *shape.mutable_dim(any(shape.dim()));
    if (what == 1)
      shape.mutable_dim()->RemoveLast();
    else if (what == 2)
      dim.set_dim_param("open");
    else if (what == 3)
      v->mutable_type()->mutable_tensor_type()->clear_shape();
    else
      dim.set_dim_value(edge());
  }

  void attribute_number() {
    AttributeProto* const a = attribute();
    if (a == nullptr) return;
    if (a->type() == AttributeProto::INT) a->set_i(edge());
    if (a->type() == AttributeProto::FLOAT) a->set_f(edge_float());
    if (a->ints_size() > 0) a->set_ints(any(a->ints()), edge());
    if (a->floats_size() > 0) a->set_floats(any(a->floats()), edge_float());
  }

  void attribute_list() {
    AttributeProto* const a = attribute();
    if (a == nullptr) return;
    const std::size_t more = m_.below(4) == 0 ? 100 : 1;
    for (std::size_t i = 0; i < more; ++i) {
      if (a->type() == AttributeProto::INTS) a->add_ints(edge());
      if (a->type() == AttributeProto::FLOATS) a->add_floats(edge_float());
      if (a->type() == AttributeProto::STRINGS) a->add_strings(text());
    }
    if (more > 1 || m_.below(2) == 0) return;
    a->mutable_ints()->Clear();
    a->mutable_floats()->Clear();
    a->mutable_strings()->Clear();
  }

  void attribute_text() {
    AttributeProto* const a = attribute();
    if (a == nullptr) return;
    if (a->type() == AttributeProto::STRING) a->set_s(text());
    if (a->strings_size() > 0) a->set_strings(any(a->strings()), text());
  }

  void attribute_kind() {
    NodeProto* const n = node();
    if (n == nullptr) return;
    if (n->attribute_size() == 0 || m_.below(4) == 0) {
      constexpr const char* kNames[] = {"axis",  "axes",    "to",        "mode",
                                        "group", "pads",    "keepdims",  "perm",
                                        "k",     "strides", "dilations", "hidden_size"};
      auto& a = *n->add_attribute();
      a.set_name(kNames[m_.below(std::size(kNames))]);
      const bool list = m_.below(2) == 0;
      a.set_type(list ? AttributeProto::INTS : AttributeProto::INT);
      if (list) a.add_ints(edge());
      if (!list) a.set_i(edge());
      return;
    }
    const int i = any(n->attribute());
    if (m_.below(2) == 0) {
      n->mutable_attribute()->DeleteSubrange(i, 1);
    } else {
      const auto type = static_cast<int>(m_.below(15));
      n->mutable_attribute(i)->set_type(static_cast<AttributeProto::AttributeType>(type));
    }
  }

  void drop_node() {
    if (g_.node_size() > 1) g_.mutable_node()->DeleteSubrange(any(g_.node()), 1);
  }
  void repeat_node() {
    const NodeProto* const n = node();
    if (n == nullptr) return;
    NodeProto copy = *n;
    for (auto& out : *copy.mutable_output())
      if (m_.below(8) != 0) out += "_again";
    *g_.add_node() = std::move(copy);
  }
  void swap_nodes() {
    if (g_.node_size() > 1) g_.mutable_node()->SwapElements(any(g_.node()), any(g_.node()));
  }

  void node_input() {
    NodeProto* const n = node();
    if (n == nullptr) return;
    switch (n->input_size() == 0 ? 0 : m_.below(4)) {
      case 0:
        n->add_input(value_name());
        break;
      case 1:
        n->mutable_input()->RemoveLast();
        break;
      case 2:
        n->mutable_input()->SwapElements(any(n->input()), any(n->input()));
        break;
      default:
        n->set_input(any(n->input()), value_name());
        break;
    }
  }

  void node_output() {
    NodeProto* const n = node();
    if (n == nullptr) return;
    if (n->output_size() == 0 || m_.below(3) == 0)
      n->add_output("more");
    else if (m_.below(2) == 0)
      n->mutable_output()->RemoveLast();
    else
      n->set_output(any(n->output()), m_.below(2) == 0 ? "" : value_name());
  }

  void node_type() {
    NodeProto* const n = node();
    if (n == nullptr) return;
    if (m_.below(8) == 0) n->set_domain(m_.below(2) == 0 ? "com.microsoft" : "ai.onnx.ml");
    n->set_op_type(kOperators[m_.below(std::size(kOperators))]);
  }

  void tensor_header() {
    TensorProto* const t = tensor();
    if (t == nullptr) return;
    switch (m_.below(4)) {
      case 0:
        t->set_data_type(static_cast<int>(m_.below(28)));
        break;
      case 1:
        t->add_dims(edge());
        break;
      case 2:
        if (t->dims_size() > 0) t->set_dims(any(t->dims()), edge());
        break;
      default:
        t->mutable_dims()->Clear();
        if (m_.below(2) == 0) t->add_dims(0);
        break;
    }
  }

  /// One element, or all, in whichever field they are.
  void tensor_values() {
    TensorProto* const t = tensor();
    if (t == nullptr) return;
    for (int i = 0; i < t->int64_data_size(); ++i)
      if (m_.below(2) == 0) t->set_int64_data(i, edge());
    for (int i = 0; i < t->int32_data_size(); ++i)
      if (m_.below(2) == 0) t->set_int32_data(i, static_cast<std::int32_t>(edge()));
    for (int i = 0; i < t->float_data_size(); ++i)
      if (m_.below(2) == 0) t->set_float_data(i, edge_float());
    if (!t->has_raw_data() || t->raw_data().empty()) return;
    if (m_.below(8) == 0) t->mutable_raw_data()->resize(m_.below(t->raw_data().size()));
    edges_into(*t->mutable_raw_data(), t->data_type());
  }

  void edges_into(std::string& raw, int type) {
    const std::size_t width = type == TensorProto::INT64   ? 8
                              : type == TensorProto::INT32 ? 4
                              : type == TensorProto::FLOAT ? 4
                                                           : 1;
    for (std::size_t at = 0; at + width <= raw.size() && at < 256; at += width) {
      if (m_.below(2) == 0) continue;
      const std::int64_t number = edge();
      const float real = edge_float();
      if (type == TensorProto::FLOAT)
        std::memcpy(raw.data() + at, &real, width);
      else
        std::memcpy(raw.data() + at, &number, width);
    }
  }

  void element_type() {
    ValueInfoProto* const v = value();
    if (v != nullptr && v->type().has_tensor_type())
      v->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(m_.below(28)));
  }

  void graph_ends() {
    switch (m_.below(4)) {
      case 0:
        if (g_.input_size() > 0) g_.mutable_input()->DeleteSubrange(any(g_.input()), 1);
        break;
      case 1:
        g_.add_output()->set_name(value_name());
        break;
      case 2:
        if (g_.output_size() > 1) g_.mutable_output()->DeleteSubrange(any(g_.output()), 1);
        break;
      default:
        if (ValueInfoProto* const v = value()) v->set_name(value_name());
        break;
    }
  }

  /// Then engines compute with it while they prepare.
  void input_to_constant() {
    if (g_.input_size() == 0) return;
    const int i = any(g_.input());
    const ValueInfoProto& v = g_.input(i);
    if (!v.type().has_tensor_type()) return;
    TensorProto t;
    t.set_name(v.name());
    const int type = v.type().tensor_type().elem_type();
    t.set_data_type(type);
    std::size_t count = 1;
    for (const auto& d : v.type().tensor_type().shape().dim()) {
      const auto size = static_cast<std::size_t>(d.dim_value());
      if (size > 4096 || count * size > 4096) return;
      t.add_dims(static_cast<std::int64_t>(size));
      count *= size;
    }
    t.mutable_raw_data()->assign(
        count * dtype_bits(dtype_from_onnx(static_cast<std::uint32_t>(type))) / 8, '\0');
    edges_into(*t.mutable_raw_data(), type);
    g_.mutable_input()->DeleteSubrange(i, 1);
    *g_.add_initializer() = std::move(t);
  }

  void constant_to_input() {
    if (g_.initializer_size() == 0) return;
    const int i = any(g_.initializer());
    ValueInfoProto& v = *g_.add_input();
    v.set_name(g_.initializer(i).name());
    auto& type = *v.mutable_type()->mutable_tensor_type();
    type.set_elem_type(g_.initializer(i).data_type());
    for (const auto d : g_.initializer(i).dims()) type.mutable_shape()->add_dim()->set_dim_value(d);
    g_.mutable_initializer()->DeleteSubrange(i, 1);
  }

  /// A node of the other model over values of this one.
  void foreign_node() {
    if (donor_.graph().node_size() == 0) return;
    NodeProto n = donor_.graph().node(any(donor_.graph().node()));
    for (auto& in : *n.mutable_input())
      if (!in.empty()) in = value_name();
    for (auto& out : *n.mutable_output()) out = "foreign_" + out;
    if (n.output_size() > 0) g_.add_output()->set_name(n.output(0));
    *g_.add_node() = std::move(n);
  }

  void long_chain() {
    std::string last = value_name();
    const std::size_t length = 1 + m_.below(300);
    const char* const type = kOperators[m_.below(std::size(kOperators))];
    for (std::size_t i = 0; i < length; ++i) {
      NodeProto& n = *g_.add_node();
      n.set_op_type(m_.below(4) == 0 ? type : m_.below(2) == 0 ? "Add" : "Concat");
      n.add_input(last);
      n.add_input(last);
      if (n.op_type() == "Concat") {
        auto& a = *n.add_attribute();
        a.set_name("axis");
        a.set_type(AttributeProto::INT);
        a.set_i(0);
      }
      last = "chain_" + std::to_string(i);
      n.add_output(last);
    }
    g_.add_output()->set_name(last);
  }

  GraphProto& g_;
  const ::onnx::ModelProto& donor_;
  Mutator& m_;
};

/// `graph` and those below it.
void add_graphs(GraphProto& graph, std::vector<GraphProto*>& graphs) {
  graphs.push_back(&graph);
  for (NodeProto& node : *graph.mutable_node())
    for (AttributeProto& a : *node.mutable_attribute())
      if (a.has_g()) add_graphs(*a.mutable_g(), graphs);
}

}  // namespace

void mutate_model(::onnx::ModelProto& model, const ::onnx::ModelProto& donor, Mutator& mutator) {
  for (std::size_t n = 1 + mutator.below(3); n > 0; --n) {
    if (mutator.below(40) == 0 && model.opset_import_size() > 0)
      model.mutable_opset_import(0)->set_version(
          mutator.below(2) == 0 ? kEdges[mutator.below(std::size(kEdges))]
                                : static_cast<std::int64_t>(mutator.below(30)));
    std::vector<GraphProto*> graphs;
    add_graphs(*model.mutable_graph(), graphs);
    // Mostly the outermost.
    GraphProto* const graph =
        mutator.below(2) == 0 ? graphs[0] : graphs[mutator.below(graphs.size())];
    GraphMutator(*graph, donor, mutator).harm();
  }
}

}  // namespace corelane::robustness
