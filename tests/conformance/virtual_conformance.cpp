// The virtual NPU held to the suite.
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

class VirtualFixture final : public DriverFixture {
 public:
  std::string default_device() const override { return "virtual:rk3588"; }
  Image image_elementwise(std::size_t n) const override {
    return onnx_image(tiny_chain("Relu", 1, 1, {1, static_cast<std::int64_t>(n)}));
  }
  float expected(float x) const override { return x > 0 ? x : 0; }
  std::optional<Image> image_open(std::size_t n) const override {
    return onnx_image(tiny_chain("Relu", 1, 1, {-1, static_cast<std::int64_t>(n)}));
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
