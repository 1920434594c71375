#include "corelane/tensor/layout.h"

#include <initializer_list>
#include <iterator>

#include "corelane/tensor/shape.h"

namespace corelane {

namespace {

/// Indexed by LayoutKind.
constexpr std::string_view kNames[] = {"plain", "nhwc", "nc1hwc2"};

}  // namespace

std::string_view layout_name(LayoutKind kind) noexcept {
  const auto i = static_cast<std::size_t>(kind);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

std::optional<LayoutKind> layout_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<LayoutKind>(i);
  return std::nullopt;
}

namespace {

Status check_layout(const Shape& shape, DType dtype, const Layout& layout) {
  const std::string_view name = layout_name(layout.kind);
  if (name == "unknown") {
    return error(Code::kInvalidArgument, "layout {} is none of plain, nhwc, nc1hwc2",
                 static_cast<int>(layout.kind));
  }
  const bool plain = layout.kind == LayoutKind::kPlain;
  if ((!plain || layout.w_stride != 0) && shape.rank() != 4) {
    return error(Code::kInvalidArgument,
                 "layout {}{} needs a 4-D shape, given {}; use plain without a row stride", name,
                 plain ? " with a row stride" : "", shape.to_string());
  }
  if (layout.kind == LayoutKind::kNC1HWC2 && layout.c2 == 0)
    return error(Code::kInvalidArgument, "layout nc1hwc2 needs c2 >= 1, given 0");
  if (layout.w_stride != 0 && static_cast<std::int64_t>(layout.w_stride) < shape[3]) {
    return error(Code::kInvalidArgument,
                 "w_stride {} is below the width of {}; give at least {}, or 0 for the width",
                 layout.w_stride, shape.to_string(), shape[3]);
  }
  if (dtype_bits(dtype) < 8 && (!plain || layout.w_stride != 0)) {
    return error(Code::kInvalidArgument,
                 "{} packs several elements to a byte and is allowed in plain layout without a row "
                 "stride only, given {}",
                 dtype_name(dtype), name);
  }
  return {};
}

/// The product, or nullopt when it overflows. 0 when any factor is.
std::optional<std::size_t> product(std::initializer_list<std::size_t> factors) {
  // First: a product that is 0 in the end must not overflow on the way.
  for (const std::size_t f : factors)
    if (f == 0) return 0;
  std::size_t result = 1;
  for (const std::size_t f : factors)
    if (__builtin_mul_overflow(result, f, &result)) return std::nullopt;
  return result;
}

std::optional<std::size_t> stored_elements(const Shape& shape, const Layout& layout) {
  if (layout.kind == LayoutKind::kPlain && layout.w_stride == 0) return shape.elements();
  const auto dim = [&shape](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  const std::size_t row = layout.w_stride != 0 ? layout.w_stride : dim(3);
  if (layout.kind != LayoutKind::kNC1HWC2) return product({dim(0), dim(1), dim(2), row});
  const std::size_t c1 = dim(1) / layout.c2 + (dim(1) % layout.c2 != 0 ? 1 : 0);
  return product({dim(0), c1, dim(2), row, layout.c2});
}

}  // namespace

Result<std::size_t> storage_bytes(const Shape& shape, DType dtype, const Layout& layout) {
  if (dtype == DType::kString)
    return error(Code::kUnsupported, "string tensors have no fixed size and are not supported");
  if (dtype_bits(dtype) == 0) {
    return error(Code::kInvalidArgument, "element type {} has no size; name one such as f32",
                 dtype_name(dtype));
  }
  // All negative numbers, not the open dimension alone.
  for (const std::int64_t d : shape.dims()) {
    if (d < 0) {
      return error(Code::kInvalidArgument,
                   "shape {} is not static; fix its open dimensions before asking for bytes",
                   shape.to_string());
    }
  }
  // Dense is what most tensors are, and fits every shape.
  if (layout != Layout{}) CORELANE_TRY(check_layout(shape, dtype, layout));
  const auto count = stored_elements(shape, layout);
  const std::size_t bytes = count ? dtype_bytes(dtype, *count) : SIZE_MAX;
  // Half of it: sums and differences of two sizes fit as well.
  if (bytes >= SIZE_MAX / 2) {
    return error(Code::kInvalidArgument, "a tensor of {} {} in layout {} exceeds the address space",
                 dtype_name(dtype), shape.to_string(), layout_name(layout.kind));
  }
  return bytes;
}

bool has_whole_rows(const Shape& shape, DType dtype) noexcept {
  if (shape.rank() == 0) return false;
  // Of the product only the last three bits count, so it cannot overflow.
  std::size_t bits = dtype_bits(dtype) % 8;
  for (std::size_t i = 1; i < shape.rank() && bits != 0; ++i) {
    if (shape[i] < 0) return false;
    bits = bits * static_cast<std::size_t>(shape[i] % 8) % 8;
  }
  return bits == 0;
}

}  // namespace corelane
