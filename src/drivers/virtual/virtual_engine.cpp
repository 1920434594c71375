#include "drivers/virtual/virtual_engine.h"

#include <utility>

#include "base/guard.h"
#include "corelane/device/matmul_image.h"
#include "corelane/driver/module.h"
#include "drivers/virtual/choice/chosen_engine.h"
#include "drivers/virtual/choice/second_engine.h"
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
    using Prepared = Result<std::shared_ptr<device::LaneProgram>>;
    if (image.kind == device::kMatmulKind)
      return engine_call("preparing a matrix product", Code::kEngineFailed, [&]() -> Prepared {
        return MatmulProgram::create(image, options, matrices_);
      });
    if (image.kind != "onnx")
      return error(Code::kForeignImage,
                   "an image of kind '{}' cannot run on the virtual NPU, which takes 'onnx' and "
                   "'{}'; open the device it was compiled for, or compile its ONNX model",
                   image.kind, device::kMatmulKind);
    // Products need no engine and work in a forked child; networks do not.
    CORELANE_TRY(engine_usable());
    return engine_call("preparing a network", Code::kInternal, [&]() -> Prepared {
      return VirtualProgram::create(image, options, lanes_, direct_, constant_users_);
    });
  }

 private:
  std::size_t lanes_;
  bool direct_;
  std::shared_ptr<StoreB> matrices_ = std::make_shared<StoreB>();
  std::shared_ptr<ConstantUsers> constant_users_ = std::make_shared<ConstantUsers>();
};

}  // namespace

std::shared_ptr<device::LaneEngine> make_virtual_engine(std::size_t lanes, bool direct) {
  return std::make_shared<VirtualEngine>(lanes, direct);
}

Result<device::OpenedEngine> open_virtual_engine(const device::OpenRequest& request) {
  return no_throw("opening the virtual NPU", [&]() -> Result<device::OpenedEngine> {
    EngineWish wish = EngineWish::kAuto;
    for (const auto& [key, value] : request.spec.options) {
      if (key == "engine") {
        // The macro is two statements.
        CORELANE_ASSIGN(wish, parse_engine_wish(value));
      } else if (key != "name") {
        return error(Code::kInvalidArgument,
                     "option '{}={}' is unknown; 'virtual' takes name, engine, {}", key, value,
                     device::kLaneOptionNames);
      }
    }
    auto second = std::make_shared<SecondEngine>(request);
    device::OpenedEngine opened{request.info, nullptr};
    opened.info.engine = "OpenVINO " + engine_version();
    opened.info.isa = engine_isa();
    opened.info.capabilities.multi_core_jobs = opened.info.cores.size() > 1;
    if (request.fault_point != nullptr) opened.info.capabilities.bounded_jobs = false;
    if (wish == EngineWish::kAuto) opened.info.engines = {"openvino", "onnxruntime"};
    if (wish == EngineWish::kOnnxRuntime) {
      CORELANE_ASSIGN(const device::OpenedEngine other, second->get());
      opened.info.engine = other.info.engine;
      opened.info.capabilities.precompiled = false;
    }
    opened.engine = std::make_shared<ChosenEngine>(
        wish, make_virtual_engine(request.info.cores.size()), std::move(second));
    return opened;
  });
}

}  // namespace corelane::drivers::virtual_npu
