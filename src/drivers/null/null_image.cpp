#include "drivers/null/null_image.h"

#include <string>
#include <string_view>

#include "base/text_parts.h"
#include "drivers/null/null_script.h"

namespace corelane::drivers::null {
namespace {

/// Words are separated by blanks and tabs; a line may end with a carriage return.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Result<TensorDesc> read_tensor(const std::vector<std::string_view>& words) {
  if (words.size() < 3 || words.size() > 4)
    return error(Code::kMalformed, "'{}' needs a name, an element type and a shape", words[0]);
  const auto dtype = dtype_from_name(words[2]);
  if (!dtype || dtype_bits(*dtype) == 0)
    return error(Code::kMalformed, "tensor '{}' has the unknown element type '{}'", words[1],
                 words[2]);
  CORELANE_ASSIGN(Shape shape, words.size() == 4 ? parse_shape(words[3]) : Shape());
  return TensorDesc{.name = std::string(words[1]), .dtype = *dtype, .shape = std::move(shape)};
}

/// Empty lines and those that begin with '#' say nothing.
Status read_line(std::string_view line, Description& description) {
  const auto words = words_of(line);
  if (words.empty() || words[0].front() == '#') return {};
  if (words[0] == "input" || words[0] == "output") {
    CORELANE_ASSIGN(TensorDesc desc, read_tensor(words));
    (words[0] == "input" ? description.inputs : description.outputs).push_back(std::move(desc));
    return {};
  }
  if (words[0] == "time" && words.size() >= 2 && words.size() <= 3) {
    CORELANE_ASSIGN(description.a, parse_duration(words[1]));
    CORELANE_ASSIGN(description.b, parse_duration(words.size() == 3 ? words[2] : "0s"));
    return {};
  }
  if (words[0] == "constants" && words.size() == 2) {
    const auto bytes = parse_bytes(words[1]);
    if (!bytes) return error(Code::kMalformed, "'{}' is not a number of bytes", words[1]);
    description.constants = *bytes;
    return {};
  }
  return error(Code::kMalformed,
               "'{}' is not understood; lines are 'input NAME TYPE SHAPE', 'output NAME TYPE "
               "SHAPE', 'time A [B]' or 'constants BYTES'",
               line);
}

Result<Description> read_text(std::string_view text) {
  Description description;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (Status status = read_line(text.substr(at, end - at), description); !status.ok())
      return error(status.wrap(Code::kMalformed, fmt::format("null image, line {}", number)));
    at = end + 1;
  }
  return description;
}

/// A shape may fix open dimensions; it cannot change those that are declared.
Status choose_shapes(Description& description, const std::vector<Shape>& shapes) {
  if (shapes.empty()) return {};
  if (shapes.size() != description.inputs.size())
    return error(Code::kInvalidArgument, "{} input shapes were given; the image has {} inputs",
                 shapes.size(), description.inputs.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    TensorDesc& input = description.inputs[i];
    if (shapes[i] != input.shape && !input.shape.accepts(shapes[i]))
      return error(Code::kShapeMismatch, "input '{}' was given shape {}; the image declares {}",
                   input.name, shapes[i].to_string(), input.shape.to_string());
    input.shape = shapes[i];
  }
  return {};
}

}  // namespace

/// In this order: what the image says itself, what it declares beside its bytes, what the caller
/// asks for.
Result<Description> describe(const device::Image& image, const std::vector<Shape>& input_shapes) {
  Description description;
  if (image.kind == "null") {
    CORELANE_ASSIGN(description, read_text(as_string_view(image.bytes)));
    CORELANE_TRY(choose_shapes(description, input_shapes));
    return description;
  }
  if (!image.inputs.empty() || !image.outputs.empty()) {
    description.inputs = image.inputs;
    description.outputs = image.outputs;
    CORELANE_TRY(choose_shapes(description, input_shapes));
    return description;
  }
  for (const Shape& shape : input_shapes)
    description.inputs.push_back({.name = "input" + std::to_string(description.inputs.size()),
                                  .dtype = DType::kF32,
                                  .shape = shape});
  if (description.inputs.empty()) return description;
  description.outputs = {description.inputs.front()};
  description.outputs.front().name = "output0";
  return description;
}

}  // namespace corelane::drivers::null
