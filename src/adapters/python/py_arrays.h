/// numpy arrays as views of tensors, and tensors as numpy arrays, without copies.
///
/// Element types cross the edge as their ONNX numbers (1 = float). All functions need the lock.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "corelane/tensor/desc.h"
#include "corelane/tensor/tensor.h"

namespace corelane::python {

struct ArrayView {
  TensorView view;
  std::shared_ptr<const void> keep_alive;  ///< Any thread may drop it.
};

/// A view of any C-contiguous buffer of native byte order. Everything else (lists, OrtValues,
/// strides, the types of ml_dtypes) goes through the package's coerce() first, which may copy, or
/// raise. For an input in its flat form: those bytes, made of the value.
ArrayView read_array(nanobind::handle value, const TensorDesc& desc);
/// The same for memory that is written: nothing is coerced. StatusError (kInvalidArgument) for
/// anything but a writable buffer.
ArrayView read_writable(nanobind::handle value);

/// A numpy array that shares the tensor's memory; of a flat form the value that it holds.
nanobind::object make_array(const Tensor& tensor);

void bind_arrays(nanobind::module_& module);

}  // namespace corelane::python
