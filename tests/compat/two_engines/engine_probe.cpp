/// Runs y = relu(x) on a virtual NPU, callable from Python's ctypes.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "drivers/virtual/test_networks.h"

namespace {

using corelane::Status;
namespace device = corelane::device;

struct Probe {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Queue> queue;
  std::shared_ptr<device::Executable> executable;
};

corelane::Result<std::unique_ptr<Probe>> open_probe(const char* text) {
  auto probe = std::make_unique<Probe>();
  CORELANE_ASSIGN(probe->device, device::open_device(text));
  CORELANE_ASSIGN(probe->queue, probe->device->make_queue({}));
  CORELANE_ASSIGN(probe->executable,
                  probe->device->prepare(corelane::drivers::virtual_npu::onnx_image(
                                             corelane::drivers::virtual_npu::relu_network()),
                                         {}));
  return probe;
}

Status run_probe(const Probe& probe, float* x, float* y) {
  CORELANE_ASSIGN(const auto bindings, probe.executable->new_bindings());
  constexpr std::size_t kBytes = 16 * sizeof(float);
  CORELANE_TRY(bindings->set_input(0, {x, kBytes, {1, 16}, nullptr}));
  CORELANE_TRY(bindings->set_output(0, {y, kBytes, {1, 16}, nullptr}));
  device::Submission job;
  job.executable = probe.executable;
  job.bindings = bindings;
  return probe.queue->run(job);
}

}  // namespace

/// Null on failure, with the reason on stderr.
extern "C" CORELANE_API void* probe_open(const char* text) {
  auto probe = open_probe(text);
  if (probe) return probe->release();
  std::fprintf(stderr, "probe_open: %s\n", probe.error().to_string().c_str());
  return nullptr;
}

/// 16 floats each; 0 on success.
extern "C" CORELANE_API int probe_run(void* probe, float* x, float* y) {
  const Status status = run_probe(*static_cast<Probe*>(probe), x, y);
  if (status.ok()) return 0;
  std::fprintf(stderr, "probe_run: %s\n", status.to_string().c_str());
  return 1;
}

extern "C" CORELANE_API void probe_close(void* probe) { delete static_cast<Probe*>(probe); }
