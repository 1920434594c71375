/// What the tests of this adapter share: containers, devices by number, handles that end
/// themselves.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/qaic/context/qaic_devices.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "edge/testing/environment.h"
#include "qaic_ours.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::qaic::test {

using testing::OnnxBuilder;
using Dims = std::vector<OnnxBuilder::Dim>;

inline std::string last_error() { return qaicGetFunctionTable()->qaicGetLastErrorText(); }

/// a and b in, "sum" and "difference" out, with some constants that are not used up by either.
inline std::string two_by_two(const Dims& dims) {
  return OnnxBuilder()
      .input("a", dims)
      .input("b", dims)
      .output("sum", dims)
      .output("difference", dims)
      .node("Add", {"a", "b"}, {"sum"})
      .node("Sub", {"a", "b"}, {"difference"})
      .build("two_by_two");
}

/// The bytes of a container.
inline ByteVector container_of(const std::string& onnx, const ImportOptions& import = {}) {
  CompileOptions options;
  options.import = import;
  auto bytes = compile_bytes(as_byte_span(onnx), options);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return bytes ? *std::move(bytes) : ByteVector();
}
inline const std::uint8_t* data_of(const ByteVector& bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

/// A container that is closed at the end.
class OwnQpc {
 public:
  explicit OwnQpc(const ByteVector& bytes, bool copy = true)
      : status(qaicOpenQpc(&handle_, data_of(bytes), bytes.size(), copy)) {}
  explicit OwnQpc(const std::string& path) : status(qaicOpenQpcFile(&handle_, path.c_str())) {}
  ~OwnQpc() {
    if (handle_ != nullptr) qaicCloseQpc(handle_);
  }
  OwnQpc(const OwnQpc&) = delete;
  OwnQpc& operator=(const OwnQpc&) = delete;
  operator QAicQpcObj*() const { return handle_; }  // NOLINT(google-explicit-constructor)
  const QAicQpcInfo& info() const {
    const QAicQpcInfo* info = nullptr;
    EXPECT_EQ(qaicQpcGetInfo(handle_, &info), QS_SUCCESS) << last_error();
    return *info;
  }

 private:
  QAicQpcObj* handle_ = nullptr;

 public:
  const QStatus status;
};

/// The devices 0, 1, ... are those of these texts, each an instance of its own on one clock.
class OwnDevices {
 public:
  explicit OwnDevices(const std::vector<std::string>& texts,
                      const std::shared_ptr<device::FaultPoint>& faults = nullptr,
                      bool virtual_time = true)
      : clock(virtual_time ? std::make_shared<VirtualClock>() : nullptr) {
    for (const std::string& text : texts) {
      device::OpenOptions open;
      open.clock = clock;
      open.fault_point = faults;
      open.own_instance = true;
      auto opened = device::open_device(text, open);
      EXPECT_TRUE(opened) << opened.error().to_string();
      if (opened) devices.push_back(*std::move(opened));
    }
    set_devices(devices);
  }
  /// A job that was abandoned is on the clock until the engine returns, and keeps its device.
  ~OwnDevices() {
    set_devices({});
    if (clock != nullptr) clock->run_all();
  }
  OwnDevices(const OwnDevices&) = delete;
  OwnDevices& operator=(const OwnDevices&) = delete;

  const std::shared_ptr<VirtualClock> clock;
  std::vector<std::shared_ptr<device::Device>> devices;
};

/// A context that is released at the end.
class OwnContext {
 public:
  explicit OwnContext(const std::vector<QID>& devices, QAicContextProperties_t properties = 0,
                      QAicLogCallback log = nullptr, void* log_data = nullptr,
                      QAicErrorHandler error = nullptr, void* error_data = nullptr)
      : status(qaicCreateContext(&handle_, &properties, static_cast<std::uint32_t>(devices.size()),
                                 devices.data(), log, log_data, error, error_data)) {}
  ~OwnContext() {
    if (handle_ != nullptr) qaicReleaseContext(handle_);
  }
  OwnContext(const OwnContext&) = delete;
  OwnContext& operator=(const OwnContext&) = delete;
  operator QAicContext*() const { return handle_; }  // NOLINT(google-explicit-constructor)
  /// The test has ended it.
  void gone() { handle_ = nullptr; }
  QAicContextID id() const {
    QAicContextID id = 0;
    EXPECT_EQ(qaicContextGetId(handle_, &id), QS_SUCCESS) << last_error();
    return id;
  }

 private:
  QAicContext* handle_ = nullptr;

 public:
  const QStatus status;
};

using edge::testing::Environment;

}  // namespace corelane::qaic::test
