#include "adapters/ggml/mm/mm_matrix.h"

#include <cstring>
#include <vector>

#include "adapters/ggml/mm/mm_convert.h"

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

/// A is read once as a whole: B is larger, and its rows are dear to read.
void multiply_plainly(const MmMatrix& a, const MmMatrix& b, float* c, std::size_t c_row_bytes) {
  const auto k = static_cast<std::size_t>(a.columns);
  std::vector<float> rows(static_cast<std::size_t>(a.rows) * k);
  for (std::int64_t m = 0; m < a.rows; ++m)
    read_row(a, m, rows.data() + static_cast<std::size_t>(m) * k);
  std::vector<float> column(k);
  for (std::int64_t n = 0; n < b.rows; ++n) {
    read_row(b, n, column.data());
    for (std::int64_t m = 0; m < a.rows; ++m) {
      const float* row = rows.data() + static_cast<std::size_t>(m) * k;
      float sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += row[i] * column[i];
      auto* out = reinterpret_cast<float*>(reinterpret_cast<char*>(c) +
                                           static_cast<std::size_t>(m) * c_row_bytes);
      out[n] = sum;
    }
  }
}

}  // namespace corelane::ggml
