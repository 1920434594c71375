#include "adapters/qaic_python/rt_util.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_buffer.h"
#include "adapters/qaic_python/rt_exec.h"
#include "adapters/qaic_python/rt_names.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

/// For bind_names().
template <class T>
struct Owner {
  std::shared_ptr<T> object;
  const std::shared_ptr<T>& get() const noexcept { return object; }
};
using UtilObject = Owner<rt::Util>;
using WriterObject = Owner<rt::FileWriter>;

/// (status, what was asked for) of a device.
template <class Info, QStatus (*Ask)(QID, Info&)>
nb::tuple ask(QID device) {
  Info info{};
  const QStatus status = without_lock([&] { return Ask(device, info); });
  return nb::make_tuple(status, info);
}

nb::tuple device_ids(nb::handle /*type*/) {
  std::vector<QID> found;
  const QStatus status = without_lock([&] { return rt::Util::getDeviceIds(found); });
  return nb::make_tuple(status, as_devices(found));
}

nb::tuple version() {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::string patch;
  std::string variant;
  const QStatus status =
      without_lock([&] { return rt::Util::getAicVersion(major, minor, patch, variant); });
  return nb::make_tuple(status, major, minor, patch, variant);
}

void bind_devices(nb::module_& module) {
  auto made = nb::class_<UtilObject>(module, "Util", "Devices and versions.");
  made.def("__init__",
           [](UtilObject* self) { new (self) UtilObject{std::make_shared<rt::Util>()}; })
      .def_static("getDeviceIds", &device_ids, arg("deviceType").none() = nb::none(),
                  "The status and a QIDList. There is one type of device.")
      .def_static("getDeviceInfo", &ask<QDevInfo, &rt::Util::getDeviceInfo>, arg("devID"))
      .def_static("getResourceInfo", &ask<QResourceInfo, &rt::Util::getResourceInfo>, arg("devID"),
                  "What of a device is free; memory in KiB.")
      .def_static("getPerformanceInfo", &ask<QPerformanceInfo, &rt::Util::getPerformanceInfo>,
                  arg("devID"))
      .def_static("getAicVersion", &version, "Status, major, minor, patch, variant.")
      .def_static("checkLibraryVersion",
                  [] { return without_lock([] { return rt::Util::checkLibraryVersion(); }); })
      .def(
          "lockDevice",
          [](const UtilObject& self, QID device, bool lock, bool block) {
            return without_lock([&] { return self.get()->lockDevice(device, lock, block); });
          },
          arg("devID"), arg("lock"), arg("block") = true,
          "An advisory lock between processes; QS_UNSUPPORTED without CORELANE_QAIC_LOCK.");
  bind_logger<UtilObject>(made);
}

void bind_writer(nb::module_& module) {
  auto made = nb::class_<WriterObject>(module, "FileWriter",
                                       "Writes the outputs of an execution object to files.");
  made.def(
          "__init__",
          [](WriterObject* self, const std::string& folder) {
            new (self) WriterObject{std::make_shared<rt::FileWriter>(folder)};
          },
          arg("outputBasePath") = ".")
      .def(
          "setOutputPath",
          [](const WriterObject& self, const std::string& folder) {
            return self.get()->setOutputPath(folder);
          },
          arg("outputBasePath"))
      .def(
          "writeExecObjData",
          [](const WriterObject& self, const ExecObject& object, const rt::BufferMappings& mappings,
             std::uint32_t number, bool verbose, const std::string& suffix) {
            const QStatus status = without_lock([&] {
              return self.get()->writeExecObjData(object.get(), mappings, number, false, suffix);
            });
            // Python has buffers of its own for standard output.
            if (status == QS_SUCCESS && verbose)
              nb::print(("wrote the outputs of inference " + std::to_string(number)).c_str());
            return status;
          },
          arg("execObj"), arg("mappings"), arg("infNumber"), arg("verbose") = true,
          arg("fileNameAppendString") = "",
          "Each output to <folder>/<name, with _ for /><suffix>-inf-<number>.bin.");
  bind_logger<WriterObject>(made);
}

}  // namespace

void bind_util(nb::module_& module) {
  bind_devices(module);
  bind_writer(module);
  module.def(
      "lastErrorText", [] { return std::string(rt::library().qaicGetLastErrorText()); },
      "Why the last call of this thread failed that gave a code; \"\" before one did.");
}

}  // namespace corelane::qaic_python
