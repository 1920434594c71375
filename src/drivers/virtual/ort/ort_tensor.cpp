#include "drivers/virtual/ort/ort_tensor.h"

#include <string>
#include <utility>
#include <vector>

namespace corelane::drivers::virtual_npu::ort {
namespace {

/// Where the interface's number of an element type differs from ONNX's.
constexpr std::pair<DType, ONNXTensorElementDataType> kOtherNumbers[] = {
    {DType::kU2, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2},
    {DType::kI2, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2},
    {DType::kF8E8M0, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0}};

}  // namespace

ONNXTensorElementDataType engine_type(DType dtype) {
  for (const auto& [own, engine] : kOtherNumbers)
    if (own == dtype) return engine;
  return static_cast<ONNXTensorElementDataType>(onnx_type_of(dtype));
}

DType dtype_of(ONNXTensorElementDataType type) {
  for (const auto& [own, engine] : kOtherNumbers)
    if (engine == type) return own;
  return dtype_from_onnx(type);
}

Result<OwnedValue> wrap_tensor(const OrtLibrary& library, std::string_view name, DType dtype,
                               void* data, const Shape& shape) {
  static std::byte nothing[64];
  const std::size_t bytes = dtype_bytes(dtype, shape.elements().value_or(0));
  return make_owned<OwnedValue, entry::CreateTensorWithDataAsOrtValue>(
      library, name, Code::kShapeMismatch, library.cpu(),
      data == nullptr ? static_cast<void*>(&nothing) : data, bytes, shape.dims().data(),
      shape.rank(), engine_type(dtype));
}

Result<TensorForm> form_of(const OrtLibrary& library, std::string_view what, Code code,
                           const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  CORELANE_TRY(library.call<entry::GetTensorElementType>(what, code, info, &type));
  std::size_t rank = 0;
  CORELANE_TRY(library.call<entry::GetDimensionsCount>(what, code, info, &rank));
  std::vector<std::int64_t> dims(rank);
  CORELANE_TRY(library.call<entry::GetDimensions>(what, code, info, dims.data(), rank));
  for (std::int64_t& dim : dims)
    if (dim < 0) dim = Shape::kOpen;
  return TensorForm{dtype_of(type), Shape(std::move(dims))};
}

Result<TensorForm> form_of(const OrtLibrary& library, std::string_view name,
                           const OrtValue* value) {
  CORELANE_ASSIGN(const auto info, (make_owned<OwnedTensorInfo, entry::GetTensorTypeAndShape>(
                                       library, name, Code::kEngineFailed, value)));
  return form_of(library, name, Code::kEngineFailed, info.get());
}

Result<device::TensorRef> tensor_of(const OrtLibrary& library, OrtValue* value,
                                    const TensorDesc& desc) {
  CORELANE_ASSIGN(TensorForm form, form_of(library, desc.name, value));
  device::TensorRef tensor;
  tensor.shape = std::move(form.shape);
  tensor.size = dtype_bytes(desc.dtype, tensor.shape.elements().value_or(0));
  if (tensor.size == 0) return tensor;
  CORELANE_TRY(library.call<entry::GetTensorMutableData>(desc.name, Code::kEngineFailed, value,
                                                         &tensor.data));
  return tensor;
}

}  // namespace corelane::drivers::virtual_npu::ort
