#include <cstring>
#include <utility>

#include "corelane/tensor/value.h"
#include "tensor/value/value_form.h"

namespace corelane {

namespace form = value_form;

namespace {

void append(ByteVector& bytes, const void* data, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + size);
}

}  // namespace

ValueBuilder::ValueBuilder() { bytes_.reserve(256); }

void ValueBuilder::number(std::uint64_t value) { append(bytes_, &value, sizeof(value)); }

void ValueBuilder::pad() { bytes_.resize(bytes_.size() + form::padding(bytes_.size())); }

void ValueBuilder::head(ValueKind kind, DType dtype, std::size_t rank) {
  if (bytes_.empty()) {
    append(bytes_, form::kMagic.data(), form::kMagic.size());
    bytes_.resize(form::kHeaderBytes);
  }
  bytes_.push_back(static_cast<std::byte>(kind));
  bytes_.push_back(static_cast<std::byte>(dtype));
  const auto short_rank = static_cast<std::uint16_t>(rank);
  append(bytes_, &short_rank, sizeof(short_rank));
  pad();
}

void ValueBuilder::shape(const Shape& shape) {
  for (const std::int64_t dim : shape.dims()) number(static_cast<std::uint64_t>(dim));
}

ValueBuilder& ValueBuilder::tensor(const TensorView& view) {
  const auto elements = view.shape.elements();
  const std::size_t size = elements ? dtype_bytes(view.dtype, *elements) : 0;
  const bool plain = view.layout == Layout{} && view.quant.kind == QuantKind::kNone;
  if (!elements || dtype_bits(view.dtype) == 0 || !plain || view.shape.rank() > form::kMaxRank ||
      view.size < size || (view.data == nullptr && size > 0)) {
    if (failure_.ok())
      failure_ = error(Code::kInvalidArgument,
                       "{} {} of {} bytes; numbers of a static shape in plain layout are needed",
                       dtype_name(view.dtype), view.shape.to_string(), view.size);
    return *this;
  }
  head(ValueKind::kTensor, view.dtype, view.shape.rank());
  shape(view.shape);
  if (size > 0) append(bytes_, view.data, size);
  pad();
  return *this;
}

ValueBuilder& ValueBuilder::strings(const Shape& given,
                                    std::span<const std::string_view> elements) {
  if (given.elements() != elements.size() || given.rank() > form::kMaxRank) {
    if (failure_.ok())
      failure_ = error(Code::kInvalidArgument, "{} strings for shape {}", elements.size(),
                       given.to_string());
    return *this;
  }
  head(ValueKind::kTensor, DType::kString, given.rank());
  shape(given);
  std::uint64_t end = 0;
  number(end);
  for (const std::string_view s : elements) number(end += s.size());
  for (const std::string_view s : elements) append(bytes_, s.data(), s.size());
  pad();
  return *this;
}

ValueBuilder& ValueBuilder::sequence(std::size_t count) {
  head(ValueKind::kSequence, DType::kUndefined, 0);
  number(count);
  return *this;
}

ValueBuilder& ValueBuilder::map(DType key) {
  head(ValueKind::kMap, key, 0);
  return *this;
}

ValueBuilder& ValueBuilder::optional(bool has_value) {
  head(ValueKind::kOptional, DType::kUndefined, 0);
  number(has_value ? 1 : 0);
  return *this;
}

Result<ByteVector> ValueBuilder::finish() {
  ByteVector bytes = std::exchange(bytes_, {});
  CORELANE_TRY(std::exchange(failure_, {}));
  if (bytes.empty()) return error(Code::kInvalidArgument, "no value was given");
  const std::uint64_t size = bytes.size();
  std::memcpy(bytes.data() + form::kSizeAt, &size, sizeof(size));
  // The reader's rules are the writer's.
  if (const auto value = read_value(bytes); !value)
    return error(value.error().wrap(Code::kInvalidArgument, "what was given is not one value"));
  return bytes;
}

}  // namespace corelane
