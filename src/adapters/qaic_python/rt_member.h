/// What the objects of a context have in common: they keep it, and end without the interpreter's
/// lock.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "adapters/interpreter/py_gate.h"

namespace corelane::qaic_python {

/// `Shared` is the shared pointer of the object in C++.
template <class Shared>
class ContextMember {
 public:
  ContextMember(const ContextMember&) = delete;
  ContextMember& operator=(const ContextMember&) = delete;
  const Shared& get() const noexcept { return object_; }
  const nanobind::object& context() const noexcept { return context_; }
  /// For the garbage collector.
  int show(visitproc visit, void* arg) const {
    Py_VISIT(context_.ptr());
    return 0;
  }

 protected:
  explicit ContextMember(nanobind::object context, Shared object = nullptr) noexcept
      : context_(std::move(context)), object_(std::move(object)) {}
  ~ContextMember() {
    const interpreter::Released released;
    object_.reset();
  }

  nanobind::object context_;  ///< Its callbacks stay as long as the object.
  Shared object_;
};

}  // namespace corelane::qaic_python
