/// Python's values as flat forms (corelane/tensor/value.h), and back: object arrays of str, lists,
/// dicts, None. All functions need the lock.
#pragma once

#include <nanobind/nanobind.h>

#include "adapters/python/py_arrays.h"
#include "corelane/tensor/desc.h"
#include "corelane/tensor/tensor.h"

namespace corelane::python {

/// The flat form of `value`, for an input that has one. StatusError (kTypeMismatch) for a value of
/// another type.
ArrayView encode_value(nanobind::handle value, const TensorDesc& desc);

/// What a flat form holds, as onnxruntime gives it: an array of str, a list, a dict, None.
nanobind::object decode_value(const Tensor& tensor);

}  // namespace corelane::python
