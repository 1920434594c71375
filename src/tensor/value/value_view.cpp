#include <algorithm>
#include <cstring>

#include "corelane/tensor/value.h"
#include "tensor/value/value_form.h"

namespace corelane {

namespace form = value_form;

namespace {

std::uint64_t number_at(const std::byte* at) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// As ByteReader::read_bytes(), with zeros up to the next step.
Result<ByteSpan> take_padded(ByteReader& in, std::size_t size) {
  CORELANE_ASSIGN(const ByteSpan bytes, in.read_bytes(size));
  CORELANE_ASSIGN(const ByteSpan zeros, in.read_bytes(form::padding(size)));
  if (std::ranges::all_of(zeros, [](std::byte b) { return b == std::byte{}; })) return bytes;
  return error(Code::kMalformed, "the bytes after a tensor are not zero");
}

}  // namespace

/// Reads values one after the other, checking each as a whole.
class ValueReader {
 public:
  explicit ValueReader(ByteSpan bytes) : bytes_(bytes), in_(bytes) {}

  bool at_end() const noexcept { return in_.remaining() == 0; }

  Result<ValueView> next(int depth) {
    if (depth > form::kMaxDepth)
      return error(Code::kMalformed, "values nested more than {} deep", form::kMaxDepth);
    ValueView value;
    CORELANE_TRY(head(value));
    const std::size_t start = in_.offset();
    value.body_ = bytes_.data() + start;
    switch (value.kind_) {
      case ValueKind::kTensor:
        CORELANE_TRY(tensor(value));
        break;
      case ValueKind::kMap:
        CORELANE_TRY(map(value, depth));
        break;
      case ValueKind::kSequence:
      case ValueKind::kOptional:
        CORELANE_TRY(list(value, depth));
        break;
    }
    value.body_size_ = in_.offset() - start;
    return value;
  }

 private:
  Status head(ValueView& value) {
    CORELANE_ASSIGN(const auto kind, in_.read<std::uint8_t>());
    CORELANE_ASSIGN(const auto dtype, in_.read<std::uint8_t>());
    CORELANE_ASSIGN(value.rank_, in_.read<std::uint16_t>());
    CORELANE_ASSIGN(const auto zeros, in_.read<std::uint32_t>());
    if (kind < 1 || kind > 4 || dtype >= kDTypeCount || zeros != 0)
      return error(Code::kMalformed, "a value of kind {} with element type {}", kind, dtype);
    value.kind_ = static_cast<ValueKind>(kind);
    value.dtype_ = static_cast<DType>(dtype);
    const bool typed = value.kind_ == ValueKind::kTensor || value.kind_ == ValueKind::kMap;
    const bool ranked = value.kind_ == ValueKind::kTensor;
    if (typed == (value.dtype_ == DType::kUndefined) || (!ranked && value.rank_ != 0) ||
        value.rank_ > form::kMaxRank)
      return error(Code::kMalformed, "a value of kind {} with element type {} and rank {}", kind,
                   dtype, value.rank_);
    return {};
  }

  Status tensor(ValueView& value) {
    CORELANE_ASSIGN(const ByteSpan dims, in_.read_bytes(value.rank_ * sizeof(std::int64_t)));
    // As Shape::elements(), without a list: there may be a million tensors.
    value.count_ = 1;
    bool empty = false;
    bool too_large = false;
    for (std::size_t i = 0; i < value.rank_; ++i) {
      const std::uint64_t size = number_at(dims.data() + i * sizeof(std::uint64_t));
      if (size > INT64_MAX)
        return error(Code::kMalformed, "a tensor of shape {}", value.shape().to_string());
      empty |= size == 0;
      too_large |= __builtin_mul_overflow(value.count_, size, &value.count_);
    }
    if (empty) value.count_ = 0;
    if (too_large && !empty)
      return error(Code::kMalformed, "a tensor of shape {}", value.shape().to_string());
    if (value.dtype_ == DType::kString) return string_data(value.count_);
    const std::size_t size = dtype_bytes(value.dtype_, value.count_);
    // Before a list of that size is thought of: what is declared may be any size.
    const auto data = take_padded(in_, size);
    return data ? Status() : data.error();
  }

  Status string_data(std::size_t count) {
    if (count >= in_.remaining() / sizeof(std::uint64_t))
      return error(Code::kMalformed, "{} strings in {} bytes", count, in_.remaining());
    CORELANE_ASSIGN(const ByteSpan ends, in_.read_bytes((count + 1) * sizeof(std::uint64_t)));
    std::uint64_t last = 0;
    for (std::size_t i = 0; i <= count; ++i) {
      const std::uint64_t end = number_at(ends.data() + i * sizeof(std::uint64_t));
      if (end < last || (i == 0 && end != 0) || end > in_.remaining())
        return error(Code::kMalformed, "string {} of {} ends at {}", i, count, end);
      last = end;
    }
    const auto data = take_padded(in_, last);
    return data ? Status() : data.error();
  }

  Status list(ValueView& value, int depth) {
    CORELANE_ASSIGN(const auto count, in_.read<std::uint64_t>());
    const bool fits = value.kind_ == ValueKind::kOptional
                          ? count <= 1
                          : count <= in_.remaining() / form::kHeadBytes;
    if (!fits) return error(Code::kMalformed, "{} values in {} bytes", count, in_.remaining());
    value.count_ = count;
    for (std::size_t i = 0; i < value.count_; ++i) {
      const auto item = next(depth + 1);
      if (!item) return item.error();
    }
    return {};
  }

