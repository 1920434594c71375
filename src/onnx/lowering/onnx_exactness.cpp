#include "onnx/lowering/onnx_exactness.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/leaked.h"
#include "onnx/graph/onnx_describe.h"
#include "onnx/graph/onnx_graph.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {
namespace {

using T = ::onnx::TensorProto;

constexpr unsigned kAll = ~0U;

/// Operators that hand elements on, and which inputs' (a bit each); the others are places.
const std::unordered_map<std::string_view, unsigned>& movers() {
  static Leaked<const std::unordered_map<std::string_view, unsigned>> kTable(
      {// clang-format off
      {"Compress", 1}, {"Concat", kAll}, {"DepthToSpace", 1}, {"Dropout", 1}, {"Expand", 1},
      {"Flatten", 1}, {"Gather", 1}, {"GatherElements", 1}, {"GatherND", 1}, {"Identity", 1},
      {"OneHot", 4}, {"Pad", 5}, {"Reshape", 1}, {"ReverseSequence", 1}, {"Scatter", 5},
      {"ScatterElements", 5}, {"ScatterND", 5}, {"Slice", 1}, {"SpaceToDepth", 1}, {"Split", 1},
      {"Squeeze", 1}, {"Tile", 1}, {"TopK", 1}, {"Transpose", 1}, {"Trilu", 1}, {"Unique", 1},
      {"Unsqueeze", 1}, {"Where", 6}});
  // clang-format on
  return *kTable;
}

bool is_comparison(std::string_view op) {
  return op == "Equal" || op == "Less" || op == "Greater" || op == "LessOrEqual" ||
         op == "GreaterOrEqual";
}

/// Arithmetic on integers. True: through float32.
std::optional<bool> integer_math(std::string_view op) {
  static Leaked<const std::unordered_map<std::string_view, bool>> kTable(
      {// clang-format off
      {"Abs", false}, {"Add", false}, {"BitShift", true}, {"BitwiseAnd", false},
      {"BitwiseNot", false}, {"BitwiseOr", false}, {"BitwiseXor", false}, {"Clip", false},
      {"CumProd", true}, {"CumSum", false}, {"Div", true}, {"Einsum", true}, {"Gemm", true},
      {"MatMul", true}, {"Max", false}, {"Min", false}, {"Mul", false}, {"Neg", false},
      {"Pow", true}, {"Sign", false}, {"Sub", false}, {"Sum", true}});
  // clang-format on
  if (op.starts_with("Reduce")) return true;
  const auto it = kTable->find(op);
  return it == kTable->end() ? std::nullopt : std::optional(it->second);
}

bool is_wide_type(std::int32_t elem) {
  return elem == T::INT64 || elem == T::UINT64 || elem == T::UINT32;
}

bool is_judged_integer(std::int32_t elem) { return is_wide_type(elem) || elem == T::INT32; }

/// Operators on uint32 that are the same on int32.
bool is_sign_blind(std::string_view op) {
  return op == "Add" || op == "Sub" || op == "Mul" || op.starts_with("Bitwise");
}

bool is_byte(std::int32_t elem) { return elem == T::INT8 || elem == T::UINT8; }

constexpr const char* kDoubleText = "float64 is computed in float32 by the engine";

bool beyond_32_bits(std::int64_t v) {
  return v > std::numeric_limits<std::int32_t>::max() ||
         v < std::numeric_limits<std::int32_t>::min();
}

/// True where the tensor, which is raw, holds an integer that int32 cannot. Read in place: tables
/// may be large.
bool has_beyond(const ::onnx::TensorProto& tensor, ByteSpan constants) {
  if (!is_wide_type(tensor.data_type())) return false;
  ByteSpan bytes = as_byte_span(tensor.raw_data());
  if (is_external(tensor)) {
    const auto slice = constants_slice(tensor, constants);
    if (!slice) return false;
    bytes = *slice;
  }
  const std::size_t size = tensor.data_type() == T::UINT32 ? 4 : 8;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint64_t v = 0;
    std::memcpy(&v, bytes.data() + at, size);
    // 64-bit values beyond the range of int64 are beyond that of int32 as well.
    if (beyond_32_bits(static_cast<std::int64_t>(v))) return true;
  }
  return false;
}

}  // namespace

