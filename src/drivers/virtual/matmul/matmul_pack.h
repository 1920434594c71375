/// B of a matrix product in the form that the product reads.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/matmul_image.h"
#include "drivers/virtual/matmul/matmul_gemm.h"

namespace corelane::drivers::virtual_npu {

/// M up to which a product of floats reads B in the size it has.
inline constexpr std::int64_t kLeanRows = 4;

/// Integers where scales can wait until the sums are done, else f32: two forms, by M.
GemmForm form_of(const device::MatmulDesc& desc);

/// Reads B, `bytes` in the layout of `desc`, and packs it on `threads` threads. In kF32 its scales
/// and zero points are applied, in kLean they come with it. kOutOfMemory, kEngineFailed.
Result<std::shared_ptr<const PackedB>> pack_b(const device::MatmulDesc& desc, GemmForm form,
                                              ByteSpan bytes, std::size_t threads);

}  // namespace corelane::drivers::virtual_npu
