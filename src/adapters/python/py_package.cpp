#include "adapters/python/py_package.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/leaked.h"
#include "corelane/base/status.h"

namespace corelane::python {

namespace nb = nanobind;

namespace {

/// Threads may still report failures while the interpreter ends.
Package& connected() noexcept {
  static Leaked<Package> package;
  return *package;
}

/// An enum.Enum of all codes.
nb::object make_codes() {
  constexpr int kNumbers = 1000;  // Beyond the last band.
  nb::list members;
  for (int number = 0; number < kNumbers; ++number) {
    std::string name(code_name(static_cast<Code>(number)));
    if (name == code_name(static_cast<Code>(kNumbers))) continue;  // No such code.
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    members.append(nb::make_tuple(nb::str(name.c_str()), number));
  }
  return nb::module_::import_("enum").attr("Enum")("Code", members,
                                                   nb::arg("module") = "corelane._native");
}

}  // namespace

const Package& package() noexcept { return connected(); }

void bind_package(nb::module_& module) {
  module.attr("Code") = make_codes();
  module.def(
      "connect",
      [](nb::object status_error, nb::object coerce, nb::object dtype_of, nb::object strings_of,
         nb::object string_array) {
        connected() = {std::move(status_error), std::move(coerce), std::move(dtype_of),
                       std::move(strings_of), std::move(string_array)};
      },
      nb::arg("status_error"), nb::arg("coerce"), nb::arg("dtype_of"), nb::arg("strings_of"),
      nb::arg("string_array"));
}

}  // namespace corelane::python
