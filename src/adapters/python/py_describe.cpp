// Descriptions and figures of a session, as dicts and lists of plain values.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "adapters/python/py_arrays.h"
#include "adapters/python/py_compile.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_options.h"
#include "adapters/python/py_session.h"
#include "adapters/python/py_values.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::python {

namespace nb = nanobind;

namespace {

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
// Of the device's clock: CLOCK_MONOTONIC on a real device, as time.monotonic_ns() has it.
std::int64_t nanoseconds(TimePoint t) { return t.time_since_epoch() / std::chrono::nanoseconds(1); }

nb::dict show_quant(const Quant& quant) {
  nb::dict shown;
  shown["scales"] = nb::cast(quant.scales);
  shown["zero_points"] = nb::cast(quant.zero_points);
  shown["axis"] = quant.axis;
  return shown;
}

/// Open dimensions are their name, or None.
nb::list show_shape(const Shape& shape, const std::vector<std::string>& names) {
  nb::list shown;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i] != Shape::kOpen)
      shown.append(shape[i]);
    else if (i < names.size() && !names[i].empty())
      shown.append(text(names[i]));
    else
      shown.append(nb::none());
  return shown;
}

/// `value`: the type of what a flat form holds, in ONNX's words; "" for tensors of numbers.
nb::dict show_desc(const TensorDesc& desc) {
  nb::dict shown;
  shown["name"] = text(desc.name);
  shown["type"] = onnx_type_of(desc.dtype);
  const ValueType& value = desc.value;
  shown["value"] = text(value.to_string());
  shown["ranked"] = value.empty() || value.shape.has_value();
  if (value.empty()) {
    shown["shape"] = show_shape(desc.shape, desc.dim_names);
  } else {
    // Of sequences and maps onnxruntime shows none.
    const bool optional = value.kind() == ValueKind::kOptional && value.inner().is_tensor();
    const bool shaped = (value.is_tensor() || optional) && value.shape;
    shown["shape"] = show_shape(shaped ? *value.shape : Shape{}, value.dim_names);
  }
  shown["layout"] = text(layout_name(desc.layout.kind));
  shown["quant"] = desc.quant.kind == QuantKind::kNone ? nb::object(nb::none())
                                                       : nb::object(show_quant(desc.quant));
  return shown;
}

nb::list show_descs(const std::vector<TensorDesc>& descs) {
  nb::list list;
  for (const TensorDesc& desc : descs) list.append(show_desc(desc));
  return list;
}

nb::dict show_statistics(const SessionStatistics& s) {
  nb::dict shown;
  shown["accepted"] = s.accepted;
  shown["completed"] = s.completed;
  shown["failed"] = s.failed;
  shown["cancelled"] = s.cancelled;
  shown["rejected"] = s.rejected;
  shown["paced"] = s.paced;
  shown["callbacks"] = s.callbacks;
  shown["waiting"] = s.waiting;
  shown["running"] = s.running;
  shown["pending_callbacks"] = s.pending_callbacks;
  shown["average_device_time"] = seconds(s.average_device_time);
  shown["contexts"] = s.contexts;
  shown["duplicated"] = s.duplicated;
  shown["tasks_by_context"] = nb::cast(s.tasks_by_context);
  shown["core_of_context"] = nb::cast(s.core_of_context);
  return shown;
}

nb::dict show_device(const device::DeviceInfo& info) {
  nb::dict shown;
  shown["kind"] = text(info.kind);
  shown["profile"] = text(info.profile);
  shown["instance"] = text(info.instance);
  shown["engine"] = text(info.engine);
  shown["cores"] = info.cores.size();
  return shown;
}

/// Plain numbers, in order of start: report code in Python makes times of them.
nb::list show_trace(const std::vector<device::JobRecord>& records) {
  nb::list list;
  for (const device::JobRecord& r : records) {
    nb::dict shown;
    shown["task_id"] = r.tag;
    shown["core_bits"] = r.core_bits;
    // Of the moment when it was submitted.
    shown["queue_depth"] = r.queue_depth;
    shown["code"] = text(code_name(r.code));
    shown["queued_ns"] = nanoseconds(r.queued);
    shown["started_ns"] = nanoseconds(r.started);
    shown["ended_ns"] = nanoseconds(r.ended);
    list.append(shown);
  }
  return list;
}

