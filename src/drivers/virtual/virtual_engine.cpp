#include "drivers/virtual/virtual_engine.h"

#include <exception>
#include <utility>

#include "corelane/device/matmul_image.h"
#include "drivers/virtual/engine/engine_identity.h"
#include "drivers/virtual/engine/engine_runtime.h"
#include "drivers/virtual/engine/virtual_program.h"
#include "drivers/virtual/matmul/matmul_program.h"
#include "drivers/virtual/matmul/matmul_store.h"

namespace corelane::drivers::virtual_npu {
namespace {

class VirtualEngine final : public device::LaneEngine {
 public:
  VirtualEngine(std::size_t lanes, bool direct) : lanes_(lanes), direct_(direct) {}

  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override {
    if (image.kind == device::kMatmulKind) {
      try {
        return MatmulProgram::create(image, options, matrices_);
      } catch (...) {
        return error(gemm_failure("preparing a matrix product"));
      }
    }
    if (image.kind != "onnx")
      return error(Code::kForeignImage,
                   "an image of kind '{}' cannot run on the virtual NPU, which takes 'onnx' and "
                   "'{}'; open the device it was compiled for, or compile its ONNX model",
                   image.kind, device::kMatmulKind);
    CORELANE_TRY(engine_usable());
    try {
      return VirtualProgram::create(image, options, lanes_, direct_);
    } catch (...) {
      return error(status_of_exception(Code::kInternal, "preparing a network"));
    }
  }

 private:
  std::size_t lanes_;
  bool direct_;
  std::shared_ptr<StoreB> matrices_ = std::make_shared<StoreB>();
};

}  // namespace

std::shared_ptr<device::LaneEngine> make_virtual_engine(std::size_t lanes, bool direct) {
  return std::make_shared<VirtualEngine>(lanes, direct);
}

void describe_engine(device::DeviceInfo& info) {
  info.engine = "OpenVINO " + engine_version();
  info.isa = engine_isa();
  info.capabilities.multi_core_jobs = info.cores.size() > 1;
}

}  // namespace corelane::drivers::virtual_npu
