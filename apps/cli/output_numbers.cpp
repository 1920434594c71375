#include "cli/output_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "cli/tensors.h"
#include "corelane/tensor/convert.h"

namespace corelane::cli {
namespace {

template <class T>
Result<Elements> converted(const TensorView& view, DType type) {
  std::vector<T> values(view.shape.elements().value_or(0));
  if (values.empty()) return values;
  CORELANE_TRY(convert(view, {values.data(), values.size() * sizeof(T), type, view.shape, {}, {}}));
  return values;
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

/// Whether a number, converted to an integer, is still the same.
template <class T, class Held>
bool is_same(T value, Held held) {
  if constexpr (std::is_floating_point_v<Held>)
    return false;  // Not reached: integers are held.
  else if constexpr (std::is_integral_v<T>)
    return std::cmp_equal(value, held);
  else  // The largest integer is rounded up to the power of two that it does not reach.
    return value == static_cast<T>(held) &&
           value < std::ldexp(T{1}, std::numeric_limits<Held>::digits);
}

template <class T>
Json number_json(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  }
  return value;
}

}  // namespace

Result<Elements> elements_of(const TensorView& view) {
  // Integers stay integers: a double holds them up to 2^53 only.
  if (view.dtype == DType::kU64) return converted<std::uint64_t>(view, DType::kU64);
  if (is_integer(view.dtype) || view.dtype == DType::kBool)
    return converted<std::int64_t>(view, DType::kI64);
  CORELANE_ASSIGN(auto values, as_doubles(view));
  if (!is_opaque(view.dtype)) return values;
  return std::vector<std::int64_t>(values.begin(), values.end());
}

Result<std::optional<NumberAt>> first_not_held(const TensorView& given, DType type) {
  std::vector<std::byte> bytes(dtype_bytes(type, given.shape.elements().value_or(0)));
  const MutableTensorView held{bytes.data(), bytes.size(), type, given.shape, {}, {}};
  CORELANE_TRY(convert(given, held));
  CORELANE_ASSIGN(const Elements before, elements_of(given));
  CORELANE_ASSIGN(const Elements after, elements_of(held));
  return std::visit(
      [](const auto& x, const auto& y) -> std::optional<NumberAt> {
        for (std::size_t i = 0; i < x.size(); ++i)
          if (!is_same(x[i], y[i])) return NumberAt{i, fmt::format("{}", x[i])};
        return std::nullopt;
      },
      before, after);
}

Json values_json(const Elements& elements) {
  Json list = Json::array();
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) list.push_back(number_json(value));
      },
      elements);
  return list;
}

Json figures_json(const Elements& elements) {
  return std::visit(
      [](auto values) {
        Json j = Json::object();
        const std::size_t all = values.size();
        std::erase_if(values, [](auto value) { return is_nan(value); });
        if (!values.empty()) {
          const auto [low, high] = std::minmax_element(values.begin(), values.end());
          j["min"] = number_json(*low);
          j["max"] = number_json(*high);
          j["mean"] = number_json(std::accumulate(values.begin(), values.end(), 0.0) /
                                  static_cast<double>(values.size()));
        }
        if (values.size() < all) j["nan"] = all - values.size();
        return j;
      },
      elements);
}

Json largest_json(const Elements& elements, std::size_t k) {
  return std::visit(
      [k](const auto& values) {
        std::vector<std::size_t> order(values.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const std::size_t count = std::min(k, order.size());
        // The outputs of a large network have millions of elements; k is small.
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                          order.end(), [&](std::size_t a, std::size_t b) {
                            if (is_nan(values[a]) || is_nan(values[b])) return !is_nan(values[a]);
                            return values[a] > values[b];
                          });
        Json list = Json::array();
        for (std::size_t i = 0; i < count; ++i)
          list.push_back({{"index", order[i]}, {"value", number_json(values[order[i]])}});
        return list;
      },
      elements);
}

std::string number_text(const Json& number, const char* form) {
  if (number.is_string()) return number.get<std::string>();
  if (number.is_number_integer()) return number.dump();
  return fmt::format(fmt::runtime(form), number.get<double>());
}

}  // namespace corelane::cli
