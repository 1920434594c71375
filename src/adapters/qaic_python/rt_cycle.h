/// Objects that Python's garbage collector sees through, so that cycles by way of a callback end.
#pragma once

#include <nanobind/nanobind.h>

#include <array>

namespace corelane::qaic_python {

/// For nb::type_slots(): `T::show(visit, arg)` visits the Python objects that a `T` holds. Cycles
/// are broken elsewhere, at the object that refers to it.
template <class T>
PyType_Slot* cycle_slots() {
  static constexpr auto traverse = [](PyObject* self, visitproc visit, void* arg) -> int {
    Py_VISIT(Py_TYPE(self));
    return nanobind::inst_ready(self) ? nanobind::inst_ptr<T>(self)->show(visit, arg) : 0;
  };
  static constexpr auto clear = [](PyObject*) -> int { return 0; };
  static std::array<PyType_Slot, 3> slots{
      {{Py_tp_traverse, reinterpret_cast<void*>(static_cast<traverseproc>(traverse))},
       {Py_tp_clear, reinterpret_cast<void*>(static_cast<inquiry>(clear))},
       {0, nullptr}}};
  return slots.data();
}

/// The same for an object that has functions of the user: `T::silence()` runs before any object of
/// a cycle is taken apart.
template <class T>
PyType_Slot* callback_slots() {
  static constexpr auto finalize = [](PyObject* self) {
    if (nanobind::inst_ready(self)) nanobind::inst_ptr<T>(self)->silence();
  };
  PyType_Slot* const known = cycle_slots<T>();
  static std::array<PyType_Slot, 4> slots{
      {known[0],
       known[1],
       {Py_tp_finalize, reinterpret_cast<void*>(static_cast<destructor>(finalize))},
       {0, nullptr}}};
  return slots.data();
}

}  // namespace corelane::qaic_python
