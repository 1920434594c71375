/// Memory of a Python object that stays while somebody needs it.
#pragma once

#include <Python.h>

#include <memory>

#include "adapters/interpreter/py_gate.h"

namespace corelane::interpreter {

/// A buffer that Python keeps alive while this lives. Any thread may drop it.
class HeldBuffer {
 public:
  /// The buffer of an object, as PyObject_GetBuffer() gives it; null with its Python error where
  /// the object shows no such memory. Needs the lock.
  static std::shared_ptr<HeldBuffer> of(PyObject* object, int flags) {
    auto held = std::make_shared<HeldBuffer>();
    return PyObject_GetBuffer(object, &held->buffer, flags) == 0 ? held : nullptr;
  }

  HeldBuffer() = default;
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer() {
    if (buffer.obj == nullptr) return;
    // Otherwise too late: the interpreter has taken its objects with it.
    if (const Entered lock; lock) PyBuffer_Release(&buffer);
  }

  Py_buffer buffer{};
};

}  // namespace corelane::interpreter
