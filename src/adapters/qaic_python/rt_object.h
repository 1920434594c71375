/// The C++ objects behind arguments, which a user may have made without their __init__.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace corelane::qaic_python {

/// The argument as a `T`; null where it is of another class. TypeError where its __init__ has not
/// run, or raised: Python's object holds no `T` then.
template <class T>
T* object_in(nanobind::handle given) {
  if (!nanobind::isinstance<T>(given)) return nullptr;
  if (!nanobind::inst_ready(given))
    throw nanobind::type_error((std::string("the ") +
                                nanobind::type_name(nanobind::type<T>()).c_str() +
                                " was not initialised: its __init__ did not run, or raised; call "
                                "super().__init__() in a class of your own")
                                   .c_str());
  return nanobind::inst_ptr<T>(given);
}

/// The same where nothing else will do; TypeError that names `what` for others.
template <class T>
T& object_of(nanobind::handle given, const char* what) {
  if (T* const object = object_in<T>(given); object != nullptr) return *object;
  throw nanobind::type_error((std::string(what) + " is missing, or of another class; pass a " +
                              nanobind::type_name(nanobind::type<T>()).c_str())
                                 .c_str());
}

/// An argument as a `T`; TypeError that says `what` it is where it is of another kind or out of
/// range.
template <class T>
T value_of(nanobind::handle given, const char* what) {
  T value{};
  if (nanobind::try_cast(given, value)) return value;
  throw nanobind::type_error(
      (std::string(what) + ", not " + nanobind::repr(given).c_str()).c_str());
}

}  // namespace corelane::qaic_python
