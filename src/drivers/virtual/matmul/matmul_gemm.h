/// The plain product C(M, N) = A(M, K) x B(K, N) of row-major A and C with a packed B: by oneDNN,
/// or by matmul_kernels.h where oneDNN's sums of 8-bit integers would saturate, and where so few
/// rows are multiplied that the time goes into reading B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "drivers/virtual/matmul/matmul_memory.h"

namespace corelane::drivers::virtual_npu {

/// The kernel that B is packed for.
enum class GemmForm : std::uint8_t {
  kF32,     ///< oneDNN, f32 x f32 -> f32.
  kI8,      ///< oneDNN, i8 x i8 -> i32; few rows: multiply_quads(), on the same copy.
  kPanels,  ///< multiply_i8(), i8 x i8 -> i32.
  kLean,    ///< multiply_lean(), f32 x (f16 or i8) -> f32, for few rows.
};

/// Sums are i32.
constexpr bool sums_integers(GemmForm form) noexcept {
  return form == GemmForm::kI8 || form == GemmForm::kPanels;
}

/// kI8 where oneDNN multiplies 8-bit integers without saturating in between (instructions that add
/// to 32 bits at once, "VNNI"), else kPanels.
GemmForm integer_form(std::int64_t k, std::int64_t n);

dnnl::engine& gemm_engine();

/// oneDNN's layout of B for all M and numbers of threads. kF32 or kI8. Throws dnnl::error.
dnnl::memory::desc packed_layout(GemmForm form, std::int64_t k, std::int64_t n);

/// B in a form; immutable and used by any number of threads.
struct PackedB {
  GemmForm form = GemmForm::kF32;
  Block block;                            ///< The elements.
  dnnl::memory weights;                   ///< kF32, kI8: `block`.
  std::vector<std::int32_t> column_sums;  ///< kI8, kPanels: of the integers of B.
  bool halves = false;                    ///< kLean: as in MultiplyLean, with the next three.
  std::size_t group = 0;
  std::vector<float> scales;
  std::vector<std::int32_t> zeros;
  std::size_t bytes = 0;  ///< All of it.
};

/// One product for one M and number of threads. One call at a time.
class Gemm {
 public:
  /// Within a ThreadScope of `threads`. Throws dnnl::error.
  Gemm(GemmForm form, std::int64_t m, std::int64_t k, std::int64_t n, std::size_t threads);
  /// The same. `a` and `c` as the form says, row major.
  void run(const void* a, const PackedB& b, void* c);

  std::size_t threads() const noexcept { return threads_; }
  std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// "brg:avx512_core_vnni", as oneDNN names it.
  const std::string& kernel() const noexcept { return kernel_; }

 private:
  void run_lean(const float* a, const PackedB& b, float* c) const;
  void run_panels(const std::int8_t* a, const PackedB& b, std::int32_t* c);
  void run_quads(const std::int8_t* a, const PackedB& b, std::int32_t* c);

  GemmForm form_;
  std::size_t m_;
  std::size_t k_;
  std::size_t n_;
  std::size_t threads_;
  std::size_t scratch_bytes_ = 0;
  bool quads_ = false;  ///< kI8 by multiply_quads().
  std::string kernel_;
  dnnl::matmul product_;
  dnnl::stream stream_;
  dnnl::memory a_;
  dnnl::memory c_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<std::int32_t> packed_a_;  ///< As multiply_i8() or multiply_quads() takes it.
};

}  // namespace corelane::drivers::virtual_npu