int IntegerFamilies::add() {
  parents_.push_back(static_cast<int>(parents_.size()));
  bounded_.push_back(false);
  return parents_.back();
}

std::size_t IntegerFamilies::root(int family) const {
  auto i = static_cast<std::size_t>(family);
  while (static_cast<std::size_t>(parents_[i]) != i) i = static_cast<std::size_t>(parents_[i]);
  return i;
}

int IntegerFamilies::join(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  // The older one leads, so that chains stay short.
  const std::size_t low = std::min(root(a), root(b));
  const std::size_t high = std::max(root(a), root(b));
  parents_[high] = static_cast<int>(low);
  if (bounded_[high]) bounded_[low] = true;
  return static_cast<int>(low);
}

void IntegerFamilies::mark_bounded(int family) {
  if (family >= 0) bounded_[root(family)] = true;
}

std::int32_t Exactness::View::elem(int i) const { return facts.of(input_of(node, i)).elem; }

Exactness::Exactness(Exactness* outer)
    : shared_(outer == nullptr ? own_ : outer->shared_), outer_(outer) {}

const Exactness::Trait& Exactness::of(const std::string& name) const {
  static const Trait kNothing;
  if (name.empty()) return kNothing;
  const auto it = traits_.find(name);
  if (it != traits_.end()) return it->second;
  return outer_ != nullptr ? outer_->of(name) : kNothing;
}

void Exactness::learn_constant(const std::string& name, const ::onnx::TensorProto& tensor,
                               ByteSpan constants) {
  traits_[name] = {.beyond = has_beyond(tensor, constants)};
}

void Exactness::begin(const ::onnx::GraphProto& graph, ByteSpan constants) {
  constants_ = constants;
  if (outer_ != nullptr) {
    // What goes round in a Loop is not followed.
    for (const auto& in : graph.input()) traits_[in.name()].data = true;
  } else {
    for (const int i : real_inputs(graph)) {
      Trait& trait = traits_[graph.input(i).name()];
      trait.data = trait.raw = true;
      if (is_judged_integer(elem_type_of(graph.input(i).type())))
        trait.family = shared_.families.add();
    }
  }
  for (const auto& t : graph.initializer()) learn_constant(t.name(), t, constants);
}

void Exactness::report(Kind kind, const View& v, const char* text) {
  // One of a kind: a network in float64 has as many such nodes as it has nodes.
  if (std::exchange(shared_.seen[static_cast<std::size_t>(kind)], true)) return;
  shared_.found.push_back(
      {ImportFinding::Kind::kWarning, node_text(v.node, v.position), op_text(v.node), text});
}

void Exactness::doubt(int family, const View& v, const char* text) {
  shared_.doubts.push_back(
      {family,
       {ImportFinding::Kind::kWarning, node_text(v.node, v.position), op_text(v.node), text}});
}

bool Exactness::reads_wide_doubles(const View& v) const {
  for (int i = 0; i < v.node.input_size(); ++i) {
    const Trait& in = of(v.node.input(i));
    if (v.elem(i) == T::DOUBLE && in.data && !in.narrow) return true;
  }
  return false;
}

void Exactness::see_types(const View& v, bool data) {
  const std::string& op = v.node.op_type();
  if (!data) return;
  const std::int32_t first = v.elem(0);
  // What is copied from an input to an output is not converted on its way.
  if (op != "Identity" && reads_wide_doubles(v)) report(Kind::kDouble, v, kDoubleText);
  if (is_byte(first) && (op == "Add" || op == "Sub" || op == "Mul"))
    report(Kind::kByte, v, "8-bit integers saturate in the engine, they do not wrap around");
  if (op == "BitShift")
    report(Kind::kShift, v, "the engine shifts in another width, and saturates");
  if (op == "Slice")
    for (int i = 1; i <= 2; ++i)
      if (of(input_of(v.node, i)).raw && v.elem(i) == T::INT64)
        report(Kind::kSlice, v,
               "starts and ends that come as an input lose what is beyond 32 bits in the engine, "
               "such as INT64_MAX for \"to the end\"");
  if (op == "QuantizeLinear") {
    const std::int32_t zero = v.elem(2);
    const std::int64_t out = zero != 0 ? zero : int_attribute(v.node, "output_dtype", 0);
    if (out == T::INT16 || out == T::UINT16)
      report(Kind::kQuantize, v, "the engine leaves quantization to 16 bits out, or is a step off");
  }
}

