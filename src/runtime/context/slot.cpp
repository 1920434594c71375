#include "runtime/context/slot.h"

#include <fmt/format.h>

#include <cstdint>

namespace corelane::runtime {
namespace {

/// Whether convert() makes one of the other.
bool convertible(DType a, DType b) noexcept {
  for (const DType t : {a, b})
    if (t == DType::kUndefined || t == DType::kString) return false;
  return a == b || !(is_opaque(a) || is_opaque(b));
}

/// Apart, as the next one, so that check_view() does not carry what a failure takes.
[[gnu::noinline]] Failure not_flat(const TensorDesc& desc, const TensorView& view, Detail side) {
  return error(Code::kTypeMismatch,
               "{} '{}' is a {}: give the u8 bytes of its flat form (corelane/tensor/value.h), "
               "not {} {}",
               detail_name(side), desc.name, desc.value.to_string(), dtype_name(view.dtype),
               view.shape.to_string())
      .with(side, desc.name)
      .with(Detail::kGiven, dtype_name(view.dtype))
      .with(Detail::kAllowed, desc.value.to_string());
}

[[gnu::noinline]] Failure not_convertible(const TensorDesc& desc, const TensorView& view,
                                          Detail side) {
  return error(Code::kTypeMismatch,
               "{} '{}': {} cannot be converted between {} and the program's {}; give {}",
               detail_name(side), desc.name, desc.shape.to_string(), dtype_name(view.dtype),
               dtype_name(desc.dtype), is_opaque(desc.dtype) ? "that type" : "a numeric type")
      .with(side, desc.name)
      .with(Detail::kGiven, dtype_name(view.dtype))
      .with(Detail::kAllowed, dtype_name(desc.dtype));
}

}  // namespace

bool is_aligned(const void* data, DType dtype) noexcept {
  const std::size_t bytes = dtype_bits(dtype) / 8;
  // A power of two; a division would take longer than the rest of binding.
  return bytes <= 1 || (reinterpret_cast<std::uintptr_t>(data) & (bytes - 1)) == 0;
}

bool is_program_form(const TensorDesc& desc, const TensorView& view) noexcept {
  if (view.dtype != desc.dtype || view.quant.kind != QuantKind::kNone) return false;
  if (view.layout.kind != LayoutKind::kPlain) return false;
  const std::size_t rank = view.shape.rank();
  // A stride that equals the width leaves no gap.
  if (view.layout.w_stride != 0 &&
      (rank == 0 || view.shape[rank - 1] != static_cast<std::int64_t>(view.layout.w_stride))) {
    return false;
  }
  return is_aligned(view.data, view.dtype);
}

Status check_view(const TensorDesc& desc, const TensorView& view, Detail side) {
  // A flat form is bytes that nothing but the engine reads.
  if (!desc.value.empty() && (!is_program_form(desc, view) || view.shape.rank() != 1))
    return not_flat(desc, view, side);
  if (!convertible(view.dtype, desc.dtype)) return not_convertible(desc, view, side);
  // Fails for an open shape, a size that overflows, and a stride below the width.
  auto needed = storage_bytes(view.shape, view.dtype, view.layout);
  if (!needed)
    return needed.error().wrap(
        fmt::format("{} '{}': the given view", detail_name(side), desc.name));
  if (view.size < *needed) {
    return error(Code::kInvalidArgument,
                 "{} '{}': {} {} in layout {} needs {} bytes, {} were given", detail_name(side),
                 desc.name, dtype_name(view.dtype), view.shape.to_string(),
                 layout_name(view.layout.kind), *needed, view.size);
  }
  if (view.data == nullptr && *needed != 0)
    return error(Code::kInvalidArgument, "{} '{}': the memory is null", detail_name(side),
                 desc.name);
  return view.quant.check(view.shape);
}

Result<MutableTensorView> buffer_view(const TensorDesc& desc,
                                      const std::shared_ptr<device::Buffer>& buffer,
                                      std::size_t offset, Detail side) {
  if (buffer == nullptr)
    return error(Code::kInvalidArgument, "{} '{}': the buffer is null", detail_name(side),
                 desc.name);
  if (offset > buffer->size())
    return error(Code::kOutOfRange, "{} '{}': offset {} lies past the buffer's {} bytes",
                 detail_name(side), desc.name, offset, buffer->size());
  // All that is left of the buffer: an output of open shape may take any part of it.
  auto* first = static_cast<std::byte*>(buffer->data()) + offset;
  return MutableTensorView{first, buffer->size() - offset, desc.dtype, desc.shape, {}, {}};
}

}  // namespace corelane::runtime
