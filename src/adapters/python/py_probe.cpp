// corelane._native.Probe: a program that shows its inner values and the times of its layers. One
// context, one caller at a time; sessions are for everything else.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_arrays.h"
#include "adapters/python/py_compile.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_session.h"
#include "adapters/python/py_values.h"
#include "corelane/runtime/program.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

class Probe {
 public:
  Probe(nb::handle model, const std::string& device, std::vector<std::string> exposed,
        bool profile) {
    const ModelSource source(model);
    LoadOptions options;
    options.device = device;
    options.exposed_values = std::move(exposed);
    options.profile_layers = profile;
    program_ = value_of(without_lock([&] {
      return source.is_path() ? Program::load(source.path(), options)
                              : Program::load(source.bytes(), options);
    }));
    // Prepares the executable: its failures are those of the constructor.
    context_ = value_of(without_lock([&] { return program_.new_context(); }));
  }

  /// Inputs by position, of the types that the network has, or what converts to them; outputs of
  /// the network, then the exposed values.
  nb::list run(const nb::sequence& inputs) {
    const std::vector<TensorDesc> descs = context_.inputs();
    if (nb::len(inputs) != descs.size()) {
      raise(error(Code::kInvalidArgument, "the network has {} inputs, {} were given", descs.size(),
                  nb::len(inputs)));
    }
    std::vector<ArrayView> held;
    // All arrays are held until the run is over.
    for (const nb::handle value : inputs) held.push_back(read_array(value, descs[held.size()]));
    std::vector<Tensor> outputs;
    check(without_lock([&] { return run_released(held, outputs); }));
    return make_outputs(outputs);
  }

  nb::list output_names() const {
    nb::list names;
    for (const TensorDesc& desc : context_.outputs()) names.append(text(desc.name));
    return names;
  }

  nb::list layer_times() const {
    nb::list list;
    for (const device::LayerTime& layer : value_of(context_.layer_times())) {
      nb::dict shown;
      shown["name"] = text(layer.name);
      shown["type"] = text(layer.type);
      shown["kernel"] = text(layer.kernel);
      shown["dtype"] = text(dtype_name(layer.dtype));
      shown["us"] = std::chrono::duration<double, std::micro>(layer.duration).count();
      shown["executed"] = layer.executed;
      list.append(shown);
    }
    return list;
  }

  double device_us() const {
    return std::chrono::duration<double, std::micro>(context_.times().device).count();
  }

 private:
  Status run_released(const std::vector<ArrayView>& inputs, std::vector<Tensor>& outputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CORELANE_TRY(context_.set_input(i, inputs[i].view));
    CORELANE_TRY(context_.run());
    const std::vector<TensorDesc> descs = context_.outputs();
    for (std::size_t i = 0; i < descs.size(); ++i) {
      CORELANE_ASSIGN(const TensorView view, context_.output(i));
      CORELANE_ASSIGN(outputs.emplace_back(), Tensor::copy_of(descs[i].name, view));
    }
    return {};
  }

  Program program_;
  Context context_;
};

}  // namespace

void bind_probe(nb::module_& module) {
  using nb::arg;
  nb::class_<Probe>(module, "Probe")
      .def(nb::init<nb::handle, const std::string&, std::vector<std::string>, bool>(), arg("model"),
           arg("device"), arg("exposed"), arg("profile"))
      .def("run", &Probe::run, arg("inputs"))
      .def_prop_ro("output_names", &Probe::output_names)
      .def("layer_times", &Probe::layer_times)
      .def_prop_ro("device_us", &Probe::device_us);
}

}  // namespace corelane::python
