/// Which shapes a program accepts: pure functions over its description.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/program/description.h"
#include "corelane/tensor/shape.h"

namespace corelane::runtime {

/// The declared shape of every input, open dimensions included.
std::vector<Shape> declared_shapes(const ProgramDescription& description);

/// These shapes, one per input, by the inputs' names.
std::map<std::string, Shape> shapes_by_name(const ProgramDescription& description,
                                            std::span<const Shape> shapes);

/// "[1, 3, 224, 224][?, 4]".
std::string shapes_text(std::span<const Shape> shapes);

/// True when no shape has an open dimension.
bool all_static(std::span<const Shape> shapes) noexcept;

/// True where no dimension is larger than that of `room`.
inline bool fits_in(const Shape& shape, const Shape& room) noexcept {
  return std::ranges::equal(shape.dims(), room.dims(), std::ranges::less_equal{});
}

/// True when `pattern[i]` accepts `shapes[i]` for every i.
bool accepts_all(std::span<const Shape> pattern, std::span<const Shape> shapes) noexcept;

/// Declared shapes with each open first dimension fixed to 1; nullopt when that changes nothing.
std::optional<std::vector<Shape>> freeze_batch(std::span<const Shape> shapes);

/// How many samples a run on these shapes takes, at least 1: what dimension 0 became where the
/// program leaves it open (of the first such input; 1 while it is not chosen), times the program's
/// own batch.
std::uint32_t samples_of(const ProgramDescription& description, std::span<const Shape> shapes);

/// The shapes of all inputs for one size of the program's batch range.
std::vector<Shape> batch_shapes(const ProgramDescription& description, std::uint32_t batch);

/// The size of the program's batch range that these shapes have in all inputs; 0 where they have
/// none, or several.
std::uint32_t batch_of(const ProgramDescription& description, std::span<const Shape> shapes);

/// An output's shape for inputs of these shapes: its dimension 0 is the batch where that has the
/// name of the inputs'. Unchanged where the program has no batch range, or no size is chosen.
Shape with_batch(const ProgramDescription& description, const TensorDesc& output,
                 std::span<const Shape> shapes);

/// "x [?, 3, 48, ?]", "x [?, 3, 48, 192] with ? from 1 to 8", or with a closed list "one of: x [1,
/// 4]; x [2, 4]" (the first eight).
std::string allowed_shapes(const ProgramDescription& description);

/// kShapeMismatch, with what is allowed, unless `shapes` (static, one per input) is one of the
/// closed list or fits the declared dimensions.
Status check_shapes(const ProgramDescription& description, std::span<const Shape> shapes);

/// True where sizes of several inputs are chosen one by one: those of now may not go together yet.
bool has_several_open(const ProgramDescription& description) noexcept;

/// The shapes of all inputs after input `index` has been given `shape`. With open dimensions only
/// that input changes. With a closed list: the first set that holds `shape` at `index` and agrees
/// with `current` elsewhere, else the first that holds it.
Result<std::vector<Shape>> shapes_with_input(const ProgramDescription& description,
                                             std::span<const Shape> current, std::size_t index,
                                             const Shape& shape);

}  // namespace corelane::runtime
