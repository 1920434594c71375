/// The flat form of values that are no plain tensors: one piece of memory for strings, sequences,
/// maps and optionals, so that they are bound, copied and passed on like any tensor of bytes. The
/// format is docs/formats/values.md.
///
///     ValueBuilder builder;                            // ["a", "b"], a tensor(string)
///     builder.strings({2}, words);
///     const ByteVector bytes = builder.finish().value();
///     ... bind them as u8 of shape {bytes.size()} ...
///     const ValueView value = read_value(result).value();   // A seq(map(int64,tensor(float)))
///     for (const ValueView& row : value.items())
///       use(row.keys().tensor(), row.values().tensor());
///
/// Threads: a ValueView may be read from any thread; a ValueBuilder belongs to one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// A value in its flat form, checked as a whole when it was read. Borrowed: the memory must outlive
/// the view and stay as it is. A default-made one is an empty sequence.
class CORELANE_API ValueView {
 public:
  ValueView() = default;

  /// What it is.
  ValueKind kind() const noexcept { return kind_; }
  /// The element type of a tensor, or of the keys of a map; else kUndefined.
  DType dtype() const noexcept { return dtype_; }
  /// The shape of a tensor; rank 0 for anything else.
  Shape shape() const;
  /// Elements of a tensor, values of a sequence, pairs of a map, 0 or 1 of an optional.
  std::size_t size() const noexcept { return count_; }

  /// A tensor of numbers, in place; aligned to 8 bytes where the flat form is. An empty view for
  /// anything else.
  TensorView tensor() const;
  /// Element `i`, below size(), of a tensor of strings, in place; else "".
  std::string_view string(std::size_t i) const noexcept;
  /// All of them.
  std::vector<std::string_view> strings() const;
  /// The values of a sequence, or the value of an optional, if it has one; else empty.
  std::vector<ValueView> items() const;
  /// The keys of a map, a tensor of rank 1; for anything else a default-made view.
  ValueView keys() const;
  /// The values of a map in the same form, in the order of the keys.
  ValueView values() const;

  /// kTypeMismatch, naming `what` ("input 'x'"), unless it is a `type`; with the shape of a tensor,
  /// kShapeMismatch.
  Status check(const ValueType& type, std::string_view what) const;
  /// In ONNX's words, as far as it says: "seq(...)", "tensor(string) [2, 3]".
  std::string to_string() const;

 private:
  friend class ValueReader;
  ValueKind kind_ = ValueKind::kSequence;
  DType dtype_ = DType::kUndefined;
  std::uint16_t rank_ = 0;
  std::size_t count_ = 0;
  const std::byte* body_ = nullptr;  ///< What follows the head.
  std::size_t body_size_ = 0;
};

/// The value at the start of `bytes`, which may go on after it. Reads nothing outside, whatever the
/// bytes are. Memory that another process may change meanwhile has to be copied first. kMalformed.
CORELANE_API Result<ValueView> read_value(ByteSpan bytes);

/// Writes a value, from the outside in. What does not go together is said by finish().
class CORELANE_API ValueBuilder {
 public:
  /// Begins with nothing.
  ValueBuilder();
  /// A tensor of numbers: static shape, plain layout; copied.
  ValueBuilder& tensor(const TensorView& view);
  /// A tensor of strings, which may hold any bytes; as many as `shape` has elements.
  ValueBuilder& strings(const Shape& shape, std::span<const std::string_view> elements);
  /// A sequence: its `count` values follow.
  ValueBuilder& sequence(std::size_t count);
  /// A map: a tensor of its keys and one of its values follow, of rank 1 and equally long.
  ValueBuilder& map(DType key);
  /// An optional: its value follows where `has_value`.
  ValueBuilder& optional(bool has_value);
  /// The flat form; the builder is empty then. kInvalidArgument for the first thing that was wrong.
  Result<ByteVector> finish();

 private:
  void head(ValueKind kind, DType dtype, std::size_t rank);
  void shape(const Shape& shape);
  void number(std::uint64_t value);
  void pad();

  ByteVector bytes_;
  Status failure_;
};

/// `bytes` as a tensor of u8 and shape [size], to be bound.
inline TensorView flat_view(ByteSpan bytes) {
  return {bytes.data(), bytes.size(),
          DType::kU8,   Shape{static_cast<std::int64_t>(bytes.size())},
          {},           {}};
}

}  // namespace corelane
