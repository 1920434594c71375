/// The bits of elements of 8 bits and fewer, one element a byte and as tensors hold them. Any
/// thread.
#pragma once

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// The elements of a plain tensor, one a byte in the low bits; those above are 0. kUnsupported for
/// elements of more than 8 bits, kInvalidArgument for another layout or an open shape, kOutOfRange
/// where the view has too few bytes.
CORELANE_API Result<ByteVector> unpack_bits(const TensorView& tensor);

/// The inverse for elements of `dtype`: bits above those of an element are left out. kUnsupported
/// for elements of more than 8 bits.
CORELANE_API Result<ByteVector> pack_bits(ByteSpan elements, DType dtype);

}  // namespace corelane