void Exactness::see_half(const View& v) {
  const std::string& op = v.node.op_type();
  const std::int32_t from = v.elem(0);
  if (op != "Cast") {
    for (int i = 0; i < v.node.input_size(); ++i)
      shared_.reads_bfloats = shared_.reads_bfloats || v.elem(i) == T::BFLOAT16;
    if (movers().contains(op)) return;
    for (int i = 0; i < v.node.input_size(); ++i)
      shared_.half_math = shared_.half_math || v.elem(i) == T::FLOAT16;
    return;
  }
  const auto to = int_attribute(v.node, "to", 0);
  if (to == T::BFLOAT16 && from != T::BFLOAT16 && !shared_.bfloat_cast)
    shared_.bfloat_cast = {ImportFinding::Kind::kWarning, node_text(v.node, v.position),
                           op_text(v.node),
                           "the engine does not round to the nearest bfloat16 on some processors"};
  if (from == T::FLOAT16 && to == T::FLOAT && of(input_of(v.node, 0)).rounded)
    shared_.roundings.push_back({ImportFinding::Kind::kWarning, node_text(v.node, v.position),
                                 op_text(v.node),
                                 "the engine leaves out a cast to float16 and back"});
}

Exactness::Trait Exactness::moved(const View& v, unsigned inputs) {
  Trait trait;
  for (int i = 0; i < v.node.input_size(); ++i) {
    const Trait& in = of(v.node.input(i));
    const bool taken = ((inputs >> std::min(i, 31)) & 1U) != 0;
    if (!taken) {
      shared_.families.mark_bounded(in.family);
      continue;
    }
    const bool judged = v.elem(i) == 0 || is_judged_integer(v.elem(i));
    if (judged && in.beyond && in.family < 0)
      trait.family = shared_.families.join(trait.family, shared_.families.add());
    if (judged) trait.family = shared_.families.join(trait.family, in.family);
    trait.raw = trait.raw || in.raw;
    trait.inexact = trait.inexact || in.inexact;
    trait.beyond = trait.beyond || in.beyond;
    trait.rounded = trait.rounded || in.rounded;
    trait.widened = trait.widened || in.widened;
  }
  return trait;
}

void Exactness::see_comparison(const View& v) {
  const int a = of(input_of(v.node, 0)).family;
  const int b = of(input_of(v.node, 1)).family;
  if (a >= 0 && b >= 0) {
    doubt(shared_.families.join(a, b), v,
          "the engine compares integers beyond 32 bits, or equal ones beyond 24, wrongly");
    return;
  }
  shared_.families.mark_bounded(std::max(a, b));
}

Exactness::Trait Exactness::see_math(const View& v) {
  const std::string& op = v.node.op_type();
  Trait trait;
  trait.inexact =
      integer_math(op).value_or(false) || (v.elem(0) == T::UINT32 && !is_sign_blind(op));
  bool constant = false;
  for (int i = 0; i < v.node.input_size(); ++i) {
    const Trait& in = of(v.node.input(i));
    if (i > 0 && (op == "CumSum" || op == "CumProd" || op.starts_with("Reduce"))) {
      shared_.families.mark_bounded(in.family);  // Axes.
      continue;
    }
    if (v.elem(i) != 0 && !is_judged_integer(v.elem(i))) continue;
    constant = constant || in.beyond;
    trait.data = trait.data || in.data;
    trait.family = shared_.families.join(trait.family, in.family);
    trait.inexact = trait.inexact || in.inexact;
  }
  // Comparisons and bounds are right with a constant that is cut to the range of int32.
  if (constant && trait.data && op != "Max" && op != "Min" && op != "Clip")
    report(Kind::kConstant, v, "the engine cuts a constant to 32 bits");
  if (op == "Mod") {
    if (trait.family >= 0)
      doubt(trait.family, v, "the engine divides integers in float32, wrong from 2^24 on");
    return {};
  }
  return trait;
}

