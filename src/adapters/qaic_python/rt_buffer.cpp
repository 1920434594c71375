#include "adapters/qaic_python/rt_buffer.h"

#include <nanobind/stl/bind_vector.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/held_buffer.h"
#include "adapters/qaic_python/rt_object.h"

namespace corelane::qaic_python {

namespace nb = nanobind;

namespace {

// Types of their own: lists that Python code changes in place.
struct QidList : std::vector<QID> {
  using std::vector<QID>::vector;
};
struct Dimensions : qaic::rt::BufferDimensions {
  using qaic::rt::BufferDimensions::vector;
};

std::string type_of(nb::handle value) { return nb::type_name(value.type()).c_str(); }

/// The memory of an object; null with a Python error where it shows none.
std::shared_ptr<interpreter::HeldBuffer> memory_of(nb::handle value, bool& writable) {
  writable = true;
  auto held = interpreter::HeldBuffer::of(value.ptr(), PyBUF_WRITABLE);
  if (held != nullptr) return held;
  PyErr_Clear();
  writable = false;
  return interpreter::HeldBuffer::of(value.ptr(), PyBUF_SIMPLE);
}

/// Whether the elements of an array lie one after the other; true for what does not tell.
bool is_in_rows(nb::handle value) {
  const nb::object flags = nb::getattr(value, "flags", nb::none());
  return PyObject_IsTrue(nb::getattr(flags, "c_contiguous", nb::bool_(true)).ptr()) == 1;
}

/// Their memory is references of the interpreter, which bytes of a device must not replace.
bool holds_objects(nb::handle value) {
  const nb::object dtype = nb::getattr(value, "dtype", nb::none());
  return PyObject_IsTrue(nb::getattr(dtype, "hasobject", nb::bool_(false)).ptr()) == 1;
}

/// The buffer of a QBuffer, which lives as long as what was made of it.
int show_memory(PyObject* self, Py_buffer* view, int flags) {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_BufferError, "the QBuffer was not initialised: its __init__ did not run");
    return -1;
  }
  const Buffer* buffer = nb::inst_ptr<Buffer>(self);
  if (buffer->raw.buf == nullptr && buffer->raw.size > 0) {
    PyErr_SetString(PyExc_BufferError, "the QBuffer is a descriptor; map it to read it");
    return -1;
  }
  return PyBuffer_FillInfo(view, self, buffer->raw.buf, static_cast<Py_ssize_t>(buffer->raw.size),
                           buffer->writable ? 0 : 1, flags);
}

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&show_memory)},
                              {0, nullptr}};

}  // namespace

Buffer make_buffer(std::size_t size) {
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(size);
  Buffer made;
  made.raw.size = size;
  made.raw.buf = bytes->data();
  made.writable = true;
  made.keep = bytes;
  made.own = true;
  return made;
}

Buffer buffer_of(nb::handle value) {
  if (const Buffer* const buffer = object_in<Buffer>(value); buffer != nullptr) return *buffer;
  if (PyObject_CheckBuffer(value.ptr()) == 0)
    throw nb::type_error(
        ("a QBuffer is made of bytes, a numpy array or another object with memory, "
         "not of " +
         type_of(value))
            .c_str());
  if (holds_objects(value))
    throw nb::type_error(
        ("the " + type_of(value) + " holds Python objects; pass numbers, with astype(...)")
            .c_str());
  bool writable = false;
  auto held = memory_of(value, writable);
  if (held == nullptr) {
    PyErr_Clear();
    // numpy has no letter for the element type; its bytes are what counts.
    if (is_in_rows(value) && nb::hasattr(value, "view"))
      held = memory_of(value.attr("view")("uint8"), writable);
  }
  if (held == nullptr) {
    PyErr_Clear();
    throw nb::value_error(("memory of the " + type_of(value) +
                           " is not contiguous; pass numpy.ascontiguousarray(...)")
                              .c_str());
  }
  Buffer made;
  made.raw.size = static_cast<std::size_t>(held->buffer.len);
  made.raw.buf = static_cast<std::uint8_t*>(held->buffer.buf);
  made.writable = writable;
  made.keep = std::move(held);
  return made;
}

Buffers buffers_of(nb::handle values) {
  if (PySequence_Check(values.ptr()) == 0 || nb::isinstance<Buffer>(values))
    throw nb::type_error(
        ("buffers are a list with a QBuffer for each, not a " + type_of(values)).c_str());
  Buffers made;
  for (const nb::handle value : nb::iter(values)) made.push_back(buffer_of(value));
  return made;
}

std::vector<QBuffer> raw(const Buffers& buffers) {
  std::vector<QBuffer> given;
  given.reserve(buffers.size());
  for (const Buffer& buffer : buffers) given.push_back(buffer.raw);
  return given;
}

