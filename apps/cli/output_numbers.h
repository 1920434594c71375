/// The elements of tensors as numbers: figures of results and their JSON, for `run`, and what the
/// type of an input does not hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"

namespace corelane::cli {

/// Integers are held as such: a double has no room for all of 64 bits.
using Elements =
    std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>>;

/// The elements, row-major: bool as 0 and 1, a type with is_opaque() as its bits.
Result<Elements> elements_of(const TensorView& view);

/// An element and its digits.
struct NumberAt {
  std::size_t index = 0;
  std::string text;
};
/// The first element of `given`, numbers or bool, that the integers of `type` do not hold exactly.
Result<std::optional<NumberAt>> first_not_held(const TensorView& given, DType type);

/// All of them. JSON has no number for infinity and NaN: they are "inf", "-inf" and "nan".
Json values_json(const Elements& elements);

/// "min", "max" and "mean" of all that are not NaN, as far as there are any; "nan": how many are.
Json figures_json(const Elements& elements);

/// The `k` largest, the largest first and NaN last: {"index", "value"} of each.
Json largest_json(const Elements& elements, std::size_t k);

/// A number of such JSON for people: a float in `form`, an integer with all its digits.
std::string number_text(const Json& number, const char* form);

}  // namespace corelane::cli