nb::dict show_memory(const device::MemoryFigures& m) {
  nb::dict shown;
  shown["weights"] = m.weights;
  shown["internal"] = m.internal;
  shown["code"] = m.code;
  shown["buffers"] = m.buffers;
  return shown;
}

}  // namespace

nb::list show_entries(const std::vector<IoEntry>& entries) {
  nb::list list;
  for (const IoEntry& entry : entries) {
    nb::dict shown = show_desc(entry.desc);
    // The integer form is the native one where there is one.
    if (entry.quant_dtype != DType::kUndefined) {
      shown["type"] = onnx_type_of(entry.quant_dtype);
      shown["quant"] = show_quant(entry.quant);
    }
    shown["mean"] = nb::cast(entry.mean);
    shown["std"] = nb::cast(entry.std);
    list.append(shown);
  }
  return list;
}

nb::dict show_description(const ProgramDescription& description) {
  nb::dict shown;
  shown["name"] = text(description.name);
  shown["producer"] = text(description.producer);
  const ModelOrigin& origin = description.origin;
  // Programs of earlier versions have the producer's name and version in one text.
  const bool parts = !origin.producer_name.empty() || !origin.producer_version.empty();
  shown["producer_name"] = text(parts ? origin.producer_name : description.producer);
  shown["domain"] = text(origin.domain);
  shown["description"] = text(origin.description);
  shown["graph_description"] = text(origin.graph_description);
  // None where the model says nothing.
  shown["version"] = nb::cast(origin.version);
  shown["custom_string"] = text(description.custom_string);
  nb::dict metadata;
  for (const auto& [key, value] : description.metadata) metadata[text(key)] = text(value);
  shown["metadata"] = metadata;
  nb::list sets;
  for (const auto& set : description.shape_sets) {
    nb::list shapes;
    for (const Shape& shape : set) shapes.append(nb::cast(shape.dims()));
    sets.append(shapes);
  }
  shown["shape_sets"] = sets;
  nb::list custom;
  for (const CustomOperatorDecl& op : description.custom_operators) custom.append(text(op.type));
  shown["custom_operators"] = custom;
  nb::list findings;
  for (const ImportFinding& f : description.findings) findings.append(text(f.text));
  shown["findings"] = findings;
  shown["overridable"] = show_entries(description.overridable);
  return shown;
}

void bind_description(nb::class_<NativeSession>& session) {
  // Methods, not properties: each call makes new objects.
  using Self = const NativeSession&;
  session.def("inputs", [](Self self) { return show_descs(self.session.inputs()); })
      .def("outputs", [](Self self) { return show_descs(self.session.outputs()); })
      .def("native_inputs", [](Self self) { return show_entries(self.session.native_inputs()); })
      .def("native_outputs", [](Self self) { return show_entries(self.session.native_outputs()); })
      .def("description", [](Self self) { return show_description(self.session.description()); })
      .def("options", [](Self self) { return show_options(self.session.options()); })
      .def("warnings", [](Self self) { return self.session.warnings(); })
      .def("engine",
           [](Self self) {
             const device::EngineChoice choice = self.session.engine();
             nb::dict shown;
             shown["engine"] = text(choice.engine);
             shown["why"] = text(choice.why);
             return shown;
           })
      .def("statistics", [](Self self) { return show_statistics(self.session.statistics()); })
      .def("memory", [](Self self) { return show_memory(self.session.memory()); })
      .def("device", [](Self self) { return show_device(self.session.device()->info()); })
      .def("set_trace",
           [](NativeSession& self, std::size_t records) { check(self.session.set_trace(records)); })
      .def("read_trace", [](Self self) { return show_trace(value_of(self.session.read_trace())); });
}

}  // namespace corelane::python