nb::list as_list(const Buffers& buffers) {
  nb::list made;
  for (const Buffer& buffer : buffers) made.append(nb::cast(buffer));
  return made;
}

bool bring_outputs(Buffers& buffers, const qaic::rt::BufferMappings& mappings,
                   const Buffers& before) {
  bool brought = false;
  for (std::size_t i = 0; i < buffers.size() && i < mappings.size(); ++i) {
    Buffer& buffer = buffers[i];
    if (mappings[i].ioType != BUFFER_IO_TYPE_OUTPUT || buffer.writable || buffer.raw.size == 0 ||
        !buffer.is_memory())
      continue;
    // A count of 1: `before` alone holds it, so that no Python code sees it change.
    const bool again = i < before.size() && before[i].own && before[i].keep.use_count() == 1 &&
                       before[i].raw.size == buffer.raw.size;
    buffer = again ? before[i] : make_buffer(buffer.raw.size);
    brought = true;
  }
  return brought;
}

qaic::rt::BufferDimensions dimensions_of(nb::handle values) {
  if (const auto* const known = object_in<Dimensions>(values); known != nullptr) return *known;
  return nb::cast<Dimensions>(nb::type<Dimensions>()(values));
}

nb::object as_dimensions(const qaic::rt::BufferDimensions& dimensions) {
  Dimensions made;
  made.assign(dimensions.begin(), dimensions.end());
  return nb::cast(std::move(made));
}

std::vector<QID> devices_of(nb::handle value) {
  if (value.is_none()) return {};
  if (PyIndex_Check(value.ptr()) != 0)
    return {value_of<QID>(nb::int_(value), "the number of a device has 32 bits")};
  if (nb::isinstance<nb::str>(value))
    throw nb::type_error("a device is an int, a list of ints or None, not a text");
  if (const QidList* const known = object_in<QidList>(value); known != nullptr) return *known;
  return nb::cast<QidList>(nb::type<QidList>()(value));
}

std::string mapping_of(const std::vector<QID>& devices) {
  std::string made;
  for (const QID device : devices) made += (made.empty() ? "" : ":") + std::to_string(device);
  return made;
}

nb::object as_devices(const std::vector<QID>& devices) {
  QidList made;
  made.assign(devices.begin(), devices.end());
  return nb::cast(std::move(made));
}

void bind_buffers(nb::module_& module) {
  using nb::arg;
  nb::bind_vector<QidList>(module, "QIDList", "Numbers of devices.");
  nb::bind_vector<Dimensions>(
      module, "BufferDimensionsVecRef",
      "For each buffer the bytes of an element and the dimensions; (n, [0]) leaves a partial "
      "buffer out.");
  nb::class_<Buffer>(module, "QBuffer", nb::type_slots(buffer_slots),
                     "Memory of one input or output. It keeps what it was made of.")
      .def(
          "__init__",
          [](Buffer* self, nb::handle data, std::size_t size, std::uint64_t handle,
             std::uint32_t offset, QBufferType type) {
            Buffer made = data.is_none() ? Buffer{} : buffer_of(data);
            if (data.is_none()) made.raw.size = size;
            if (data.is_none() && size > 0 && made.is_memory() && type != QBUFFER_TYPE_DMABUF)
              throw nb::value_error(
                  "a QBuffer of a size takes bytes, an array, or a descriptor: "
                  "QBuffer(size=..., handle=..., type=QBUFFER_TYPE_DMABUF)");
            made.raw.handle = handle;
            made.raw.offset = offset;
            made.raw.type = type;
            // Last: what throws before leaves no object that would have to be destroyed.
            new (self) Buffer(std::move(made));
          },
          arg("data").none() = nb::none(), nb::kw_only(), arg("size") = 0, arg("handle") = 0,
          arg("offset") = 0, arg("type") = QBUFFER_TYPE_HEAP,
          "Of bytes or an array, without a copy; or of a descriptor, with its size.")
      .def("__len__", [](const Buffer& self) { return self.raw.size; })
      .def_prop_ro(
          "size", [](const Buffer& self) { return self.raw.size; }, "Bytes.")
      .def_prop_ro(
          "buf", [](const Buffer& self) { return reinterpret_cast<std::uintptr_t>(self.raw.buf); },
          "The address of its memory; 0 for a descriptor.")
      .def_prop_ro(
          "handle", [](const Buffer& self) { return self.raw.handle; }, "The descriptor.")
      .def_prop_ro(
          "offset", [](const Buffer& self) { return self.raw.offset; },
          "Where the buffer begins in the descriptor's memory, in bytes.")
      .def_prop_ro(
          "type", [](const Buffer& self) { return self.raw.type; }, "")
      .def_prop_ro(
          "readonly", [](const Buffer& self) { return !self.writable; },
          "Whether its memory can only be read: as an output it is replaced.");
}

}  // namespace corelane::qaic_python
