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

/// A user's input to be copied to its place. It keeps both memories alive.
struct Put {
  std::shared_ptr<Padding> to;
  const std::uint8_t* from = nullptr;
  std::shared_ptr<const void> keep;  ///< Of `from`; null: its user keeps it.
};
using Puts = std::vector<Put>;

/// Memory that an inference uses.
using Paddings = std::vector<std::shared_ptr<const Padding>>;

/// Results to be cut once the inference has ended well.
struct Cut {
  std::shared_ptr<const Padding> from;
  std::uint8_t* to = nullptr;
};
using Cuts = std::vector<Cut>;

}  // namespace corelane::qaic
