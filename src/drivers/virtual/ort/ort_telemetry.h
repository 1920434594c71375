/// The telemetry of ONNX Runtime, which its releases have on Linux since 1.29: when the library
/// starts, it makes a thread that sends what it learns of models and runs to its vendor. The API
/// ends a part of it, and only afterwards.
#pragma once

namespace corelane::drivers::virtual_npu::ort {

/// While one lives, this process has ORT_DISABLE_TELEMETRY=1 in its environment. The library reads
/// it once, when it starts, and makes neither the thread nor an identifier of the machine.
///
/// With the thread a forked child could not end: exit() destroys what the thread of the parent
/// waited for, and that waits for the thread to leave, which does not exist in the child.
class TelemetryOff {
 public:
  TelemetryOff();
  ~TelemetryOff();
  TelemetryOff(const TelemetryOff&) = delete;
  TelemetryOff& operator=(const TelemetryOff&) = delete;

 private:
  char** list_;
};

}  // namespace corelane::drivers::virtual_npu::ort
