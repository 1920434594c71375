/// Integers that come with a run and do not fit into 32 bits: what an engine that computes them in
/// int32 must not be given.
#pragma once

#include <cstddef>
#include <string>

#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"

namespace corelane::drivers::virtual_npu {

/// True for types with values that int32 does not have: i64, u64, u32.
bool may_be_wide(DType dtype) noexcept;

/// kOutOfRange naming the input, the value and its place, where one of `elements` values of such a
/// type at `data` is beyond int32.
Status check_narrow(const std::string& input, DType dtype, const void* data, std::size_t elements);

}  // namespace corelane::drivers::virtual_npu
