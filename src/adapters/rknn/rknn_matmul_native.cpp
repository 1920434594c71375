/// rknn_B_normal_layout_to_native_layout.
#include <cstddef>

#include "adapters/rknn/rknn_matmul.h"

namespace corelane::rknn {

Outcome native_b(const void* input, void* output, int k, int n, std::uint32_t type) {
  const MatmulTypes* types = matmul_types(type);
  if (types == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID, "info->type {} is no rknn_matmul_type; there are {}",
                   type, matmul_type_list());
  if (k < 1 || n < 1)
    return outcome(RKNN_ERR_PARAM_INVALID, "K is {} and N is {}; both are 1 or more", k, n);
  const auto chip = current_matmul_chip();
  if (!chip) return chip.error();
  device::MatmulDesc from;
  from.m = 1;
  from.k = k;
  from.n = n;
  from.a = DType::kF16;  // Not looked at.
  from.b = types->b;
  from.c = DType::kF32;
  device::MatmulDesc to = from;
  to.b_layout = device::MatmulLayoutB::kNative;
  to.b_block_n = (*chip)->b_block_n.of(to.b);
  to.b_block_k = (*chip)->b_block_k.of(to.b);
  to.k_segment = (*chip)->k_segment;
  const std::size_t source =
      dtype_bytes(from.b, static_cast<std::size_t>(k) * static_cast<std::size_t>(n));
  const std::size_t target = native_b_bytes(to);
  const auto* in = static_cast<const std::byte*>(input);
  auto* out = static_cast<std::byte*>(output);
  if (in < out + target && out < in + source)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "B_output lies over B_input; it needs {} bytes of its own", target);
  return device::relayout_b(from, {in, source}, to, {out, target});
}

std::size_t native_b_bytes(const device::MatmulDesc& desc) noexcept {
  const auto whole = [](std::int64_t count, std::uint32_t block) {
    return static_cast<std::size_t>((count + block - 1) / block * block);
  };
  return dtype_bytes(desc.b, whole(desc.n, desc.b_block_n) * whole(desc.k, desc.b_block_k));
}

}  // namespace corelane::rknn
