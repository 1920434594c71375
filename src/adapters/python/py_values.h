/// Plain values between C++ and Python: texts, and entries of dicts of options.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
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

/// The UTF-8 of a str, which keeps it. TypeError for other objects, and for a str that has none
/// since it holds half a character. `what` they are: "names of inputs".
inline std::string_view utf8(nanobind::handle given, const char* what) {
  Py_ssize_t size = 0;
  const char* const bytes =
      PyUnicode_Check(given.ptr()) ? PyUnicode_AsUTF8AndSize(given.ptr(), &size) : nullptr;
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const std::string shown = nanobind::repr(given).c_str();
  throw nanobind::type_error((std::string(what) + " are strings of UTF-8, given " + shown).c_str());
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
