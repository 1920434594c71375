#include "runtime/program/shape_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace corelane::runtime {
namespace {

/// Messages stay one line that can be read.
constexpr std::size_t kListedSets = 8;

std::string set_text(const ProgramDescription& description, std::span<const Shape> shapes) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (i != 0) text += ", ";
    if (i < description.inputs.size()) text += description.inputs[i].desc.name + " ";
    text += shapes[i].to_string();
  }
  return text;
}

std::string given_text(std::span<const Shape> shapes) {
  std::string text;
  for (const Shape& s : shapes) text += (text.empty() ? "" : ", ") + s.to_string();
  return text;
}

}  // namespace

std::vector<Shape> declared_shapes(const ProgramDescription& description) {
  std::vector<Shape> shapes;
  shapes.reserve(description.inputs.size());
  for (const IoEntry& entry : description.inputs) shapes.push_back(entry.desc.shape);
  return shapes;
}

std::map<std::string, Shape> shapes_by_name(const ProgramDescription& description,
                                            std::span<const Shape> shapes) {
  std::map<std::string, Shape> named;
  for (std::size_t i = 0; i < shapes.size() && i < description.inputs.size(); ++i)
    named[description.inputs[i].desc.name] = shapes[i];
  return named;
}

std::string shapes_text(std::span<const Shape> shapes) {
  std::string text;
  for (const Shape& s : shapes) text += s.to_string();
  return text;
}

bool all_static(std::span<const Shape> shapes) noexcept {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.is_static(); });
}

bool accepts_all(std::span<const Shape> pattern, std::span<const Shape> shapes) noexcept {
  // Equal shapes match also where both are open: accepts() wants a static one.
  return std::equal(pattern.begin(), pattern.end(), shapes.begin(), shapes.end(),
                    [](const Shape& p, const Shape& s) { return p == s || p.accepts(s); });
}

/// The batch is dimension 0 of an input, as ONNX models have it.
std::optional<std::vector<Shape>> freeze_batch(std::span<const Shape> shapes) {
  std::vector<Shape> frozen(shapes.begin(), shapes.end());
  bool changed = false;
  for (Shape& s : frozen) {
    if (s.rank() == 0 || s[0] != Shape::kOpen) continue;
    s[0] = 1;
    changed = true;
  }
  if (!changed) return std::nullopt;
  return frozen;
}

/// Inputs of a closed list are declared open where its sets differ. A batch that was compiled in is
/// a fixed dimension 0, and counts by the description alone.
std::uint32_t samples_of(const ProgramDescription& description, std::span<const Shape> shapes) {
  std::uint64_t samples = std::max<std::uint32_t>(description.batch, 1);
  for (std::size_t i = 0; i < description.inputs.size() && i < shapes.size(); ++i) {
    const Shape& declared = description.inputs[i].desc.shape;
    if (declared.rank() == 0 || declared[0] != Shape::kOpen) continue;
    const std::int64_t rows = shapes[i].rank() == 0 ? 1 : std::max<std::int64_t>(shapes[i][0], 1);
    constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
    // Not multiplied first: the product of damaged figures must not wrap.
    if (static_cast<std::uint64_t>(rows) > kMost / samples) return kMost;
    samples *= static_cast<std::uint64_t>(rows);
    break;
  }
  return static_cast<std::uint32_t>(samples);
}

std::vector<Shape> batch_shapes(const ProgramDescription& description, std::uint32_t batch) {
  std::vector<Shape> shapes = declared_shapes(description);
  for (Shape& shape : shapes)
    if (shape.rank() > 0 && shape[0] == Shape::kOpen) shape[0] = batch;
  return shapes;
}

std::uint32_t batch_of(const ProgramDescription& description, std::span<const Shape> shapes) {
  if (!description.batch_range || shapes.size() != description.inputs.size()) return 0;
  std::int64_t batch = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape& declared = description.inputs[i].desc.shape;
    if (declared.rank() == 0 || declared[0] != Shape::kOpen) continue;
    const std::int64_t rows = shapes[i].rank() == 0 ? 0 : shapes[i][0];
    if (!description.batch_range->holds(rows) || (batch != 0 && rows != batch)) return 0;
    batch = rows;
  }
  return static_cast<std::uint32_t>(batch);
}

Shape with_batch(const ProgramDescription& description, const TensorDesc& output,
                 std::span<const Shape> shapes) {
  Shape shape = output.shape;
  if (shape.rank() == 0 || shape[0] != Shape::kOpen || output.dim_names.empty()) return shape;
  const std::uint32_t batch = batch_of(description, shapes);
  // Exporters write "?" for every dimension that they know nothing of.
  const std::string& name = output.dim_names[0];
  if (batch == 0 || name.empty() || name == "?") return shape;
  for (const IoEntry& input : description.inputs) {
    if (input.desc.shape.rank() == 0 || input.desc.shape[0] != Shape::kOpen) continue;
    if (input.desc.dim_names.empty() || input.desc.dim_names[0] != name) return shape;
  }
  shape[0] = batch;
  return shape;
}

