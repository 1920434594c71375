/// Which buffers a program takes: their sizes, and with specializations their dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/qaic/qpc/qaic_mapping.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "tensor/box.h"

namespace corelane::qaic {

class QpcObject;

/// A part of a buffer that its user gives.
struct SlicePart {
  std::vector<std::int64_t> start;
  std::optional<Shape> extent;  ///< None: to the end of each dimension.
};

/// One for each buffer; null: the whole is given.
using SliceParts = std::vector<std::shared_ptr<const SlicePart>>;

/// Immutable; any thread. Keeps the container.
class BufferPlan {
 public:
  /// `index` is below program_count().
  BufferPlan(std::shared_ptr<const QpcObject> qpc, std::size_t index);

  std::size_t count() const noexcept { return program_.mappings.size(); }
  /// How many of them are inputs; they come first.
  std::size_t inputs() const noexcept { return program_.inputs; }
  bool is_input(std::size_t buffer) const noexcept { return buffer < program_.inputs; }
  const IoMapping& mapping(std::size_t buffer) const noexcept { return program_.mappings[buffer]; }
  /// A view without memory: bytes, element type and shape of a buffer in a specialization.
  const TensorView& form(std::size_t buffer, std::size_t specialization) const noexcept {
    return forms_[specialization * count() + buffer];
  }
  std::size_t specializations() const noexcept { return program_.specializations; }
  /// The shapes of all inputs in a specialization.
  const std::vector<Shape>& input_shapes(std::size_t specialization) const noexcept {
    return input_shapes_[specialization];
  }

  /// Whether a partial buffer is left out.
  static bool left_out(const QBuffer& buffer, const QBufferDimensions* dims) noexcept {
    return buffer.size == 0 ||
           (dims != nullptr && dims->count == 1 && dims->dims != nullptr && dims->dims[0] == 0);
  }
  /// The specialization that count() buffers, and as many `dims` (or null), are of: by the
  /// dimensions, else by the sizes, the first of several. kInvalidArgument, kShapeMismatch name the
  /// buffer, what was given, and what is allowed.
  Result<std::size_t> choose(const QBuffer* buffers, const QBufferDimensions* dims) const;
  /// As choose(); where no specialization has these dimensions, the one of fewest bytes whose
  /// buffers all hold the given ones, at the same rank. Without dimensions as choose().
  Result<std::size_t> choose_covering(const QBuffer* buffers, const QBufferDimensions* dims) const;
  /// For each of count() buffers, whether it is required and missing: it was never set, or its size
  /// is 0.
  std::vector<bool> missing(const QBuffer* buffers, const SliceParts& parts) const;
  /// The specialization that all of count() buffers fit in but those `missing`, whole ones by their
  /// sizes: `now`, else the first. As choose().
  Result<std::size_t> choose_parts(const QBuffer* buffers, const SliceParts& parts,
                                   const std::vector<bool>& missing, std::size_t now) const;
  /// Where a part lies.
  Box box_of(std::size_t buffer, std::size_t specialization, const SlicePart& part) const;
  /// Checks the dimensions that the user gives for a buffer; kInvalidArgument.
  Status check_dims(const QBuffer& given, const QBufferDimensions& dims, std::size_t buffer) const;

 private:
  using Dims = std::vector<std::uint32_t>;
  bool fits(std::size_t buffer, std::size_t specialization, const QBuffer& given) const noexcept;
  /// Whether each buffer fits into that of a specialization.
  bool covers(const QBuffer* buffers, const QBufferDimensions* dims,
              std::size_t specialization) const;
  std::size_t total_bytes(std::size_t specialization) const;
  Status check_size(const QBuffer& given, std::size_t buffer, std::size_t specialization) const;
  Status check_sizes(const QBuffer* buffers, std::size_t specialization) const;
  Result<std::size_t> choose_by_size(const QBuffer* buffers) const;
  Result<std::size_t> choose_by_dims(const QBuffer* buffers, const QBufferDimensions* dims) const;
  /// The specialization with these dimensions; specializations() where none has them.
  Result<std::size_t> find_by_dims(const QBuffer* buffers, const QBufferDimensions* dims) const;
  /// `found`, or why the sizes do not fit it.
  Result<std::size_t> check_found(const QBuffer* buffers, const QBufferDimensions* dims,
                                  std::size_t found) const;
  Status check_parts(const QBuffer* buffers, const SliceParts& parts,
                     const std::vector<bool>& missing, std::size_t specialization) const;
  bool matches(const QBuffer* buffers, const QBufferDimensions* dims,
               std::size_t specialization) const;
  Status no_specialization(const QBuffer* buffers, const QBufferDimensions* dims) const;
  std::string tuple_text(std::size_t specialization) const;

  const std::shared_ptr<const QpcObject> qpc_;
  const QpcProgram& program_;
  std::vector<TensorView> forms_;
  std::vector<std::vector<Shape>> input_shapes_;  ///< By specialization.
  /// Specializations by a hash over the dimensions of the buffers that are always given.
  std::unordered_multimap<std::uint64_t, std::size_t> by_dims_;
  /// The same by their sizes.
  std::unordered_multimap<std::uint64_t, std::size_t> by_size_;
};

}  // namespace corelane::qaic
