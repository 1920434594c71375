/// A matrix product C(M, N) = A(M, K) x B(K, N) as an image that a device prepares and runs.
///
/// An image of kind kMatmulKind holds an encoded MatmulDesc and nothing else: no matrix. The
/// executable has the inputs 0 "A" and 1 "B" and the output 0 "C", with the shapes, types and byte
/// counts of describe(). A device that takes such images lists the kind in
/// Capabilities::image_kinds. Preparing one is cheap (no matrix is touched): a caller with several
/// M prepares one executable for each.
///
/// **B is kept.** Bindings::set_input(1, ref) announces a new B, also when `ref` is the one that is
/// bound already. The next run reads the memory of `ref` and keeps a form of its own ("packed");
/// runs after it do not look at the memory again, so that what is written there afterwards has no
/// effect until set_input(1) is called again. For a job that waits for fences, B is the content of
/// the memory when they are signalled. Executables and bindings of one device that use the
/// same B share one packed copy, whatever their core sets, C and M (but one for M up to 4 and one
/// for more where the sums are floats): same address, byte count, K, N, type, layout and, for
/// floats, quantization. A set_input(1) by any of them makes the copy stale for all; a run that has
/// begun finishes with the old one. The copy is freed with its last user (bindings that are
/// destroyed or given another B) and is counted once, in MemoryFigures::weights of one of the
/// executables that use it. A and C are used where they lie, aligned to their element type; they
/// must not overlap.
///
/// **Arithmetic.** a = A - zpA and b = B - zpB are the integers, or the f16 values as they are.
///  - C of i32 or i16: sum of a * b, exact (i16: saturated); scales do not enter.
///  - C of i8: clamp(round_half_even(sum(a * b) * sA * sB / sC) + zpC, -128, 127), the sum exact,
///    sA * sB / sC in f64; with groups, the sum of sB * a * b is f32 and may be one step off.
///  - C of float, integer A, per layer or channel: the exact sum times sA * sB, relative error
///    at most 2^-22 before it is rounded to C. The largest f32 stands for a larger sA * sB.
///  - otherwise: f32 arithmetic in any order; absolute error at most
///    (K + 4) * 2^-24 * sum(|a * sA| * |b * sB|) before it is rounded to C. f16 and bf16 of C round
///    to nearest even.
/// Infinities and NaN in an f16 A or B propagate as IEEE-754 says.
///
/// All functions here: any thread, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane::device {

/// Image::kind of a matrix product.
inline constexpr std::string_view kMatmulKind = "matmul";

/// Where the elements of B lie.
enum class MatmulLayoutB : std::uint8_t {
  kNormal = 0,      ///< (K, N), row major.
  kTransposed = 1,  ///< (N, K), row major.
  kNative = 2,      ///< (N/nb, K/kb, nb, kb), one such array for each segment of K.
};

/// For what part of B a scale and zero point hold.
enum class MatmulQuantB : std::uint8_t {
  kLayer = 0,    ///< One for all.
  kChannel = 1,  ///< One for each n: length N.
  kGroup = 2,    ///< One for each n and each group_size consecutive k: [k / group_size][n], row
                 ///< major, length ceil(K / group_size) * N.
};

/// A matrix product. A value; check() tests whether it makes sense.
///
/// Types (A x B -> C): f16 f16 -> f32, f16; i8 i8 -> i32, i8, f32; f16 i8 -> f32, f16;
/// f16 i4 -> f32, f16, bf16; i8 i4 -> i32, f16; i4 i4 -> i16.
///
/// Blocked ("native") forms are padded where K or N is not a multiple of the block: padding of A
/// and B is not read as numbers, padding of C is written as 0. 4-bit elements lie two to a byte
/// over the whole array in memory order, the even one in the low nibble.
struct CORELANE_API MatmulDesc {
  std::int64_t m = 0;  ///< Each of m, k, n: 1 to 2^24; all arrays together below 2^40 bytes.
  std::int64_t k = 0;  ///< For integer A at most 32768.
  std::int64_t n = 0;
  DType a = DType::kUndefined;
  DType b = DType::kUndefined;
  DType c = DType::kUndefined;

