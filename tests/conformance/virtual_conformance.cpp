// The virtual NPU held to the suite.
#include "conformance_base.h"
#include "fixture.h"
#include "tiny_onnx.h"

namespace corelane::conformance {
namespace {

using device::Image;

Image onnx_image(std::string bytes) {
  auto keep = std::make_shared<const std::string>(std::move(bytes));
  Image image;
  image.kind = "onnx";
  image.bytes = as_byte_span(*keep);
  image.keep_alive = keep;
  return image;
}

/// Small networks of common operators run on the library's own kernels. Where OpenVINO is named for
/// the run it has to compute, so the operator is one that these kernels lack; its alpha is 1.
bool by_openvino() { return device_text().find("engine=openvino") != std::string::npos; }
const char* elementwise() { return by_openvino() ? "ThresholdedRelu" : "Relu"; }

class VirtualFixture final : public DriverFixture {
 public:
  std::string default_device() const override { return "virtual:rk3588"; }
  Image image_elementwise(std::size_t n) const override {
    return onnx_image(tiny_chain(elementwise(), 1, 1, {1, static_cast<std::int64_t>(n)}));
  }
  float expected(float x) const override {
    const float least = by_openvino() ? 1 : 0;
    return x > least ? x : 0;
  }
  std::optional<Image> image_open(std::size_t n) const override {
    return onnx_image(tiny_chain(elementwise(), 1, 1, {-1, static_cast<std::int64_t>(n)}));
  }
  Image image_slow() const override { return onnx_image(tiny_chain("MatMul", 2, 24, {512, 512})); }
  Image image_malformed() const override {
    const std::string whole = tiny_chain("Relu", 1, 1, {1, 16});
    return onnx_image(whole.substr(0, whole.size() / 2));
  }
};

}  // namespace

std::unique_ptr<DriverFixture> make_fixture() { return std::make_unique<VirtualFixture>(); }

}  // namespace corelane::conformance
