/// B of a matrix product in the form that the product reads.
#pragma once

#include <cstddef>
#include <memory>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/matmul_image.h"
#include "drivers/virtual/matmul_gemm.h"

namespace corelane::virtual_npu {

/// Integers where scales can wait until the sums are done, else f32.
GemmForm form_of(const device::MatmulDesc& desc);

/// Reads B, `bytes` in the layout of `desc`, and packs it on `threads` threads. In kF32 its scales
/// and zero points are applied. kOutOfMemory, kEngineFailed.
Result<std::shared_ptr<const PackedB>> pack_b(const device::MatmulDesc& desc, GemmForm form,
                                              ByteSpan bytes, std::size_t threads);

}  // namespace corelane::virtual_npu
