#include "adapters/qaic_python/rt_qpc.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_buffer.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::Released;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

/// A path or a text as text.
std::string path_of(nb::handle path) {
  auto text = nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(path));
  if (text.find('\0') != std::string::npos)
    throw nb::value_error("the path has a null character, where the system would end it");
  return text;
}

void bind_mappings(nb::module_& module) {
  nb::class_<rt::BufferMapping>(module, "BufferMapping", "One input or output of a program.")
      .def(nb::init<>(), "A mapping that stands for no buffer.")
      .def(nb::init<std::string, std::uint32_t, QAicBufferIoTypeEnum, std::uint32_t, bool,
                    QAicBufferDataTypeEnum>(),
           arg("bufferName"), arg("index"), arg("ioType"), arg("size"),
           arg("isPartialBufferAllowed"), arg("dataType"))
      .def_rw("bufferName", &rt::BufferMapping::bufferName)
      .def_rw("index", &rt::BufferMapping::index, "Its place among the buffers: inputs first.")
      .def_rw("ioType", &rt::BufferMapping::ioType, "As the user sees it.")
      .def_rw("size", &rt::BufferMapping::size, "Bytes: those of the largest specialization.")
      .def_rw("isPartialBufferAllowed", &rt::BufferMapping::isPartialBufferAllowed,
              "It may be given shorter, or be left out.")
      .def_rw("dataType", &rt::BufferMapping::dataType);
  nb::class_<rt::v2::BufferShape>(module, "BufferShape",
                                  "The shape of a buffer in one specialization.")
      .def(nb::init<>())
      .def_rw("dims", &rt::v2::BufferShape::dims)
      .def_rw("dataType", &rt::v2::BufferShape::dataType);
  nb::class_<rt::v2::BufferMapping>(module, "BufferMappingV2", "A buffer with its shapes.")
      .def(nb::init<>())
      .def_rw("bufferMapping", &rt::v2::BufferMapping::bufferMapping)
      .def_rw("ioShapes", &rt::v2::BufferMapping::ioShapes, "By specialization.");
  nb::class_<rt::BufferIdentifier>(module, "BufferIdentifier", "A buffer by its name.")
      .def(nb::init<std::string, std::uint32_t>(), arg("name"), arg("index"))
      .def("getBufferName", &rt::BufferIdentifier::getBufferName)
      .def("getBufferIndex", &rt::BufferIdentifier::getBufferIndex);
  nb::class_<rt::BufferIdentifiers>(module, "BufferIdentifiers",
                                    "Names and dimensions of a program's buffers.")
      .def(nb::init<>())
      .def(nb::init<const rt::v2::BufferMappings&>(), arg("mappings"))
      .def("getBufferIdentifierVec", &rt::BufferIdentifiers::getBufferIdentifierVec)
      .def("getBufferSizeDimensionPair", [](const rt::BufferIdentifiers& self) {
        return as_dimensions(self.getBufferSizeDimensionPair());
      });
}

void bind_infos(nb::module_& module) {
  using Program = rt::QpcProgramInfo;
  nb::class_<Program>(module, "QpcProgramInfo", "One program of a container.")
      .def_ro("bufferMappings", &Program::bufferMappings)
      .def_ro("bufferMappingsDma", &Program::bufferMappingsDma)
      .def_ro("name", &Program::name)
      .def_ro("numCores", &Program::numCores)
      .def_ro("programIndex", &Program::programIndex)
      .def_ro("size", &Program::size)
      .def_ro("batchSize", &Program::batchSize)
      .def_ro("numSemaphores", &Program::numSemaphores)
      .def_ro("numMcids", &Program::numMcids)
      .def_ro("reqMem", &Program::reqMem);
  nb::class_<rt::QpcConstantsInfo>(module, "QpcConstantsInfo", "Constants of a container.")
      .def_ro("name", &rt::QpcConstantsInfo::name)
      .def_ro("constantsIndex", &rt::QpcConstantsInfo::constantsIndex)
      .def_ro("size", &rt::QpcConstantsInfo::size);
  nb::class_<rt::QpcInfo>(module, "QpcInfo", "What is in a container.")
      .def_ro("program", &rt::QpcInfo::program)
      .def_ro("constants", &rt::QpcInfo::constants);
}

/// Bytes, or what a file holds, in memory that getBuffer() shares.
struct DataBufferObject {
  Buffer buffer;
};
struct QpcFileObject {
  std::string folder, name;
  Buffer buffer;
};

