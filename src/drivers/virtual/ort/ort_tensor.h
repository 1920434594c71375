/// Tensors of the engine: types, memory, shape.
#pragma once

#include <string_view>

#include "corelane/device/device.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/ort/ort_library.h"

namespace corelane::drivers::virtual_npu::ort {

/// The interface's number of an element type, and back; kUndefined for one without a type here.
ONNXTensorElementDataType engine_type(DType dtype);
DType dtype_of(ONNXTensorElementDataType type);

/// A tensor over memory that is not its own. Memory of size 0 has some address all the same, since
/// the engine takes no null.
Result<OwnedValue> wrap_tensor(const OrtLibrary& library, std::string_view name, DType dtype,
                               void* data, const Shape& shape);

/// The element type and shape of a tensor.
struct TensorForm {
  DType dtype = DType::kUndefined;
  Shape shape;
};
Result<TensorForm> form_of(const OrtLibrary& library, std::string_view name, const OrtValue* value);
/// The same of what describes a tensor; dimensions that the engine does not know are open. `what`
/// and `code`: of a failure.
Result<TensorForm> form_of(const OrtLibrary& library, std::string_view what, Code code,
                           const OrtTensorTypeAndShapeInfo* info);

/// Where a tensor of numbers lies, and its shape.
Result<device::TensorRef> tensor_of(const OrtLibrary& library, OrtValue* value,
                                    const TensorDesc& desc);

}  // namespace corelane::drivers::virtual_npu::ort
