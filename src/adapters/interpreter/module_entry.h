/// The entry of an extension module.
#pragma once

#include <Python.h>

#include <string>

namespace corelane::interpreter {

/// What `make` gives, which makes the module `name`; null with ImportError in another interpreter
/// than the main one, and once `made` is set. Both are refused before nanobind's state is touched,
/// which all interpreters of a process share. Needs the lock.
inline PyObject* make_module(const char* name, const bool& made, PyObject* (*make)()) {
  const std::string module = name;
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    (module + " works only in the main interpreter; run it in a process of its own "
                              "where a program uses subinterpreters")
                        .c_str());
    return nullptr;
  }
  if (made) {
    PyErr_SetString(PyExc_ImportError,
                    (module + " has been imported and taken out of sys.modules; leave it there, "
                              "since a process makes its module once")
                        .c_str());
    return nullptr;
  }
  return make();
}

}  // namespace corelane::interpreter
