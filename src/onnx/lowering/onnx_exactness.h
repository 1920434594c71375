/// What an engine that computes wide types in narrow ones gets wrong by type.
///
/// Measured with OpenVINO 2026.4.1 against ONNX Runtime 1.31.1, one operator at a time:
///  - float64 is computed in float32, and infinity becomes the largest float. Where all data come
///    from float32, the result has its rounding anyway: such networks stay fit.
///  - int64 and uint64 are computed in int32: values beyond 32 bits are cut, also where they are
///    only passed on; Slice takes INT64_MAX that comes as an input for -1. uint32 is taken for
///    int32: comparisons, Max, Min, Div, Mod and shifts are wrong from 2^31 on.
///  - Within 32 bits, Div, Mod, Pow, Equal, MatMul and reductions of integers go through float32:
///    wrong from 2^24 on. Add, Sub and Mul wrap around as they should.
///  - Add, Sub, Mul and BitShift of 8-bit integers saturate. 16-bit ones wrap as they should, casts
///    too.
///  - float16 is computed in float32 and rounded where it comes out; ONNX Runtime rounds after each
///    operator. Both lie within the rounding of float16, so networks in float16 are fit. A cast to
///    float16 that goes straight back is left out, where the network asks for the rounding alone.
///  - A cast to bfloat16 is not rounded to the nearest value on processors with AVX2 alone (a
///    quarter of random numbers is one off).
///  - NaN: Max, Min, Relu, Clip, Greater, GreaterOrEqual, HardSigmoid, Exp, Softmax, ReduceMax,
///    ReduceMin and ArgMin do not hand it on. Not a reason here: nearly every network has one of
///    these, and few have NaN in their data. Those that look for it have a rule (IsNaN).
///
/// Integers are judged by where they go. Token ids, positions, masks and lengths are bounded by the
/// tensors that they index; what is compared with such or used as an index counts as one of them.
/// Integers that a caller gives and gets back may be anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/program/description.h"
#include "onnx/graph/onnx_proto.h"
#include "onnx/infer/onnx_facts.h"

namespace corelane::onnx {

/// Integers that come from the same inputs of the network, and may be wide: a forest of sets.
class IntegerFamilies {
 public:
  int add();
  int join(int a, int b);
  /// They index something, so they are as small as tensors are. -1: of no family.
  void mark_bounded(int family);
  bool is_bounded(int family) const { return bounded_[root(family)]; }

 private:
  std::size_t root(int family) const;
  std::vector<int> parents_;
  std::vector<bool> bounded_;
};

/// Goes through a network in order, one object for each graph of it.
class Exactness {
 public:
  /// `outer`: of the graph around this one; null for the top graph.
  explicit Exactness(Exactness* outer);
  /// Before the nodes.
  void begin(const ::onnx::GraphProto& graph, ByteSpan constants);
  /// A node as it was given; `facts` know its inputs.
  void see(const ::onnx::NodeProto& node, int position, const FactsTable& facts);
  /// After the nodes of the top graph, whose outputs `facts` know: one warning for each kind of
  /// what is computed wrongly.
  std::vector<ImportFinding> finish(const ::onnx::GraphProto& graph, const FactsTable& facts);

 private:
  /// What is known of a value. Those without an entry are constants, or small.
  struct Trait {
    bool data = false;     ///< Depends on the content of an input, not on shapes alone.
    int family = -1;       ///< Of integers that may be wide.
    bool raw = false;      ///< Holds some as a caller gave them.
    bool inexact = false;  ///< Went through float32.
    bool beyond = false;   ///< A constant that does not fit into 32 bits.
    bool rounded = false;  ///< Cast to float16, and only moved since then.
    bool widened = false;  ///< Cast from a float to float64, and only moved since then.
    bool narrow = false;   ///< If of float64: made of floats, so that their rounding is in it.
  };
  enum class Kind : std::uint8_t { kDouble, kByte, kShift, kSlice, kQuantize, kConstant, kCount };
  /// What is wrong unless the integers turn out to be bounded.
  struct Doubt {
    int family;
    ImportFinding finding;
  };
  /// What all graphs of the network share.
  struct Shared {
    IntegerFamilies families;
    std::vector<ImportFinding> found;
    std::vector<Doubt> doubts;
    std::vector<ImportFinding> roundings;
    bool half_math = false;
    std::optional<ImportFinding> bfloat_cast;  ///< Of the first cast to bfloat16.
    /// A node other than a cast reads bfloat16. ONNX Runtime has few such operators.
    bool reads_bfloats = false;
    bool seen[static_cast<std::size_t>(Kind::kCount)] = {};
  };

  /// One node while it is looked at.
  struct View {
    const ::onnx::NodeProto& node;
    int position;
    const FactsTable& facts;
    std::int32_t elem(int i) const;
  };

  const Trait& of(const std::string& name) const;
  Trait moved(const View& v, unsigned inputs);
  void report(Kind kind, const View& v, const char* text);
  void doubt(int family, const View& v, const char* text);
  bool reads_wide_doubles(const View& v) const;
  void see_types(const View& v, bool data);
  void see_half(const View& v);
  Trait see_integers(const View& v);
  Trait see_math(const View& v);
  void see_comparison(const View& v);
  void learn_constant(const std::string& name, const ::onnx::TensorProto& tensor,
                      ByteSpan constants);

  Shared own_;
  Shared& shared_;
  Exactness* outer_;
  ByteSpan constants_;
  std::unordered_map<std::string, Trait> traits_;
};

}  // namespace corelane::onnx
