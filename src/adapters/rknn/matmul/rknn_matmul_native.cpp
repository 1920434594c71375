/// rknn_B_normal_layout_to_native_layout.
///
/// Programs bring whole models to the native layout as they load them, so it goes block by block
/// instead of element by element.
#include <algorithm>
#include <cstddef>

#include "adapters/rknn/matmul/rknn_matmul.h"

namespace corelane::rknn {
namespace {

/// Writes native B front to back. `per_unit` elements along K make one `Unit`; `unit(k, n)` gives
/// the one that begins at (k, n), inside the matrix or in its padding.
template <class Unit, class Make>
void write_native(const device::MatmulDesc& desc, std::int64_t per_unit, Unit* out, Make unit) {
  const std::int64_t segment = desc.k_segment == 0 ? desc.k : desc.k_segment;
  const std::int64_t block_n = desc.b_block_n;
  const std::int64_t block_k = desc.b_block_k;
  for (std::int64_t first = 0; first < desc.k; first += segment) {
    const std::int64_t end = std::min(first + segment, desc.k);
    for (std::int64_t n = 0; n < desc.n; n += block_n)
      for (std::int64_t k = first; k < end; k += block_k)
        for (std::int64_t column = n; column < n + block_n; ++column)
          for (std::int64_t row = k; row < k + block_k; row += per_unit) *out++ = unit(row, column);
  }
}

template <class Element>
void write_whole(const device::MatmulDesc& desc, const void* input, void* output) {
  const auto* in = static_cast<const Element*>(input);
  write_native(desc, 1, static_cast<Element*>(output), [&](std::int64_t k, std::int64_t n) {
    return k < desc.k && n < desc.n ? in[k * desc.n + n] : Element{0};
  });
}

void write_nibbles(const device::MatmulDesc& desc, const void* input, void* output) {
  const auto* in = static_cast<const std::uint8_t*>(input);
  const auto element = [&](std::int64_t k, std::int64_t n) {
    if (k >= desc.k || n >= desc.n) return 0U;
    const std::int64_t i = k * desc.n + n;
    return static_cast<unsigned>(in[i / 2]) >> (i % 2 * 4) & 0xFU;
  };
  write_native(desc, 2, static_cast<std::uint8_t*>(output), [&](std::int64_t k, std::int64_t n) {
    return static_cast<std::uint8_t>(element(k, n) | element(k + 1, n) << 4);
  });
}

}  // namespace

Outcome native_b(const void* input, void* output, int k, int n, std::uint32_t type) {
  const MatmulTypes* types = matmul_types(type);
  if (types == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID, "info->type {} is not a rknn_matmul_type; there are {}",
                   type, matmul_type_list());
  if (k < 1 || n < 1)
    return outcome(RKNN_ERR_PARAM_INVALID, "K is {} and N is {}; both are 1 or more", k, n);
  const auto chip = current_matmul_chip();
  if (!chip) return chip.error();
  device::MatmulDesc desc;
  desc.k = k;
  desc.n = n;
  desc.b = types->b;
  desc.b_block_n = (*chip)->b_block_n.of(desc.b);
  desc.b_block_k = (*chip)->b_block_k.of(desc.b);
  desc.k_segment = (*chip)->k_segment;
  const std::size_t source =
      dtype_bytes(desc.b, static_cast<std::size_t>(k) * static_cast<std::size_t>(n));
  const std::size_t target = native_b_bytes(desc);
  const auto* in = static_cast<const std::byte*>(input);
  auto* out = static_cast<std::byte*>(output);
  if (in < out + target && out < in + source)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "B_output lies over B_input; it needs {} bytes of its own", target);
  if (desc.b == DType::kI4)
    write_nibbles(desc, input, output);
  else if (desc.b == DType::kI8)
    write_whole<std::uint8_t>(desc, input, output);
  else if (reinterpret_cast<std::uintptr_t>(input) % 2 == 0 &&
           reinterpret_cast<std::uintptr_t>(output) % 2 == 0)
    write_whole<std::uint16_t>(desc, input, output);
  else
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "B_input {} or B_output {} is not a multiple of the 2 bytes of an element",
                   input, output);
  return {};
}

std::size_t native_b_bytes(const device::MatmulDesc& desc) noexcept {
  const auto whole = [](std::int64_t count, std::uint32_t block) {
    return static_cast<std::size_t>((count + block - 1) / block * block);
  };
  return dtype_bytes(desc.b, whole(desc.n, desc.b_block_n) * whole(desc.k, desc.b_block_k));
}

}  // namespace corelane::rknn
