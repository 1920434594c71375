// corelane._native.Binding: memory bound once, used by many runs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_arrays.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_options.h"
#include "adapters/python/py_session.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

struct NativeBinding {
  NativeBinding(const NativeSession& s, IoBinding b)
      : session(s.session), inputs(s.inputs), tags(s.tags), binding(std::move(b)) {}
  ~NativeBinding() {
    // Closing may call back, and callbacks need the lock.
    const Released released;
    binding = {};
    session = {};
  }
  NativeBinding(const NativeBinding&) = delete;
  NativeBinding& operator=(const NativeBinding&) = delete;

  Session session;
  std::vector<TensorDesc> inputs;
  std::shared_ptr<Tags> tags;
  IoBinding binding;

  ArrayView read(const std::string& name, nb::handle array) const {
    return read_array(array, input_desc(inputs, name));
  }
};

/// Memory by its address, which the caller vouches for.
MutableTensorView raw_view(std::uintptr_t address, int type, std::vector<std::int64_t> shape) {
  MutableTensorView view;
  view.data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): from Python.
  view.dtype = dtype_from_onnx(type);
  view.shape = Shape(std::move(shape));
  // The size is computed: an address has none.
  view.size = value_of(storage_bytes(view.shape, view.dtype, view.layout));
  return view;
}

/// `type` 0: what the array's format says.
void bind_output_array(NativeBinding& self, const std::string& name, nb::handle array, int type) {
  // The array is kept by the binding, not by the caller.
  ArrayView read = read_writable(array);
  MutableTensorView view;
  view.data = const_cast<void*>(read.view.data);
  view.size = read.view.size;
  view.dtype = type == 0 ? read.view.dtype : dtype_from_onnx(type);
  view.shape = read.view.shape;
  if (dtype_bits(view.dtype) < 8) {
    raise(
        error(Code::kUnsupported,
              "output '{}': an array has an element of {} in each byte, and a session writes them "
              "packed; bind it without memory",
              name, dtype_name(view.dtype)));
  }
  check(self.binding.bind_output(name, view, std::move(read.keep_alive)));
}

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

}  // namespace

void bind_binding(nb::module_& module) {
  using nb::arg;
  nb::class_<NativeBinding>(module, "Binding")
      .def(
          "__init__",
          [](NativeBinding* self, NativeSession& session) {
            new (self) NativeBinding(session, value_of(session.session.io_binding()));
          },
          arg("session"))
      .def("bind_input",
           [](NativeBinding& self, const std::string& name, nb::handle array) {
             ArrayView read = self.read(name, array);
             check(self.binding.bind_input(name, read.view, std::move(read.keep_alive)));
           })
      .def("copy_input",
           [](NativeBinding& self, const std::string& name, nb::handle array) {
             check(self.binding.copy_input(name, self.read(name, array).view));
           })
      .def("bind_raw_input",
           [](NativeBinding& self, const std::string& name, std::uintptr_t address, int type,
              std::vector<std::int64_t> shape) {
             check(self.binding.bind_input(name, raw_view(address, type, std::move(shape))));
           })
      .def("bind_output", [](NativeBinding& self,
                             const std::string& name) { check(self.binding.bind_output(name)); })
      .def("bind_output_array", [](NativeBinding& self, const std::string& name, nb::handle array,
                                   int type) { bind_output_array(self, name, array, type); })
      .def("bind_raw_output",
           [](NativeBinding& self, const std::string& name, std::uintptr_t address, int type,
              std::vector<std::int64_t> shape) {
             check(self.binding.bind_output(name, raw_view(address, type, std::move(shape))));
           })
      .def("clear_inputs", [](NativeBinding& self) { self.binding.clear_inputs(); })
      .def("clear_outputs", [](NativeBinding& self) { self.binding.clear_outputs(); })
      .def_prop_ro("input_names",
                   [](NativeBinding& self) { return strings(self.binding.input_names()); })
      .def_prop_ro("output_names",
                   [](NativeBinding& self) { return strings(self.binding.output_names()); })
      .def("outputs", [](NativeBinding& self) { return make_outputs(self.binding.outputs()); })
      .def(
          "run",
          [](NativeBinding& self, nb::handle terms) {
            const CallOptions options = self.tags->apply(read_call(nb::none(), terms));
            check(without_lock([&] { return self.session.run(self.binding, options); }));
          },
          arg("terms").none() = nb::none());
}

}  // namespace corelane::python
