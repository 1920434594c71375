/// Descriptions of matrix products to test: types, layouts and quantizations.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "corelane/device/matmul_image.h"

namespace corelane::drivers::virtual_npu {

struct MatmulTypes {
  DType a;
  DType b;
  DType c;
};
inline constexpr std::array kMatmulTypes{
    MatmulTypes{DType::kF16, DType::kF16, DType::kF32},
    MatmulTypes{DType::kI8, DType::kI8, DType::kI32},
    MatmulTypes{DType::kI8, DType::kI8, DType::kI8},
    MatmulTypes{DType::kF16, DType::kF16, DType::kF16},
    MatmulTypes{DType::kF16, DType::kI8, DType::kF32},
    MatmulTypes{DType::kF16, DType::kI8, DType::kF16},
    MatmulTypes{DType::kF16, DType::kI4, DType::kF32},
    MatmulTypes{DType::kF16, DType::kI4, DType::kF16},
    MatmulTypes{DType::kI8, DType::kI8, DType::kF32},
    MatmulTypes{DType::kI4, DType::kI4, DType::kI16},
    MatmulTypes{DType::kI8, DType::kI4, DType::kI32},
    MatmulTypes{DType::kF16, DType::kI4, DType::kBF16},
    MatmulTypes{DType::kI8, DType::kI4, DType::kF16},
};
inline constexpr MatmulTypes kBytes{DType::kI8, DType::kI8, DType::kI32};

inline device::MatmulDesc matmul_of(const MatmulTypes& types, std::int64_t m, std::int64_t k,
                                    std::int64_t n) {
  device::MatmulDesc desc;
  desc.m = m;
  desc.k = k;
  desc.n = n;
  desc.a = types.a;
  desc.b = types.b;
  desc.c = types.c;
  return desc;
}

/// 0: normal, 1: transposed, 2: native as on the RK3588, 3: native, cut along K.
inline void lay_out_b(device::MatmulDesc& desc, int which) {
  desc.b_layout =
      which >= 2 ? device::MatmulLayoutB::kNative : static_cast<device::MatmulLayoutB>(which);
  if (which < 2) return;
  desc.b_block_n = desc.b == DType::kF16 ? 16 : desc.b == DType::kI8 ? 32 : 64;
  desc.b_block_k = 32;
  if (which == 3) desc.k_segment = 64;
}

inline void block_a_and_c(device::MatmulDesc& desc) {
  desc.a_block = desc.a == DType::kF16 ? 8 : desc.a == DType::kI8 ? 16 : 32;
  desc.c_block = desc.c == DType::kI32 || desc.c == DType::kF32 ? 4 : 8;
}

/// Adds the scales and zero points that the types take, B's as asked; false where they take none.
inline bool quantize(device::MatmulDesc& desc, device::MatmulQuantB kind, bool asymmetric) {
  const bool sums = desc.c == DType::kI32 || desc.c == DType::kI16;
  if (is_integer(desc.a)) {
    desc.a_scale = 0.0371F;
    desc.a_zero_point = asymmetric ? 5 : 0;
  }
  if (desc.c == DType::kI8) {
    desc.c_scale = 1.7F;
    desc.c_zero_point = -9;
  }
  const bool none = kind == device::MatmulQuantB::kLayer && !asymmetric;
  if (!is_integer(desc.b) || (kind == device::MatmulQuantB::kGroup && sums)) return none;
  desc.b_quant = kind;
  if (kind == device::MatmulQuantB::kGroup)
    desc.group_size = static_cast<std::uint32_t>(desc.k < 32 ? (desc.k + 1) / 2 : 32);
  std::mt19937 random(7);
  for (std::size_t i = 0; i < desc.b_scale_count(); ++i) {
    desc.b_scales.push_back(0.001F * static_cast<float>(1 + random() % 50));
    if (asymmetric) desc.b_zero_points.push_back(static_cast<std::int32_t>(random() % 16) - 8);
  }
  return true;
}

}  // namespace corelane::drivers::virtual_npu
