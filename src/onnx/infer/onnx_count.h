/// Numbers of elements and operations, of which some are not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "corelane/tensor/shape.h"

namespace corelane::onnx {

/// nullopt: not known, or too large to be counted.
using Count = std::optional<std::uint64_t>;

inline Count product_of(const Count& a, const Count& b) {
  std::uint64_t r = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}

inline Count sum_of(const Count& a, const Count& b) {
  std::uint64_t r = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &r)) return std::nullopt;
  return r;
}

inline Count elements_of(const std::optional<Shape>& shape) {
  if (!shape) return std::nullopt;
  const auto n = shape->elements();
  return n ? Count(*n) : std::nullopt;
}

/// Dimension `i`; nullopt also where it is open, or not there.
inline Count dim_of(const std::optional<Shape>& shape, std::size_t i) {
  if (!shape || i >= shape->rank() || (*shape)[i] < 0) return std::nullopt;
  return static_cast<std::uint64_t>((*shape)[i]);
}

}  // namespace corelane::onnx
