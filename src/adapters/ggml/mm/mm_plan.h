/// How a product of any size becomes products that the library takes: pure functions of sizes.
///
/// C(M, N) = A(M, K) x B(N, K): B lies row by row as weights do. The library wants K in multiples
/// of 32 and N in multiples of 16, 32 or 64 (rknn_matmul_api.h), K up to 10240. K and N are padded
/// with zeros; longer K are cut and the parts added; N is cut where C would grow too large; M goes
/// in buckets, since each M is a shape that the library prepares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace corelane::ggml {

/// What a product is made of on the NPU.
enum class MmType {
  kF16,   ///< A and B float16, C float.
  kInt8,  ///< A and B int8, C int32.
  kW4A8,  ///< B int4, A int8, C int32.
  kW4A4,  ///< A and B int4, C int16.
};
constexpr int kMmTypes = 4;

/// The element types of A and B. Two int4 share a byte, the first in its low half.
enum class MmElement { kF16, kInt8, kInt4 };

inline MmElement element_of_a(MmType type) {
  return type == MmType::kF16    ? MmElement::kF16
         : type == MmType::kW4A4 ? MmElement::kInt4
                                 : MmElement::kInt8;
}
inline MmElement element_of_b(MmType type) {
  return type == MmType::kF16    ? MmElement::kF16
         : type == MmType::kInt8 ? MmElement::kInt8
                                 : MmElement::kInt4;
}
/// The bytes of `count` elements beside each other; `count` is even.
inline std::size_t bytes_of(MmElement element, std::int64_t count) {
  const auto halves = static_cast<std::size_t>(count) / 2;
  return element == MmElement::kF16    ? halves * 4
         : element == MmElement::kInt8 ? halves * 2
                                       : halves;
}
inline std::size_t c_element_bytes(MmType type) { return type == MmType::kW4A4 ? 2 : 4; }

struct MmLimits {
  std::int64_t max_k = 10240;      ///< Of one product; the API's own limit.
  std::int64_t max_k_int16 = 640;  ///< Of kW4A4: so many products of 7 x 7 fit 16 bits.
  std::int64_t k_multiple = 32;    ///< Of the board with the widest alignment.
  std::int64_t n_multiple = 32;    ///< B of int8; of f16 half of it, of int4 twice as many.
  std::int64_t max_n = 16384;      ///< So that C of the largest bucket stays below 32 MiB.
  std::int64_t max_rows = 512;     ///< The largest bucket of M.
};

/// A part of B that is one product.
struct MmTile {
  std::int64_t k0 = 0;        ///< Where its columns begin in B.
  std::int64_t k = 0;         ///< Columns of B that it covers.
  std::int64_t padded_k = 0;  ///< Columns that the library sees; zeros beyond k.
  std::int64_t n0 = 0;        ///< The same for rows of B.
  std::int64_t n = 0;
  std::int64_t padded_n = 0;
  /// The bytes of B.
  std::size_t bytes(MmType type) const { return bytes_of(element_of_b(type), padded_k * padded_n); }
};

struct MmPlan {
  MmType type = MmType::kF16;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t padded_k = 0;  ///< Of a whole row of A: the parts along K one after another.
  std::vector<MmTile> tiles;  ///< Those of one part of N beside each other, by K.
  /// True where B is used as it lies: one part along K and nothing padded.
  bool in_place = false;
};

/// K and N are 1 or more. `parts`: N is cut into at least so many, as far as its multiples allow:
/// one for each core where the library takes no mask of several.
MmPlan plan_product(MmType type, std::int64_t k, std::int64_t n, int parts = 1,
                    const MmLimits& limits = {});

/// The sizes of M that a context is made with, smallest first. Small ones are not among them:
/// sums of floats keep a second packed copy of B for up to 4 rows. `single`: 1 is, too.
std::vector<std::int64_t> row_buckets(bool single, const MmLimits& limits = {});
/// The bucket for the next rows where `rows` are left: the smallest that holds them all, else the
/// largest one that they fill.
std::int64_t next_bucket(std::int64_t rows, const std::vector<std::int64_t>& buckets);

}  // namespace corelane::ggml
