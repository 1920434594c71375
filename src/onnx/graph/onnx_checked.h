/// Arithmetic on sizes that a file declares: they may be as large as an integer gets.
#pragma once

#include <cstdint>
#include <vector>

#include "corelane/tensor/shape.h"

namespace corelane::onnx {

/// An integer that remembers that a step on its way overflowed.
class Checked {
 public:
  constexpr Checked(std::int64_t value) : value_(value) {}  // NOLINT: numbers are meant to fit.

  constexpr Checked operator+(Checked other) const {
    Checked r(0);
    r.good_ = !__builtin_add_overflow(value_, other.value_, &r.value_) && good_ && other.good_;
    return r;
  }
  constexpr Checked operator-(Checked other) const {
    Checked r(0);
    r.good_ = !__builtin_sub_overflow(value_, other.value_, &r.value_) && good_ && other.good_;
    return r;
  }
  constexpr Checked operator*(Checked other) const {
    Checked r(0);
    r.good_ = !__builtin_mul_overflow(value_, other.value_, &r.value_) && good_ && other.good_;
    return r;
  }

  /// True for a value in `least`..`most` that did not overflow.
  constexpr bool is_within(std::int64_t least, std::int64_t most) const {
    return good_ && value_ >= least && value_ <= most;
  }
  /// The value; an open dimension when it overflowed or is negative.
  constexpr std::int64_t or_open() const { return good_ && value_ >= 0 ? value_ : Shape::kOpen; }

 private:
  std::int64_t value_;
  bool good_ = true;
};

/// The product of dimensions; not good when one is negative.
inline Checked checked_product(const std::vector<std::int64_t>& dims) {
  Checked n = 1;
  for (const std::int64_t d : dims) n = n * (d < 0 ? Checked(INT64_MAX) * 2 : Checked(d));
  return n;
}

/// A size computed as a double; open when no size can be that.
inline std::int64_t size_from(double value) {
  return value >= 0 && value < 9e18 ? static_cast<std::int64_t>(value) : Shape::kOpen;
}

}  // namespace corelane::onnx