std::string allowed_shapes(const ProgramDescription& description) {
  if (description.shape_sets.empty()) {
    std::string text = set_text(description, declared_shapes(description));
    if (const auto& range = description.batch_range)
      text += fmt::format(" with ? from {} to {}, the same in all", range->low, range->high);
    return text;
  }
  std::string text = "one of: ";
  const std::size_t listed = std::min(kListedSets, description.shape_sets.size());
  for (std::size_t k = 0; k < listed; ++k) {
    if (k != 0) text += "; ";
    text += set_text(description, description.shape_sets[k]);
  }
  if (listed < description.shape_sets.size())
    text += fmt::format("; and {} more", description.shape_sets.size() - listed);
  return text;
}

Status check_shapes(const ProgramDescription& description, std::span<const Shape> shapes) {
  if (shapes.size() != description.inputs.size()) {
    return error(Code::kShapeMismatch,
                 "{} input shapes were given, the program has {} inputs; allowed: {}",
                 shapes.size(), description.inputs.size(), allowed_shapes(description))
        .with(Detail::kGiven, given_text(shapes))
        .with(Detail::kAllowed, allowed_shapes(description));
  }
  if (!all_static(shapes)) {
    return error(Code::kShapeMismatch,
                 "the shapes {} leave a dimension open; give every dimension a size, allowed: {}",
                 given_text(shapes), allowed_shapes(description))
        .with(Detail::kGiven, given_text(shapes))
        .with(Detail::kAllowed, allowed_shapes(description));
  }
  const auto& sets = description.shape_sets;
  const bool sized = !description.batch_range || batch_of(description, shapes) != 0;
  const bool fits = sets.empty()
                        ? sized && accepts_all(declared_shapes(description), shapes)
                        : std::any_of(sets.begin(), sets.end(), [&](const std::vector<Shape>& set) {
                            return std::equal(set.begin(), set.end(), shapes.begin(), shapes.end());
                          });
  if (fits) return {};
  return error(Code::kShapeMismatch,
               "the program does not accept the shapes {}; allowed: {}. Compile it with other "
               "shapes (compile --shape or --shape-set) if these are needed",
               given_text(shapes), allowed_shapes(description))
      .with(Detail::kGiven, given_text(shapes))
      .with(Detail::kAllowed, allowed_shapes(description));
}

bool has_several_open(const ProgramDescription& description) noexcept {
  const auto open = [](const IoEntry& input) { return !input.desc.shape.is_static(); };
  return description.shape_sets.empty() && std::ranges::count_if(description.inputs, open) > 1;
}

Result<std::vector<Shape>> shapes_with_input(const ProgramDescription& description,
                                             std::span<const Shape> current, std::size_t index,
                                             const Shape& shape) {
  const auto& sets = description.shape_sets;
  if (sets.empty()) {
    const Shape& declared = description.inputs[index].desc.shape;
    const bool rows = declared.rank() > 0 && declared[0] == Shape::kOpen;
    const auto& range = description.batch_range;
    if (!declared.accepts(shape) || (range && rows && !range->holds(shape[0]))) {
      return error(Code::kShapeMismatch, "input '{}': shape {} does not fit; allowed: {}",
                   description.inputs[index].desc.name, shape.to_string(),
                   allowed_shapes(description))
          .with(Detail::kInput, description.inputs[index].desc.name)
          .with(Detail::kGiven, shape.to_string())
          .with(Detail::kAllowed, allowed_shapes(description));
    }
    std::vector<Shape> shapes(current.begin(), current.end());
    shapes[index] = shape;
    return shapes;
  }
  const std::vector<Shape>* chosen = nullptr;
  for (const auto& set : sets) {
    if (set[index] != shape) continue;
    // Kept in case none agrees with the other inputs, which are bound one after the other.
    if (chosen == nullptr) chosen = &set;
    bool agrees = true;
    for (std::size_t i = 0; i < set.size(); ++i) agrees &= i == index || set[i] == current[i];
    if (!agrees) continue;
    chosen = &set;
    break;
  }
  if (chosen != nullptr) return *chosen;
  return error(Code::kShapeMismatch, "input '{}': no shape set holds {}; allowed: {}",
               description.inputs[index].desc.name, shape.to_string(), allowed_shapes(description))
      .with(Detail::kInput, description.inputs[index].desc.name)
      .with(Detail::kGiven, shape.to_string())
      .with(Detail::kAllowed, allowed_shapes(description));
}

}  // namespace corelane::runtime
