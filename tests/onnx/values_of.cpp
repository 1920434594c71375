#include "values_of.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace node_tests {
namespace {

using corelane::DType;

/// Which inputs a pattern changes.
enum class Which : char { kAll, kIntegers, kFloats };

struct Pattern {
  const char* name;
  Which which;
  /// As a float, and as an integer that is cut to the type's range.
  double number;
  bool random = false;
};

constexpr double kLow = -1e300;
constexpr double kHigh = 1e300;
const Pattern kList[kPatterns] = {
    {"all-zero", Which::kAll, 0},
    {"all-minus-one", Which::kAll, -1},
    {"all-lowest", Which::kAll, kLow},
    {"all-highest", Which::kAll, kHigh},
    {"all-random", Which::kAll, 0, true},
    {"integers-zero", Which::kIntegers, 0},
    {"integers-minus-five", Which::kIntegers, -5},
    {"integers-thousand", Which::kIntegers, 1000},
    {"integers-lowest", Which::kIntegers, kLow},
    {"integers-highest", Which::kIntegers, kHigh},
    {"floats-nan", Which::kFloats, std::numeric_limits<double>::quiet_NaN()},
    {"floats-infinite", Which::kFloats, std::numeric_limits<double>::infinity()},
};

template <class T>
T integer_of(double number) {
  if (std::isnan(number)) return 0;
  constexpr auto low = static_cast<double>(std::numeric_limits<T>::lowest());
  constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
  if (number <= low) return std::numeric_limits<T>::lowest();
  if (number >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(number);
}

template <class T>
T value_of(double number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number)) return static_cast<T>(number);
    const auto most = static_cast<double>(std::numeric_limits<T>::max());
    return static_cast<T>(std::fmin(std::fmax(number, -most), most));
  } else {
    return integer_of<T>(number);
  }
}

template <class T>
void fill(CaseTensor& tensor, const Pattern& pattern, std::mt19937& generator) {
  std::uniform_real_distribution<double> any(-10, 10);
  for (std::size_t at = 0; at + sizeof(T) <= tensor.data.size(); at += sizeof(T)) {
    const T value = value_of<T>(pattern.random ? any(generator) : pattern.number);
    std::memcpy(tensor.data.data() + at, &value, sizeof(T));
  }
}

/// Types without a number here keep the case's values.
void fill_any(CaseTensor& t, const Pattern& pattern, std::mt19937& generator) {
  const bool is_float = t.dtype == DType::kF32 || t.dtype == DType::kF64;
  if (pattern.which == Which::kIntegers && is_float) return;
  if (pattern.which == Which::kFloats && !is_float) return;
  switch (t.dtype) {
    case DType::kF32:
      return fill<float>(t, pattern, generator);
    case DType::kF64:
      return fill<double>(t, pattern, generator);
    case DType::kI8:
      return fill<std::int8_t>(t, pattern, generator);
    case DType::kI16:
      return fill<std::int16_t>(t, pattern, generator);
    case DType::kI32:
      return fill<std::int32_t>(t, pattern, generator);
    case DType::kI64:
      return fill<std::int64_t>(t, pattern, generator);
    case DType::kU8:
      return fill<std::uint8_t>(t, pattern, generator);
    case DType::kU16:
      return fill<std::uint16_t>(t, pattern, generator);
    case DType::kU32:
      return fill<std::uint32_t>(t, pattern, generator);
    case DType::kU64:
      return fill<std::uint64_t>(t, pattern, generator);
    default:
      return;
  }
}

}  // namespace

std::string pattern_name(std::size_t pattern) { return kList[pattern].name; }

std::vector<CaseTensor> with_values(std::vector<CaseTensor> inputs, std::size_t pattern) {
  std::mt19937 generator(static_cast<unsigned>(pattern) + 1);
  for (CaseTensor& tensor : inputs)
    if (tensor.onnx_type != 0) fill_any(tensor, kList[pattern], generator);
  return inputs;
}

}  // namespace node_tests
