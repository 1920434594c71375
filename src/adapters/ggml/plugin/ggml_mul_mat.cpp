/// MUL_MAT: dst[i13][i12] (M, N) = src1[i13][i12] (M, K) x src0[i13 / r3][i12 / r2] (N, K), all row
/// by row.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string_view>

#include "adapters/ggml/plugin/ggml_cpu.h"
#include "adapters/ggml/plugin/ggml_plugin.h"

namespace corelane::ggml {
namespace {

/// So many rows of a weight's product go to the NPU in any case.
constexpr std::int64_t kFewRows = 8;

/// Rows whose elements lie beside each other.
bool has_rows(const abi::Tensor& tensor, const abi::TypeTraits& traits) {
  return tensor.nb[0] == traits.type_size && tensor.ne[0] % traits.blck_size == 0;
}

/// The matrix that gives each token of the vocabulary its likelihood, by the names that llama.cpp
/// and whisper.cpp give it.
bool is_vocabulary(const abi::Tensor& tensor) {
  static constexpr std::string_view kNames[] = {"output.weight", "token_embd.weight",
                                                "decoder.token_embedding.weight"};
  return std::find(std::begin(kNames), std::end(kNames), tensor.name) != std::end(kNames);
}

/// The rounding of int8 in the product with the vocabulary goes straight into the choice of the
/// token, where later layers cannot even it out. ggml's own quantizer keeps more bits there, too.
bool keeps_bits(const abi::Tensor& tensor, const abi::TypeTraits& traits) {
  const TypePolicy policy = plugin().options.type;
  return policy != TypePolicy::kF16 && policy != TypePolicy::kInt8 && traits.is_quantized &&
         is_vocabulary(tensor);
}

/// The bits of one element, with its part of the block's scales.
double bits_of(const abi::TypeTraits& traits) {
  return 8.0 * static_cast<double>(traits.type_size) / static_cast<double>(traits.blck_size);
}

/// Types of up to 4 bits with their scales, such as Q4_1 of 5; Q5_0 has 5.5.
constexpr double kFewBits = 5.25;

/// What a first matrix that is a weight becomes.
MmType type_of_weight(const abi::Tensor& b, const abi::TypeTraits& traits) {
  const TypePolicy policy = plugin().options.type;
  if (policy == TypePolicy::kF16) return MmType::kF16;
  if (policy == TypePolicy::kInt8) return MmType::kInt8;
  if (b.type == abi::kTypeF16 || keeps_bits(b, traits)) return MmType::kF16;
  return wants_int4(policy) && bits_of(traits) < kFewBits ? plugin().few_bits : MmType::kInt8;
}

/// With fewer rows than kFewRows a matrix that is not a weight goes as float16: it is copied to the
/// NPU for this one product, so int8 would save nothing, and the rounding of int8 does not average
/// out over the few sums. It never becomes int4, which is for weights alone.
MmType type_of_other(MmType weight, std::int64_t rows) {
  return weight == MmType::kF16 || rows < kFewRows ? MmType::kF16 : MmType::kInt8;
}

/// Whether the policy knows the type of a first matrix.
bool takes_type(int type, const abi::TypeTraits& traits) {
  if (type == abi::kTypeF16) return true;
  if (type == abi::kTypeF32 || type == abi::kTypeBF16)
    return plugin().options.type == TypePolicy::kF16;
  return traits.is_quantized && traits.to_float != nullptr;
}

/// What the rows of the second matrix become, as op_params[3] names it.
std::int32_t precision_of(MmType type) {
  switch (element_of_a(type)) {
    case MmElement::kF16:
      return abi::kPrecisionF16;
    case MmElement::kInt8:
      return abi::kPrecisionInt8;
    default:
      return abi::kPrecisionInt4;
  }
}

const char* name_of(MmType type) {
  static constexpr const char* kNames[] = {"f16", "int8", "int4", "int4x4"};
  static_assert(sizeof kNames / sizeof *kNames == kMmTypes);
  return kNames[static_cast<int>(type)];
}

MmMatrix matrix_of(const abi::Tensor& tensor, const abi::TypeTraits& traits, std::int64_t i2,
                   std::int64_t i3) {
  MmMatrix matrix;
  matrix.data = matrix_at(tensor, i2, i3);
  matrix.columns = tensor.ne[0];
  matrix.rows = tensor.ne[1];
  matrix.row_bytes = tensor.nb[1];
  matrix.form = tensor.type == abi::kTypeF32   ? RowForm::kFloats
                : tensor.type == abi::kTypeF16 ? RowForm::kHalves
                                               : RowForm::kOther;
  matrix.reader = traits.to_float;
  return matrix;
}

/// Rows one after another, also from one matrix to the next.
bool rows_follow(const abi::Tensor& tensor) {
  return (tensor.ne[2] == 1 ||
          tensor.nb[2] == tensor.nb[1] * static_cast<std::size_t>(tensor.ne[1])) &&
         (tensor.ne[3] == 1 ||
          tensor.nb[3] == tensor.nb[1] * static_cast<std::size_t>(tensor.ne[1] * tensor.ne[2]));
}

/// One first matrix for all the matrices of the second tensor, which lie as one does.
bool is_one_product(const abi::Tensor& node) {
  return node.src[0]->ne[2] * node.src[0]->ne[3] == 1 && rows_follow(*node.src[1]) &&
         rows_follow(node);
}

/// The rows of A in each product that the node is computed as.
std::int64_t rows_of(const abi::Tensor& node) {
  const abi::Tensor& a = *node.src[1];
  return is_one_product(node) ? a.ne[1] * a.ne[2] * a.ne[3] : a.ne[1];
}

/// `held`: the weight lies in a buffer of the plugin, which tells when it is freed. The host may
/// have freed another one by the time its weights are measured.
bool enough_rows(const abi::Tensor& weight, std::int64_t rows, bool held) {
  const std::int64_t least = plugin().options.min_rows;
  if (least > 0) return rows >= least;
  // As float16 it is more to read than as the host has it.
  const abi::TypeTraits& traits = *plugin().host->call.get_type_traits(weight.type);
  if (rows < kFewRows && keeps_bits(weight, traits)) return false;
  const bool single = held && weight.ne[2] * weight.ne[3] == 1 && weight.data != nullptr;
  return rows >= kFewRows || (single && plugin().few_rows->go_to_npu(weight));
}

/// A host that places weights asks with a buffer of no bytes.
bool is_to_be_placed(const abi::Tensor& weight) {
  const abi::Buffer* const buffer =
      weight.view_src != nullptr ? weight.view_src->buffer : weight.buffer;
  return buffer != nullptr && buffer->size == 0;
}

/// One that tests asks before there are any buffers, as one does that plans a graph, whose matrices
/// are then results of other nodes.
/// GPU: only weights in our buffer, so that the host's choice of layers counts.
Answer check_place(const abi::Tensor& node) {
  const abi::Tensor& weight = *node.src[0];
  const abi::Tensor& root = weight.view_src != nullptr ? *weight.view_src : weight;
  const abi::Buffer* const buffer = root.buffer;
  const bool computed = !plugin().host->is_view(root.op);
  if (buffer == nullptr && computed && !plugin().options.accel) return Answer::kNotWeights;
  if (buffer == nullptr || is_to_be_placed(weight)) return Answer::kYes;
  // Its copy on the NPU would stay what it was.
  if (((weight.flags | root.flags) & abi::kFlagParam) != 0) return Answer::kNotWeights;
  const bool held = buffer->buft == buffer_type() && buffer->usage == abi::kUsageWeights;
  if (!plugin().options.accel && !held) return Answer::kNotWeights;
  if (!enough_rows(weight, rows_of(node), held)) return Answer::kFewRows;
  if (lacks_room(weight) || plugin().engine->lacks_memory()) return Answer::kMemory;
  return Answer::kYes;
}

}  // namespace

Answer can_compute(const abi::Tensor& node) {
  const Host& host = *plugin().host;
  if (host.is_view(node.op)) return Answer::kYes;
  if (node.op != host.op_mul_mat) return Answer::kOperator;
  if (node.op_params[1] == abi::kHintHadamard) return Answer::kHint;
  if (node.op_params[0] == abi::kPrecisionF32) return Answer::kPrecision;
  const abi::Tensor& b = *node.src[0];
  const abi::Tensor& a = *node.src[1];
  const abi::TypeTraits& traits = *host.call.get_type_traits(b.type);
  if (!takes_type(b.type, traits) || node.type != abi::kTypeF32 ||
      (a.type != abi::kTypeF32 && a.type != abi::kTypeF16))
    return Answer::kType;
  const std::int32_t coarsest = node.op_params[3];
  if (coarsest != 0 && coarsest < precision_of(type_of_weight(b, traits)))
    return Answer::kPrecision;
  if (b.ne[0] == 0 || !has_rows(b, traits) || !has_rows(a, *host.call.get_type_traits(a.type)) ||
      node.nb[0] != sizeof(float))
    return Answer::kLayout;
  const Filter& filter = plugin().filter;
  if (!(is_to_be_placed(b) ? filter.passes_weight(b) : filter.passes(node))) return Answer::kFilter;
  return check_place(node);
}

void trace(const abi::Tensor& node, const abi::Tensor& a, MmType type, bool weight, bool on_npu) {
  log_later(abi::kLogInfo, std::string(node.name) + ": M " + std::to_string(a.ne[1]) + ", K " +
                               std::to_string(a.ne[0]) + ", N " + std::to_string(node.ne[0]) +
                               ", " + name_of(type) + (weight ? ", weight" : "") +
                               (on_npu ? "" : ", computed on the CPU"));
}

/// exit() may come while another thread computes. The libraries below make some of their statics at
/// their first product of a type: a function that is registered after that is called before they
/// go.
void stop_at_exit(MmType type) {
  static std::once_flag registered[kMmTypes];
  std::call_once(registered[static_cast<int>(type)], [] {
    std::atexit([] {
      if (!is_forked()) plugin().engine->stop(std::chrono::seconds(2));
    });
  });
}

/// Made when it is needed first, and never destroyed: threads may compute until the end.
HostCpu& host_cpu() {
  static HostCpu& cpu = *new HostCpu(*plugin().host);
  return cpu;
}

/// Of one matrix of a node where the NPU does not compute it: the host's own backend is quicker
/// than the definition. Null where it does not multiply these types.
MmFallback on_host_cpu(const abi::Tensor& b, const abi::Tensor& a, const MmMatrix& b_matrix,
                       const MmMatrix& a_matrix, float* c, std::size_t c_row_bytes) {
  if (!HostCpu::takes(b.type, a.type)) return nullptr;
  const auto place = [](const abi::Tensor& tensor, const MmMatrix& matrix) {
    return CpuMatrix{tensor.type, matrix.columns, matrix.rows, matrix.row_bytes,
                     const_cast<void*>(matrix.data)};
  };
  const CpuProduct product{place(b, b_matrix),
                           place(a, a_matrix),
                           {abi::kTypeF32, b_matrix.rows, a_matrix.rows, c_row_bytes, c}};
  // Hosts without OpenMP start threads for each graph.
  constexpr std::int64_t kWorthThreads = 1 << 24;
  const bool large = a_matrix.rows * b_matrix.rows * b_matrix.columns >= kWorthThreads;
  const int threads = large ? plugin().engine->threads() : 1;
  return [product, threads] { return host_cpu().compute({product}, threads) >= 0; };
}

/// The matrices of `a` that one matrix of the first tensor is multiplied with: a range of each of
/// the upper dimensions.
struct Slices {
  std::int64_t begin2, end2, begin3, end3;
};

/// B is brought to the NPU once for all the matrices that it is multiplied with.
void compute_matrix(const abi::Tensor& node, const abi::Tensor& b, const abi::Tensor& a,
                    const MmMatrix& matrix, const Slices& slices, bool counted) {
  const abi::TypeTraits& a_traits = *plugin().host->call.get_type_traits(a.type);
  const MmType type = type_of_weight(b, *plugin().host->call.get_type_traits(b.type));
  const auto weight = weight_of(b, matrix, type);
  const MmType used = weight == nullptr ? type_of_other(type, a.ne[1]) : type;
  const bool to_cpu =
      weight == nullptr && lacks_room(b) && HostCpu::takes(b.type, a.type) && host_cpu().is_there();
  MmEngine::Products products(*plugin().engine, matrix, used, weight.get(), !to_cpu);
  for (std::int64_t j3 = slices.begin3; j3 < slices.end3; ++j3)
    for (std::int64_t j2 = slices.begin2; j2 < slices.end2; ++j2) {
      auto* c = reinterpret_cast<float*>(static_cast<char*>(node.data) +
                                         static_cast<std::size_t>(j2) * node.nb[2] +
                                         static_cast<std::size_t>(j3) * node.nb[3]);
      const MmMatrix rows = matrix_of(a, a_traits, j2, j3);
      const bool on_npu =
          products.multiply(rows, c, node.nb[1], on_host_cpu(b, a, matrix, rows, c, node.nb[1]));
      stop_at_exit(used);
      if (!counted) continue;
      plugin().stats.offloaded(weight != nullptr, element_of_b(used) == MmElement::kInt4);
      if (plugin().options.trace) trace(node, a, used, weight != nullptr, on_npu);
    }
}

void compute(const abi::Tensor& node, bool counted) {
  if (node.ne[0] * node.ne[1] * node.ne[2] * node.ne[3] == 0) return;
  const abi::Tensor& b = *node.src[0];
  const abi::TypeTraits& traits = *plugin().host->call.get_type_traits(b.type);
  abi::Tensor a = *node.src[1];
  if (is_one_product(node)) {
    a.ne[1] *= a.ne[2] * a.ne[3];
    a.ne[2] = a.ne[3] = 1;
  }
  const std::int64_t r2 = a.ne[2] / b.ne[2];
  const std::int64_t r3 = a.ne[3] / b.ne[3];
  for (std::int64_t i3 = 0; i3 < b.ne[3]; ++i3)
    for (std::int64_t i2 = 0; i2 < b.ne[2]; ++i2)
      compute_matrix(node, b, a, matrix_of(b, traits, i2, i3),
                     {i2 * r2, (i2 + 1) * r2, i3 * r3, (i3 + 1) * r3}, counted);
  forget_weights_in(node);
}

}  // namespace corelane::ggml
