/// A buffer that is smaller than the specialization that runs: a box in the corner of a larger one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace corelane::qaic {

/// Memory of the size that the specialization wants, and the user's beside it.
struct Padding {
  using Dims = std::vector<std::uint32_t>;

  /// Zeros of `whole`. `given` is of the same rank, and nowhere larger.
  Padding(Dims whole_dims, Dims given_dims, std::size_t element_bytes);
  /// The user's box into the corner; outside of it there are zeros.
  void put(const std::uint8_t* user);
  /// The corner into the user's box.
  void cut(std::uint8_t* user) const;

  const Dims whole;
  const Dims given;
  const std::size_t element;
  std::vector<std::uint8_t> memory;
};

/// Results to be cut once the inference has ended well.
struct Cut {
  std::shared_ptr<const Padding> from;
  std::uint8_t* to = nullptr;
};
using Cuts = std::vector<Cut>;

}  // namespace corelane::qaic
