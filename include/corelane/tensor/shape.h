/// Shapes: lists of dimensions, -1 for one that is open (dynamic) in a description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"

namespace corelane {

/// A rank and its dimensions. A value; rank 0 is a scalar of one element.
class CORELANE_API Shape {
 public:
  static constexpr std::int64_t kOpen = -1;

  Shape() = default;
  /// From dimensions, the slowest first; kOpen marks an open one.
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  /// As above.
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}
  /// As above, copied.
  explicit Shape(std::span<const std::int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  /// The number of dimensions; 0 for a scalar.
  std::size_t rank() const noexcept { return dims_.size(); }
  /// Dimension `i`, which must be below rank().
  std::int64_t operator[](std::size_t i) const noexcept { return dims_[i]; }
  /// Dimension `i`, to be changed.
  std::int64_t& operator[](std::size_t i) noexcept { return dims_[i]; }
  /// All dimensions.
  const std::vector<std::int64_t>& dims() const noexcept { return dims_; }

  /// True when no dimension is open.
  bool is_static() const noexcept;
  /// The product of the dimensions; nullopt when one is open or negative, or it overflows.
  std::optional<std::size_t> elements() const noexcept;
  /// True when `other` is static and equals this one wherever this one is not open.
  bool accepts(const Shape& other) const noexcept;
  /// "[1, 3, 224, 224]", an open dimension as "?".
  std::string to_string() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> dims_;
};

/// Parses "1,3,224,224" or "1x3x224x224" ('?' or '-1' for open); kInvalidArgument with the token.
CORELANE_API Result<Shape> parse_shape(std::string_view text);

}  // namespace corelane
