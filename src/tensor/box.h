/// A box in a tensor: which elements of it somebody means who gives, or takes, a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/shape.h"

namespace corelane {

/// In each dimension `extent` elements from `start` on. The box itself lies densely.
struct Box {
  Shape whole;  ///< Static, and so is `extent`.
  std::vector<std::int64_t> start;
  Shape extent;
  std::size_t element = 1;  ///< Bytes.

  /// Bytes of the box alone, and of the tensor; both shapes are static and fit into memory.
  std::size_t bytes() const noexcept { return extent.elements().value_or(0) * element; }
  std::size_t whole_bytes() const noexcept { return whole.elements().value_or(0) * element; }
  bool is_whole() const noexcept { return extent == whole; }
  bool operator==(const Box&) const = default;
  /// kInvalidArgument where the ranks differ, kOutOfRange with the first dimension that it leaves.
  CORELANE_API Status check() const;

  /// Calls `row(place in the tensor, place in the box, bytes)` for each row of a box that check()
  /// passes.
  template <class Row>
  void each_row(const Row& row) const;
};

template <class Row>
void Box::each_row(const Row& row) const {
  const std::size_t rank = extent.rank();
  if (bytes() == 0) return;
  const std::size_t row_bytes =
      (rank == 0 ? 1 : static_cast<std::size_t>(extent[rank - 1])) * element;
  std::vector<std::int64_t> at(rank, 0);
  std::size_t inside = 0;
  for (;;) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < rank; ++d) place = place * whole[d] + start[d] + at[d];
    row(static_cast<std::size_t>(place) * element, inside, row_bytes);
    inside += row_bytes;
    // The next row: the last dimension but one counts fastest.
    std::size_t d = rank < 2 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] == extent[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace corelane
