#include "corelane/tensor/shape.h"

#include <algorithm>
#include <charconv>

#include "base/text_parts.h"

namespace corelane {

bool Shape::is_static() const noexcept {
  return std::none_of(dims_.begin(), dims_.end(), [](std::int64_t d) { return d == kOpen; });
}

std::optional<std::size_t> Shape::elements() const noexcept {
  if (std::any_of(dims_.begin(), dims_.end(), [](std::int64_t d) { return d < 0; }))
    return std::nullopt;
  // An empty tensor is empty however large its other dimensions are.
  if (std::find(dims_.begin(), dims_.end(), 0) != dims_.end()) return 0;
  std::size_t count = 1;
  for (const std::int64_t d : dims_)
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(d), &count)) return std::nullopt;
  return count;
}

bool Shape::accepts(const Shape& other) const noexcept {
  return rank() == other.rank() && std::equal(dims_.begin(), dims_.end(), other.dims_.begin(),
                                              [](std::int64_t mine, std::int64_t theirs) {
                                                return theirs >= 0 &&
                                                       (mine == kOpen || mine == theirs);
                                              });
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (i != 0) text += ", ";
    text += dims_[i] == kOpen ? "?" : std::to_string(dims_[i]);
  }
  return text + "]";
}

namespace {

constexpr std::string_view kBlanks = " \t";

std::optional<std::int64_t> parse_dimension(std::string_view token) {
  if (token == "?") return Shape::kOpen;
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (failed != std::errc() || end != token.data() + token.size() || value < Shape::kOpen)
    return std::nullopt;
  return value;
}

}  // namespace

Result<Shape> parse_shape(std::string_view text) {
  std::string_view rest = trimmed(text, kBlanks);
  // The text of to_string() is read as well; "[]" is a scalar.
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']') {
    rest = trimmed(rest.substr(1, rest.size() - 2), kBlanks);
    if (rest.empty()) return Shape();
  }
  std::vector<std::int64_t> dims;
  for (;;) {
    // Both spellings, and those of the tools that print them.
    const auto separator = rest.find_first_of(",xX");
    const std::string_view token = trimmed(rest.substr(0, separator), kBlanks);
    const auto dimension = parse_dimension(token);
    if (!dimension) {
      return error(Code::kInvalidArgument,
                   "shape '{}': '{}' is not a dimension; give numbers such as 1,3,224,224 or "
                   "1x3x224x224, with ? or -1 for an open one",
                   text, token);
    }
    dims.push_back(*dimension);
    if (separator == std::string_view::npos) return Shape(std::move(dims));
    rest.remove_prefix(separator + 1);
  }
}

}  // namespace corelane
