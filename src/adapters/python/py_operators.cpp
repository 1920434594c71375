#include "adapters/python/py_operators.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_arrays.h"
#include "adapters/python/py_errors.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

/// A copy, because a function may keep its arguments for longer than the engine keeps the memory.
nb::object input_array(const TensorView& view) {
  Tensor copy = value_of(Tensor::allocate("", view.dtype, view.shape));
  if (copy.size > 0) std::memcpy(copy.data.get(), view.data, copy.size);
  return make_array(copy);
}

nb::dict attributes_of(const device::HostOperatorCall& call) {
  nb::dict attributes;
  for (const auto& [name, value] : call.attributes)
    attributes[name.c_str()] = std::visit([](const auto& v) { return nb::cast(v); }, value);
  return attributes;
}

/// Copies one result to the engine's memory; type and shape must be the model's.
Status write_output(const device::HostOperatorCall& call, std::size_t index, nb::handle value) {
  const MutableTensorView& to = call.outputs[index];
  TensorDesc desc;
  desc.name = "output " + std::to_string(index) + " of " + std::string(call.type);
  desc.dtype = to.dtype;
  desc.shape = to.shape;
  const ArrayView from = read_array(value, desc);
  if (from.view.dtype != to.dtype || from.view.shape != to.shape) {
    return error(Code::kHostOperatorFailed,
                 "the function of '{}' gave {} {} as output {}; the model has {} {}", call.type,
                 dtype_name(from.view.dtype), from.view.shape.to_string(), index,
                 dtype_name(to.dtype), to.shape.to_string());
  }
  if (to.size > 0) std::memcpy(to.data, from.view.data, to.size);
  return {};
}

Status call_function(nb::handle function, const device::HostOperatorCall& call) {
  nb::list inputs;
  for (const TensorView& view : call.inputs) inputs.append(input_array(view));
  const nb::dict attributes = attributes_of(call);
  const nb::object result = parked_at_end([&] { return function(*inputs, **attributes); });
  // An array is not a list of outputs, even where its first dimension would fit.
  const bool many = nb::isinstance<nb::list>(result) || nb::isinstance<nb::tuple>(result);
  if (!many && call.outputs.size() == 1) return write_output(call, 0, result);
  const std::size_t given = many ? nb::len(result) : 1;
  if (given != call.outputs.size()) {
    return error(Code::kHostOperatorFailed,
                 "the function of '{}' gave {} outputs; node '{}' has {}", call.type, given,
                 call.name, call.outputs.size());
  }
  for (std::size_t i = 0; i < given; ++i) {
    const nb::object output = result[i];
    CORELANE_TRY(write_output(call, i, output));
  }
  return {};
}

/// Any thread of a device, without the lock.
Status run_function(PyObject* function, const device::HostOperatorCall& call) {
  const Entered lock;
  // The task fails as any other whose operator fails: the session may still be closing.
  if (!lock) return error(Code::kHostOperatorFailed, "the interpreter has ended");
  try {
    return call_function(function, call);
  } catch (nb::python_error& raised) {
    const nb::object name = raised.type().attr("__name__");
    const nb::str text(raised.value());
    return error(Code::kHostOperatorFailed, "the function raised {}: {}",
                 nb::cast<std::string>(name), text.c_str());
  }
}

}  // namespace

std::shared_ptr<device::HostOperatorTable> read_operators(const nb::dict& functions) {
  auto table = std::make_shared<device::HostOperatorTable>();
  for (const auto& [key, value] : functions) {
    const auto name = nb::cast<std::string>(key);
    // Devices drop the table in any thread.
    std::shared_ptr<PyObject> held = shared(nb::borrow(value).release().ptr());
    // The key of the table is the type; the domain only selects nodes.
    check(table->add(name.substr(name.rfind('.') + 1),
                     [held = std::move(held)](const device::HostOperatorCall& call) {
                       return run_function(held.get(), call);
                     }));
  }
  return table;
}

}  // namespace corelane::python
