#include "cli/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  double worst = 0, peak = 0, dot = 0, a2 = 0, b2 = 0;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], b = expected[i];
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool alike = a == b || (std::isnan(a) && std::isnan(b));
      bad += alike ? 0 : 1;
      continue;
    }
    worst = std::max(worst, std::fabs(a - b));
    peak = std::max(peak, std::fabs(b));
    dot += a * b;
    a2 += a * a;
    b2 += b * b;
  }
  // Two outputs of zeros are alike; one of zeros and another one are not.
  const double cosine = a2 > 0 && b2 > 0 ? dot / std::sqrt(a2 * b2) : (a2 == b2 ? 1.0 : 0.0);
  return {worst, peak > 0 ? worst / peak : worst, cosine, bad};
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
