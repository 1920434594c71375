/// What the Python package hands to its native module, which imports nothing of the package.
#pragma once

#include <nanobind/nanobind.h>

namespace corelane::python {

/// The parts of the package that native code calls. Every access needs the lock of the interpreter.
struct Package {
  nanobind::object
      status_error;  ///< Class StatusError(code, message, details by key, codes of the causes).
  nanobind::object coerce;    ///< Function (value, input's name, ONNX type, rank); read_array().
  nanobind::object dtype_of;  ///< Function: the element type that numpy has for an ONNX number.
  /// Function (value, input's name): the shape of an array of strings, and its elements as a list
  /// of str or bytes.
  nanobind::object strings_of;
  nanobind::object string_array;  ///< Function (list of str, shape): the array.
};

/// What connect() was given last; corelane/_arrays.py calls it when it is imported.
const Package& package() noexcept;

/// corelane._native.connect, and .Code: the codes of failures under the names of code_name().
void bind_package(nanobind::module_& module);

}  // namespace corelane::python
