/// Plain values between C++ and Python: texts, and entries of dicts of options.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

namespace corelane::python {

/// A str of UTF-8. Texts of models may be anything: what is none is replaced, as in messages.
inline nanobind::str text(std::string_view s) {
  PyObject* const made =
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
  if (made == nullptr) nanobind::raise_python_error();
  return nanobind::steal<nanobind::str>(made);
}

/// Calls `use` with the value of a key that is there and not None.
template <class T, class F>
void with(const nanobind::dict& given, const char* key, F use) {
  if (!given.contains(key)) return;
  const nanobind::object value = given[key];
  if (!value.is_none()) use(nanobind::cast<T>(value));
}

/// Leaves `target` as it is where the key is absent or None.
template <class T>
void take(const nanobind::dict& given, const char* key, T& target) {
  with<T>(given, key, [&](T value) { target = std::move(value); });
}

/// The value of a key; a default-made one where the key is absent or None.
template <class T>
T taken(const nanobind::dict& given, const char* key) {
  T value{};
  take(given, key, value);
  return value;
}

}  // namespace corelane::python