Exactness::Trait Exactness::see_integers(const View& v) {
  const std::string& op = v.node.op_type();
  if (const auto it = movers().find(op); it != movers().end()) return moved(v, it->second);
  if (op == "Cast") {
    Trait trait = moved(v, 1);
    const auto to = static_cast<std::int32_t>(int_attribute(v.node, "to", 0));
    trait.rounded = to == T::FLOAT16 && v.elem(0) == T::FLOAT;
    trait.widened = to == T::DOUBLE && is_float(dtype_from_onnx(v.elem(0)));
    if (to == T::DOUBLE && trait.family >= 0) doubt(trait.family, v, kDoubleText);
    if (!is_judged_integer(to)) trait.family = -1;
    trait.raw = trait.raw && is_judged_integer(to);
    return trait;
  }
  if (is_comparison(op)) {
    see_comparison(v);
    return {};
  }
  if (op == "Mod" || integer_math(op)) return see_math(v);
  if (op == "Shape" || op == "Size") return {};
  // Integers of any other operator are ids, positions, lengths or counts.
  for (const auto& in : v.node.input()) shared_.families.mark_bounded(of(in).family);
  return {};
}

void Exactness::see(const ::onnx::NodeProto& node, int position, const FactsTable& facts) {
  const View v{node, position, facts};
  if (node.op_type() == "Constant" && node.output_size() == 1) {
    const auto* value = find_attribute(node, "value");
    if (value != nullptr && value->has_t()) learn_constant(node.output(0), value->t(), constants_);
    return;
  }
  const bool shape_alone = node.op_type() == "Shape" || node.op_type() == "Size";
  // A subgraph may read values that are no inputs of its node.
  bool data = !subgraphs(node).empty();
  for (const auto& in : node.input()) data = data || of(in).data;
  data = data && !shape_alone;
  see_types(v, data);
  see_half(v);
  Trait trait = see_integers(v);
  trait.data = data;
  trait.raw = trait.raw && data;
  trait.narrow = subgraphs(node).empty() && !reads_wide_doubles(v);
  for (int i = 0; i < node.output_size(); ++i) {
    if (!has_output(node, i)) continue;
    traits_[node.output(i)] = trait;
    // Its places, or its mask.
    const std::string& op = node.op_type();
    if (i > 0 && (op == "TopK" || op == "Unique" || op == "Dropout"))
      traits_[node.output(i)] = {.data = data, .narrow = true};
  }
}

std::vector<ImportFinding> Exactness::finish(const ::onnx::GraphProto& graph,
                                             const FactsTable& facts) {
  std::vector<ImportFinding> found = std::move(shared_.found);
  for (Doubt& doubt : shared_.doubts)
    if (!shared_.families.is_bounded(doubt.family)) found.push_back(std::move(doubt.finding));
  for (const auto& out : graph.output()) {
    const Trait& trait = of(out.name());
    const std::int32_t known = facts.of(out.name()).elem;
    const std::int32_t elem = known != 0 ? known : elem_type_of(out.type());
    if (trait.widened && trait.data && elem == T::DOUBLE) {
      found.push_back({ImportFinding::Kind::kWarning, out.name(), "output",
                       "infinity becomes the largest float in float64 in the engine"});
    }
    if (trait.family < 0 || shared_.families.is_bounded(trait.family)) continue;
    if (elem == T::INT64 || elem == T::UINT64) {
      found.push_back({ImportFinding::Kind::kWarning, out.name(), "output",
                       "64-bit integers that the caller gives, or constants beyond 32 bits, are "
                       "cut to 32 bits by the engine"});
    } else if (trait.inexact && (elem == T::INT32 || elem == T::UINT32)) {
      found.push_back({ImportFinding::Kind::kWarning, out.name(), "output",
                       "integers that the caller gives go through float32 or int32 in the engine: "
                       "wrong from 2^24 or 2^31 on"});
    }
  }
  if (!shared_.half_math)
    std::move(shared_.roundings.begin(), shared_.roundings.end(), std::back_inserter(found));
  if (shared_.bfloat_cast && !shared_.reads_bfloats)
    found.push_back(std::move(*shared_.bfloat_cast));
  return found;
}

}  // namespace corelane::onnx