  /// 0: A is (M, K), row major. Else its block s: A is (K/s, M, s).
  std::uint32_t a_block = 0;
  /// 0: C is (M, N), row major. Else its block s: C is (N/s, M, s).
  std::uint32_t c_block = 0;
  MatmulLayoutB b_layout = MatmulLayoutB::kNormal;
  std::uint32_t b_block_n = 0;  ///< kNative: nb, 1 to 1024.
  std::uint32_t b_block_k = 0;  ///< kNative: kb, 1 to 1024.
  /// kNative: K is cut into segments of this many rows, each laid out by itself, one after the
  /// other; a multiple of b_block_k, or 0 for one segment. The last may be shorter.
  std::uint32_t k_segment = 0;

  float a_scale = 1.0F;           ///< Integer A only, else 1. Finite, > 0.
  std::int32_t a_zero_point = 0;  ///< Within the type of A; integer A only.
  float c_scale = 1.0F;           ///< C of i8 only, else 1.
  std::int32_t c_zero_point = 0;

  MatmulQuantB b_quant = MatmulQuantB::kLayer;  ///< kGroup: not with C of i32 or i16.
  std::uint32_t group_size = 0;                 ///< kGroup: rows per group, 1 to K; else 0.
  /// As many as b_quant asks for; empty: 1 (kLayer only). Finite, > 0. Integer B only.
  std::vector<float> b_scales;
  /// As many as b_scales, each within the type of B, or empty for 0 (symmetric). Integer B only.
  std::vector<std::int32_t> b_zero_points;

  bool operator==(const MatmulDesc&) const = default;

  /// kUnsupported for a combination of types not listed above; kInvalidArgument names the member,
  /// its value and what is allowed.
  Status check() const;

  /// Scales that b_quant asks for: 1, N, or groups x N.
  std::size_t b_scale_count() const noexcept;
  /// "i8(1x4096) x i8(4096x4096) -> i32".
  std::string to_string() const;
};

/// What an executable reports: "A", "B", "C" in plain layout, with the dimensions in memory order.
/// TensorDesc::bytes() gives the bytes of each. Quant is set for A and C (integers with a scale)
/// and for B where it is per layer.
struct MatmulTensors {
  TensorDesc a;
  TensorDesc b;
  TensorDesc c;
};
/// The tensors of a description that check() accepts; else the failure of check().
CORELANE_API Result<MatmulTensors> describe(const MatmulDesc& desc);

/// Index of an element in its array in memory order (4-bit: two to a byte). The description is
/// valid and the indices within it.
CORELANE_API std::size_t a_index(const MatmulDesc& desc, std::int64_t m, std::int64_t k) noexcept;
/// The same for B.
CORELANE_API std::size_t b_index(const MatmulDesc& desc, std::int64_t k, std::int64_t n) noexcept;
/// The same for C.
CORELANE_API std::size_t c_index(const MatmulDesc& desc, std::int64_t m, std::int64_t n) noexcept;

/// Moves B from the layout of `from` to that of `to`, which have the same k, n and b; m, A and C
/// are not looked at. Padding becomes 0. kInvalidArgument when they differ or a size is too small.
CORELANE_API Status relayout_b(const MatmulDesc& from, ByteSpan source, const MatmulDesc& to,
                               MutableByteSpan target);

/// The bytes of Image::bytes. The description is not checked: prepare() does.
CORELANE_API ByteVector encode(const MatmulDesc& desc);
/// The inverse, checked: kMalformed for bytes that are not such an image (with the offset),
/// kVersionMismatch, or the failure of check().
CORELANE_API Result<MatmulDesc> decode_matmul(ByteSpan bytes);

}  // namespace corelane::device
