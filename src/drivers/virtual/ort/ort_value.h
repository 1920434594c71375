/// Values that are no plain tensors, between their flat form (corelane/tensor/value.h) and the
/// engine's own.
#pragma once

#include "corelane/base/bytes.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/ort/ort_library.h"

namespace corelane::drivers::virtual_npu::ort {

/// The engine's value of the flat form in `bytes`, which must be of `desc`'s type and stay as they
/// are while the value is used: numbers are not copied. `aligned` gets a copy where `bytes` are not
/// aligned. Null for an optional without a value. kMalformed, kTypeMismatch, kShapeMismatch;
/// kEngineFailed.
Result<OwnedValue> value_of_flat(const OrtLibrary& library, const TensorDesc& desc, ByteSpan bytes,
                                 ByteVector& aligned);

/// The flat form of a value of `desc`'s type.
Result<ByteVector> flat_of_value(const OrtLibrary& library, const TensorDesc& desc,
                                 OrtValue* value);

/// A sequence of no tensors of type `within`, which the C interface has no way to make: a network
/// of one node does. kUnsupported for other sequences.
Result<OwnedValue> make_empty_sequence(const OrtLibrary& library, const ValueType& within);

}  // namespace corelane::drivers::virtual_npu::ort
