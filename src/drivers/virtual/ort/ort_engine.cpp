#include "drivers/virtual/ort/ort_engine.h"

#include "base/guard.h"
#include "drivers/virtual/ort/ort_library.h"
#include "drivers/virtual/ort/ort_program.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

/// What a program may ask for that this engine cannot do.
Status check_options(const device::PrepareOptions& options) {
  if (options.precision != device::Precision::kF32)
    return error(Code::kUnsupported,
                 "precision {} needs the engine openvino; ONNX Runtime computes in the network's "
                 "own types",
                 device::precision_name(options.precision));
  return {};
}

class OrtEngine final : public device::LaneEngine {
 public:
  explicit OrtEngine(std::size_t lanes) : lanes_(lanes) {}

  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override {
    if (image.kind != "onnx")
      return error(Code::kForeignImage, "ONNX Runtime takes images of kind 'onnx', not '{}'",
                   image.kind);
    CORELANE_TRY(check_options(options));
    return no_throw("preparing a network", [&]() -> Result<std::shared_ptr<device::LaneProgram>> {
      CORELANE_ASSIGN(const OrtLibrary* const library, OrtLibrary::get());
      return OrtProgram::create(*library, image, options, lanes_);
    });
  }

 private:
  const std::size_t lanes_;
};

}  // namespace

std::shared_ptr<device::LaneEngine> make_ort_engine(std::size_t lanes) {
  return std::make_shared<OrtEngine>(lanes);
}

}  // namespace corelane::drivers::virtual_npu::ort