  Status map(ValueView& value, int depth) {
    CORELANE_ASSIGN(const ValueView keys, next(depth + 1));
    CORELANE_ASSIGN(const ValueView values, next(depth + 1));
    const auto is_list = [](const ValueView& v) {
      return v.kind_ == ValueKind::kTensor && v.rank_ == 1;
    };
    if (!is_list(keys) || !is_list(values) || keys.count_ != values.count_ ||
        keys.dtype_ != value.dtype_)
      return error(Code::kMalformed, "a map of {} keys and {} values", keys.count_, values.count_);
    value.count_ = keys.count_;
    return {};
  }

  const ByteSpan bytes_;
  ByteReader in_;
};

Result<ValueView> read_value(ByteSpan bytes) {
  ByteReader in(bytes);
  CORELANE_ASSIGN(const ByteSpan magic, in.read_bytes(form::kMagic.size()));
  CORELANE_ASSIGN(const auto zeros, in.read<std::uint32_t>());
  CORELANE_ASSIGN(const auto size, in.read<std::uint64_t>());
  if (as_string_view(magic) != form::kMagic || zeros != 0)
    return error(Code::kMalformed, "{} bytes that are not the flat form of a value", bytes.size());
  if (size < form::kHeaderBytes || size > bytes.size() || size % form::kStep != 0)
    return error(Code::kMalformed, "a value of {} bytes in {}", size, bytes.size());
  const ByteSpan content = bytes.subspan(form::kHeaderBytes, size - form::kHeaderBytes);
  ValueReader reader(content);
  CORELANE_ASSIGN(ValueView value, reader.next(0));
  if (reader.at_end()) return value;
  return error(Code::kMalformed, "bytes after a value of {}", value.to_string());
}

Shape ValueView::shape() const {
  std::vector<std::int64_t> dims(rank_);
  if (rank_ > 0) std::memcpy(dims.data(), body_, rank_ * sizeof(std::int64_t));
  return Shape(std::move(dims));
}

TensorView ValueView::tensor() const {
  if (kind_ != ValueKind::kTensor || dtype_ == DType::kString) return {};
  return {
      body_ + rank_ * sizeof(std::int64_t), dtype_bytes(dtype_, count_), dtype_, shape(), {}, {}};
}

std::string_view ValueView::string(std::size_t i) const noexcept {
  if (kind_ != ValueKind::kTensor || dtype_ != DType::kString || i >= count_) return {};
  const std::byte* const ends = body_ + rank_ * sizeof(std::int64_t);
  const std::uint64_t from = number_at(ends + i * sizeof(std::uint64_t));
  const std::uint64_t to = number_at(ends + (i + 1) * sizeof(std::uint64_t));
  const auto* const text = reinterpret_cast<const char*>(ends) + (count_ + 1) * sizeof(to);
  return {text + from, to - from};
}

std::vector<std::string_view> ValueView::strings() const {
  if (kind_ != ValueKind::kTensor || dtype_ != DType::kString) return {};
  std::vector<std::string_view> all(count_);
  for (std::size_t i = 0; i < count_; ++i) all[i] = string(i);
  return all;
}

std::vector<ValueView> ValueView::items() const {
  std::vector<ValueView> all;
  if (kind_ != ValueKind::kSequence && kind_ != ValueKind::kOptional) return all;
  if (count_ == 0) return all;
  all.reserve(count_);
  // Checked before, so that nothing here can fail.
  ValueReader in(ByteSpan(body_, body_size_).subspan(sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < count_; ++i)
    if (auto item = in.next(0)) all.push_back(*item);
  return all;
}

ValueView ValueView::keys() const {
  if (kind_ != ValueKind::kMap) return {};
  return ValueReader(ByteSpan(body_, body_size_)).next(0).value_or(ValueView());
}

ValueView ValueView::values() const {
  if (kind_ != ValueKind::kMap) return {};
  ValueReader in(ByteSpan(body_, body_size_));
  if (!in.next(0)) return {};
  return in.next(0).value_or(ValueView());
}

Status ValueView::check(const ValueType& type, std::string_view what) const {
  const auto mismatch = [&] {
    return error(Code::kTypeMismatch, "{}: a {} is needed, given {}", what, type.to_string(),
                 to_string());
  };
  if (kind_ != type.kind()) return mismatch();
  if (kind_ == ValueKind::kMap) {
    const ValueType within = type.inner();
    const bool same = dtype_ == type.layers[0].key && within.is_tensor();
    return same && values().dtype_ == within.element ? Status() : mismatch();
  }
  if (kind_ != ValueKind::kTensor) {
    const ValueType within = type.inner();
    for (const ValueView& item : items()) CORELANE_TRY(item.check(within, what));
    return {};
  }
  if (dtype_ != type.element) return mismatch();
  if (!type.shape || type.shape->accepts(shape())) return {};
  return error(Code::kShapeMismatch, "{} takes {}, given {}", what, type.shape->to_string(),
               shape().to_string());
}

std::string ValueView::to_string() const {
  ValueType type;
  type.element = dtype_;
  switch (kind_) {
    case ValueKind::kTensor:
      return fmt::format("{} {}", type.to_string(), shape().to_string());
    case ValueKind::kMap:
      type.layers = {{ValueKind::kMap, dtype_}};
      type.element = values().dtype_;
      return type.to_string();
    case ValueKind::kOptional:
      return count_ == 0 ? "optional(nothing)"
                         : fmt::format("optional({})", items().front().to_string());
    case ValueKind::kSequence:
      break;
  }
  return count_ == 0 ? "seq(nothing)" : fmt::format("seq({})", items().front().to_string());
}

}  // namespace corelane
