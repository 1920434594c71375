/// A matrix of the host, row by row, in whatever element type it has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corelane::ggml {

/// Reads a row of `count` elements as floats.
using RowReader = void (*)(const void* row, float* out, std::int64_t count);

enum class RowForm {
  kFloats,  ///< binary32
  kHalves,  ///< binary16
  kOther,   ///< By the reader.
};

/// Owns nothing. The elements of a row lie beside each other.
struct MmMatrix {
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::size_t row_bytes = 0;  ///< From one row to the next.
  RowForm form = RowForm::kFloats;
  RowReader reader = nullptr;  ///< kOther.

  const void* row(std::int64_t index) const {
    return static_cast<const char*>(data) + static_cast<std::size_t>(index) * row_bytes;
  }
};

/// Columns [0, columns) of a row as floats.
void read_row(const MmMatrix& matrix, std::int64_t row, float* out);

/// The product by definition, sums in f32: what is computed where the NPU failed. C is (rows of A,
/// rows of B), `c_row_bytes` from row to row.
void multiply_plainly(const MmMatrix& a, const MmMatrix& b, float* c, std::size_t c_row_bytes,
                      int threads);

}  // namespace corelane::ggml
