#include "adapters/qaic/program/qaic_padding.h"

#include <cstring>
#include <utility>

namespace corelane::qaic {
namespace {

std::size_t elements(std::span<const std::uint32_t> dims) {
  std::size_t count = 1;
  for (const std::uint32_t d : dims) count *= d;
  return count;
}

/// Calls `row(place in the whole, place in the box, bytes)` for each row of the box.
template <class Row>
void each_row(const Padding& box, const Row& row) {
  const std::size_t rank = box.given.size();
  if (elements(box.given) == 0) return;
  const std::size_t bytes = (rank == 0 ? 1 : box.given.back()) * box.element;
  std::vector<std::uint32_t> at(rank, 0);
  std::size_t inside = 0;
  for (;;) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < rank; ++d) place = place * box.whole[d] + at[d];
    row(place * box.element, inside, bytes);
    inside += bytes;
    // The next row: the last dimension but one counts fastest.
    std::size_t d = rank < 2 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] == box.given[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

Padding::Padding(Dims whole_dims, Dims given_dims, std::size_t element_bytes)
    : whole(std::move(whole_dims)),
      given(std::move(given_dims)),
      element(element_bytes),
      memory(elements(whole) * element) {}

void Padding::put(const std::uint8_t* user) {
  each_row(*this, [&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(memory.data() + place, user + inside, bytes);
  });
}

void Padding::cut(std::uint8_t* user) const {
  each_row(*this, [&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(user + inside, memory.data() + place, bytes);
  });
}

}  // namespace corelane::qaic
