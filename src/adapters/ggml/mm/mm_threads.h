/// Loops over rows on several threads.
///
/// With OpenMP: a host that is built with it computes on the pool of the thread that calls us, and
/// so do these loops; threads of another pool would compete with that one, whose threads spin while
/// they wait. Without OpenMP the calling thread does all rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace corelane::ggml {

/// Rows that are worth a thread.
inline constexpr std::int64_t kLeastRows = 16;

/// How many ranges for_rows() makes: no more than threads, none of fewer than kLeastRows but the
/// last.
inline std::int64_t row_parts(int threads, std::int64_t count) {
  return std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(1, count / kLeastRows));
}

/// body(part, begin, end) for consecutive ranges that cover [0, count), numbered from 0. `body`
/// must not throw: its memory is made before.
template <class Body>
void for_rows(int threads, std::int64_t count, Body&& body) {
  const std::int64_t parts = row_parts(threads, count);
  if (parts == 1) return body(std::size_t{0}, std::int64_t{0}, count);
  const std::int64_t step = (count + parts - 1) / parts;
#ifdef _OPENMP
#pragma omp parallel for num_threads(static_cast<int>(parts)) schedule(static, 1)
#endif
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = std::min(count, part * step);
    const std::int64_t end = std::min(count, begin + step);
    if (begin < end) body(static_cast<std::size_t>(part), begin, end);
  }
}

/// body(index) for each index below `count`, all at the same time where there are threads for it.
/// `body` must not throw. A single one runs outside of OpenMP: inside, a library that uses it, too,
/// would start threads anew for each call in place of taking those of the pool.
template <class Body>
void for_each_of(std::size_t count, Body&& body) {
  if (count == 1) return body(std::size_t{0});
#ifdef _OPENMP
#pragma omp parallel for num_threads(static_cast<int>(count)) schedule(static, 1)
#endif
  for (std::size_t index = 0; index < count; ++index) body(index);
}

}  // namespace corelane::ggml
