#include "adapters/ggml/mm/mm_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/mm/mm_threads.h"

namespace corelane::ggml {

void read_row(const MmMatrix& matrix, std::int64_t row, float* out) {
  const auto count = static_cast<std::size_t>(matrix.columns);
  switch (matrix.form) {
    case RowForm::kFloats:
      std::memcpy(out, matrix.row(row), count * sizeof(float));
      return;
    case RowForm::kHalves:
      halves_to_floats(static_cast<const std::uint16_t*>(matrix.row(row)), count, out);
      return;
    case RowForm::kOther:
      matrix.reader(matrix.row(row), out, matrix.columns);
      return;
  }
}

namespace {

/// In several sums, which the compiler keeps in one vector.
float sum_of_products(const float* x, const float* y, std::size_t count) {
  constexpr std::size_t kSums = 16;
  float sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += x[i + j] * y[i + j];
  float sum = 0;
  for (; i < count; ++i) sum += x[i] * y[i];
  for (const float part : sums) sum += part;
  return sum;
}

/// Rows of B that are read at a time, so that A is gone through less often.
constexpr std::int64_t kTogether = 4;

}  // namespace

/// A is read once as a whole: B is larger, and its rows are dear to read.
void multiply_plainly(const MmMatrix& a, const MmMatrix& b, float* c, std::size_t c_row_bytes,
                      int threads) {
  const auto k = static_cast<std::size_t>(a.columns);
  std::vector<float> rows(static_cast<std::size_t>(a.rows) * k);
  for (std::int64_t m = 0; m < a.rows; ++m)
    read_row(a, m, rows.data() + static_cast<std::size_t>(m) * k);
  std::vector<float> columns(static_cast<std::size_t>(row_parts(threads, b.rows) * kTogether) * k);
  for_rows(threads, b.rows, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    float* const own = columns.data() + part * static_cast<std::size_t>(kTogether) * k;
    for (std::int64_t n = begin; n < end; n += kTogether) {
      const std::int64_t count = std::min(kTogether, end - n);
      for (std::int64_t j = 0; j < count; ++j)
        read_row(b, n + j, own + static_cast<std::size_t>(j) * k);
      for (std::int64_t m = 0; m < a.rows; ++m) {
        auto* out = reinterpret_cast<float*>(reinterpret_cast<char*>(c) +
                                             static_cast<std::size_t>(m) * c_row_bytes);
        const float* row = rows.data() + static_cast<std::size_t>(m) * k;
        for (std::int64_t j = 0; j < count; ++j)
          out[n + j] = sum_of_products(row, own + static_cast<std::size_t>(j) * k, k);
      }
    }
  });
}

}  // namespace corelane::ggml
