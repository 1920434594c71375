/// A buffer that is smaller than the specialization that runs: a box in a larger one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/box.h"

namespace corelane::qaic {

/// Memory of the size that the specialization wants, and the user's beside it.
struct Padding {
  /// Zeros of the whole.
  explicit Padding(Box of);
  /// The user's box to its place; outside of it there are zeros.
  void put(const std::uint8_t* user);
  /// What lies at its place into the user's box.
  void cut(std::uint8_t* user) const;

  const Box box;
  std::vector<std::uint8_t> memory;
};

/// Memory that an inference uses.
using Paddings = std::vector<std::shared_ptr<const Padding>>;

/// Results to be cut once the inference has ended well.
struct Cut {
  std::shared_ptr<const Padding> from;
  std::uint8_t* to = nullptr;
};
using Cuts = std::vector<Cut>;

}  // namespace corelane::qaic
