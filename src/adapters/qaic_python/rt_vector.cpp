#include "adapters/qaic_python/rt_vector.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_errors.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_object.h"
#include "adapters/qaic_python/rt_qpc.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;
using Source = rt::InferenceVector::DataSourceType;

namespace {

rt::BufferMappings mappings_of(nb::handle given) {
  if (const QpcObject* const qpc = object_in<QpcObject>(given); qpc != nullptr)
    return qpc->get()->getBufferMappings();
  return value_of<rt::BufferMappings>(
      given, "an InferenceVector is made of a Qpc or of a list of BufferMapping");
}

/// `from` is a Qpc or its mappings.
template <class From>
rt::shInferenceVector vector_of(const From& from, nb::handle source) {
  using Vector = rt::InferenceVector;
  if (source.is_none()) return Vector::Factory(from);
  if (nb::isinstance<Source>(source)) return Vector::Factory(from, nb::cast<Source>(source));
  std::vector<std::string> files;
  if (!nb::try_cast(source, files))
    throw nb::type_error(
        "the source of an InferenceVector is a DataSourceType or a list of names of files");
  return without_lock([&] { return Vector::Factory(from, files); });
}

}  // namespace

VectorObject::VectorObject(rt::BufferMappings mappings, rt::shInferenceVector made)
    : mappings_(std::move(mappings)), vector_(std::move(made)) {
  for (const rt::BufferMapping& mapping : mappings_) {
    if (mapping.ioType == BUFFER_IO_TYPE_INPUT) ++inputs_;
    buffers_.append(nb::none());
  }
  show(0, mappings_.size());
}

void VectorObject::show(std::size_t first, std::size_t last) {
  const std::vector<QBuffer> own = vector_->getVector();
  for (std::size_t i = first; i < last; ++i) {
    Buffer buffer;
    buffer.raw = own[i];
    buffer.writable = true;
    buffer.keep = vector_;
    buffers_[i] = nb::cast(buffer);
  }
}

Buffers VectorObject::give() {
  Buffers buffers = buffers_of(buffers_);
  if (bring_outputs(buffers, mappings_, {}))
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].own) buffers_[i] = nb::cast(buffers[i]);
  given_ = true;
  return buffers;
}

nb::list VectorObject::list() {
  // For the checking mode, which reports outputs that are read too early.
  if (given_) rt::detail::buffersAsked("InferenceVector::getVector", raw(buffers_of(buffers_)));
  return buffers_;
}

QStatus VectorObject::set(QStatus (rt::InferenceVector::*put)(const std::vector<QBuffer>&),
                          nb::handle given, std::size_t first) {
  const Buffers buffers = buffers_of(given);
  const QStatus status = ((*vector_).*put)(raw(buffers));
  // The class has checked how many there are, so that `first + i` is in the list.
  if (status == QS_SUCCESS)
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers_[first + i] = nb::cast(buffers[i]);
  return status;
}

QStatus VectorObject::load(const std::vector<std::string>& files) {
  const QStatus status = without_lock([&] { return vector_->loadFromFileSet(files); });
  if (status == QS_SUCCESS) show(0, inputs_);
  return status;
}

void bind_vector(nb::module_& module) {
  using Vector = rt::InferenceVector;
  auto made = nb::class_<VectorObject>(module, "InferenceVector", "The buffers of one inference.");
  nb::enum_<Source>(made, "DataSourceType", nb::is_arithmetic(), "What the inputs hold at first.")
      .value("ZERO_FILL", Vector::ZERO_FILL)
      .value("RANDOM", Vector::RANDOM)
      .value("FILESET", Vector::FILESET)
      .export_values();
  made.def(
          "__init__",
          [](VectorObject* self, nb::handle given, nb::handle source) {
            rt::BufferMappings mappings = mappings_of(given);
            // By the Qpc it knows the shapes, too.
            const QpcObject* const qpc = object_in<QpcObject>(given);
            rt::shInferenceVector vector =
                qpc != nullptr ? vector_of(qpc->get(), source) : vector_of(mappings, source);
            new (self) VectorObject(std::move(mappings), std::move(vector));
          },
          arg("mappings"), arg("source").none() = nb::none(),
          "Memory for each buffer of a Qpc or of its mappings; the inputs are zeros, any bytes "
          "(RANDOM, the default), or read from a list of files.")
      .def("getVector", &VectorObject::list,
           "The buffers, inputs first. The list may be changed: the next inference takes it.")
      .def(
          "setBuffers",
          [](VectorObject& self, nb::handle buffers) {
            return self.set(&Vector::setBuffers, buffers, 0);
          },
          arg("buffers"))
      .def(
          "setInputBuffers",
          [](VectorObject& self, nb::handle buffers) {
            return self.set(&Vector::setInputBuffers, buffers, 0);
          },
          arg("buffers"))
      .def(
          "setOutputBuffers",
          [](VectorObject& self, nb::handle buffers) {
            return self.set(&Vector::setOutputBuffers, buffers, self.inputs());
          },
          arg("buffers"))
      .def("loadFromFileSet", &VectorObject::load, arg("files"));
  bind_logger<VectorObject>(made);
}

}  // namespace corelane::qaic_python
