/// Program: a program of a container on one device.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "adapters/qaic_python/rt_context.h"
#include "adapters/qaic_python/rt_member.h"
#include "adapters/qaic_python/rt_object.h"
#include "adapters/qaic_python/rt_qpc.h"
#include "adapters/qaic_python/rt_types.h"

namespace corelane::qaic_python {

class ProgramObject : public ContextMember<qaic::rt::shProgram> {
 public:
  /// `device` may be None, an int, or several numbers, which become the mapping of devices. Throws
  /// as Program::Factory.
  ProgramObject(nanobind::object context, nanobind::handle device, nanobind::handle qpc,
                const ProgramProperties& properties, const std::string& name);
  /// One of a group.
  ProgramObject(nanobind::object context, qaic::rt::shProgram program) noexcept
      : ContextMember(std::move(context), std::move(program)) {}
};

/// A Python object for a program that another object of `context` has made.
nanobind::object program_object(nanobind::object context, qaic::rt::shProgram program);

/// A slicing specification.
class SlicingObject {
 public:
  explicit SlicingObject(qaic::rt::shSlicingSpec spec) noexcept : spec_(std::move(spec)) {}
  const qaic::rt::shSlicingSpec& get() const noexcept { return spec_; }

 private:
  qaic::rt::shSlicingSpec spec_;
};

void bind_program(nanobind::module_& module);

}  // namespace corelane::qaic_python