void bind_data(nb::module_& module) {
  nb::class_<DataBufferObject>(module, "DataBuffer", "Memory with its description.")
      .def(nb::init<>())
      .def(
          "allocate",
          [](DataBufferObject& self, std::size_t size) { self.buffer = make_buffer(size); },
          arg("size"), "So many bytes of 0; what it held before stays with those who use it.")
      .def("size", [](const DataBufferObject& self) { return self.buffer.raw.size; })
      .def(
          "dataPtr",
          [](const DataBufferObject& self) {
            return nb::steal(PyMemoryView_FromObject(nb::cast(self.buffer).ptr()));
          },
          "Its memory, to read and write.")
      .def("getBuffer", [](const DataBufferObject& self) { return self.buffer; })
      .def(
          "shrinkBuffer",
          [](DataBufferObject& self, std::size_t size) {
            if (size > self.buffer.raw.size)
              return rt::library().qaicSetLastErrorText(
                  QS_INVAL, "DataBuffer: it has fewer bytes; allocate() makes it larger");
            self.buffer.raw.size = size;
            return QS_SUCCESS;
          },
          arg("size"), "Keeps the first bytes. QS_INVAL where it has fewer.")
      .def("release", [](DataBufferObject& self) { self.buffer = {}; });
  nb::class_<QpcFileObject>(module, "QpcFile", "A file with a container, read into memory.")
      .def(
          "__init__",
          [](QpcFileObject* self, nb::handle folder, const std::string& file) {
            new (self) QpcFileObject{path_of(folder), file, {}};
          },
          arg("basePath"), arg("qpcFilename") = "programqpc.bin")
      .def(
          "load",
          [](QpcFileObject& self) {
            // A new one for each load(): who has the bytes of an earlier one keeps them.
            auto file = std::make_shared<rt::QpcFile>(self.folder, self.name);
            without_lock([&] { file->load(); });
            Buffer read;
            read.raw.size = file->size();
            read.raw.buf = const_cast<std::uint8_t*>(file->data());
            read.keep = std::move(file);
            self.buffer = std::move(read);
            return true;
          },
          "Reads the file; raises CoreExceptionInit where it cannot.")
      .def("getBuffer", [](const QpcFileObject& self) { return self.buffer; })
      .def(
          "data", [](const QpcFileObject& self) { return self.buffer; }, "The same.")
      .def("size", [](const QpcFileObject& self) { return self.buffer.raw.size; });
}

}  // namespace

QpcObject::QpcObject(const std::string& folder, const std::string& file) {
  without_lock([&] { qpc_ = rt::Qpc::Factory(folder, file); });
}

QpcObject::QpcObject(nb::handle bytes, bool make_copy) {
  const Buffer memory = buffer_of(bytes);
  without_lock([&] {
    rt::shQpc made = rt::Qpc::Factory(memory.raw.buf, memory.raw.size, make_copy);
    rt::Qpc* const pointer = made.get();
    // The bytes go after the container, whichever owner drops it last.
    qpc_ = rt::shQpc(pointer, [made = std::move(made),
                               keep = make_copy ? nullptr : memory.keep](rt::Qpc*) mutable {
      made.reset();
      keep.reset();
    });
  });
}

QpcObject::~QpcObject() {
  const Released released;
  qpc_.reset();
}

void bind_qpc(nb::module_& module) {
  bind_mappings(module);
  bind_infos(module);
  bind_data(module);
  nb::class_<QpcObject>(module, "Qpc", "A program container.")
      .def(
          "__init__",
          [](QpcObject* self, nb::handle folder, const std::string& file) {
            // Bytes are no path here, but a container in memory.
            if (PyObject_CheckBuffer(folder.ptr()) != 0) throw nb::next_overload();
            new (self) QpcObject(path_of(folder), file);
          },
          arg("basePath"), arg("qpcFilename") = "programqpc.bin", "The container in a folder.")
      .def(
          "__init__",
          [](QpcObject* self, nb::handle bytes, bool make_copy) {
            new (self) QpcObject(bytes, make_copy);
          },
          arg("qpcBuf"), arg("makeCopy") = false, "One in memory, which it keeps, or copies.")
      .def("getInfo", [](const QpcObject& self) { return *self.get()->getInfo(); })
      .def(
          "getBufferMappings",
          [](const QpcObject& self, std::uint32_t program) {
            return self.get()->getBufferMappings(program);
          },
          arg("program") = 0, "The buffers as the user gives them, inputs first.")
      .def(
          "getBufferMappingsDma",
          [](const QpcObject& self, std::uint32_t program) {
            return self.get()->getBufferMappingsDma(program);
          },
          arg("program") = 0, "The same: each tensor is transferred by itself.")
      .def(
          "getBufferMappingsV2",
          [](const QpcObject& self, std::uint32_t program) {
            return self.get()->getBufferMappingsV2(program);
          },
          arg("program") = 0, "With the shapes of each specialization.")
      .def(
          "getIoDescriptor",
          [](const QpcObject& self, std::uint32_t program) {
            return descriptor(
                [&](QData* data) { return self.get()->getIoDescriptor(data, program); });
          },
          arg("program") = 0, "The bytes of an aicapi.IoDesc, with the status.")
      .def(
          "buffer",
          [](const QpcObject& self) {
            Buffer made;
            made.raw.size = self.get()->size();
            made.raw.buf = const_cast<std::uint8_t*>(self.get()->buffer());
            made.keep = self.get();
            return made;
          },
          "Its bytes, which can only be read.")
      .def("size", [](const QpcObject& self) { return self.get()->size(); });
}

}  // namespace corelane::qaic_python
