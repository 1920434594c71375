/// Texts of the library, which may hold any bytes, as text of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

namespace corelane::qaic_python {

/// UTF-8; each byte that is none becomes U+FFFD. With the lock of the interpreter.
inline nanobind::str text_of(std::string_view text) {
  return nanobind::steal<nanobind::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace corelane::qaic_python
