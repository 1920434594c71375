/// Python functions as host operators: the custom operators of a model.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "corelane/device/host_operator.h"

namespace corelane::python {

/// From a dict of functions by operator type ("MyOp" or "domain.MyOp"). A function is called with
/// copies of the inputs as numpy arrays, by position, and the node's attributes as keywords; it
/// returns the output, or a list or tuple of outputs, in the types and shapes of the model. What it
/// raises fails the task.
std::shared_ptr<device::HostOperatorTable> read_operators(const nanobind::dict& functions);

}  // namespace corelane::python
