#include "cli/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "corelane/tensor/convert.h"
#include "corelane/tensor/element_bits.h"

namespace corelane::cli {
namespace {

/// An output's memory may be larger than its result.
common::Array copy_of(const TensorView& view) {
  const auto* p = static_cast<const std::byte*>(view.data);
  const auto size = dtype_bytes(view.dtype, view.shape.elements().value_or(0));
  return {view.dtype, view.shape, ByteVector(p, p + size)};
}

/// A power of two that brings numbers up to `largest` near 1: their squares and sums neither
/// overflow nor vanish, and no bit of them is lost.
double scale_of(double largest) {
  return largest > 0 ? std::ldexp(1.0, -std::max(std::ilogb(largest), -1022)) : 1.0;
}

}  // namespace

Result<std::vector<common::Array>> copy_inputs(Context& context) {
  std::vector<common::Array> arrays;
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    CORELANE_ASSIGN(auto view, context.input(i));
    arrays.push_back(copy_of(view));
  }
  return arrays;
}

Result<std::vector<common::Array>> copy_outputs(const Context& context, std::size_t count) {
  std::vector<common::Array> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    CORELANE_ASSIGN(auto view, context.output(i));
    arrays.push_back(copy_of(view));
  }
  return arrays;
}

Result<std::vector<double>> as_doubles(const TensorView& view) {
  std::vector<double> values(view.shape.elements().value_or(0));
  if (values.empty()) return values;
  if (is_opaque(view.dtype)) {
    CORELANE_ASSIGN(const ByteVector bits, unpack_bits(view));
    std::ranges::transform(bits, values.begin(),
                           [](std::byte b) { return std::to_integer<int>(b); });
    return values;
  }
  CORELANE_TRY(convert(
      view, {values.data(), values.size() * sizeof(double), DType::kF64, view.shape, {}, {}}));
  return values;
}

Difference difference(const std::vector<double>& actual, const std::vector<double>& expected) {
  double half = 0, top = 0, peak = 0;
  std::size_t bad = 0;
  const auto both = [&](std::size_t i) {
    return std::isfinite(actual[i]) && std::isfinite(expected[i]);
  };
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], b = expected[i];
    if (!both(i)) {
      const bool alike = a == b || (std::isnan(a) && std::isnan(b));
      bad += alike ? 0 : 1;
      continue;
    }
    // In halves: the difference of two large numbers may be beyond the type.
    half = std::max(half, std::fabs(a / 2 - b / 2));
    top = std::max(top, std::fabs(a));
    peak = std::max(peak, std::fabs(b));
  }
  const double scale_a = scale_of(top), scale_b = scale_of(peak);
  double dot = 0, a2 = 0, b2 = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!both(i)) continue;
    const double a = actual[i] * scale_a, b = expected[i] * scale_b;
    dot += a * b;
    a2 += a * a;
    b2 += b * b;
  }
  // Two outputs of zeros are alike; one of zeros and another one are not.
  const double cosine = a2 > 0 && b2 > 0 ? dot / std::sqrt(a2 * b2) : (a2 == b2 ? 1.0 : 0.0);
  const double relative = peak > 0 ? half / peak * 2 : half * 2;
  constexpr double kMost = std::numeric_limits<double>::max();
  return {std::min(half * 2, kMost), std::min(relative, kMost), cosine, bad};
}

std::string safe_name(const std::string& name) {
  // Slashes must not make folders, nor a name point outside of the folder given.
  std::string safe = name.empty() ? "unnamed" : name;
  for (auto& c : safe)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return safe;
}

std::string unique_name(std::string name, std::set<std::string>& taken) {
  constexpr std::size_t kLongest = 180;  // What the callers add follows it.
  name.resize(std::min(name.size(), kLongest));
  std::string unique = name;
  for (std::size_t n = taken.size(); !taken.insert(unique).second; ++n)
    unique = fmt::format("{}.{}", name, n);
  return unique;
}

}  // namespace corelane::cli
