// The RKNN device held to the suite, over the librknnrt.so of this tree: it opens ONNX bytes, on
// the device of CORELANE_RKNN_INNER.
#include <fmt/core.h>

#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "fixture.h"
#include "tiny_onnx.h"

namespace corelane::conformance {
namespace {

using device::Image;

/// Handed over unparsed, as every image of this device.
Image opaque_image(std::string bytes) {
  auto keep = std::make_shared<const std::string>(std::move(bytes));
  Image image;
  image.kind = "rknn";
  image.bytes = as_byte_span(*keep);
  image.keep_alive = keep;
  return image;
}

class RknnFixture final : public DriverFixture {
 public:
  /// A context that lives as long as the suite, so that the library's own device, which all its
  /// contexts share, is open before any test sets CORELANE_FAULTS: faults are injected into the
  /// device under test, not into the inner device too, where no deadline applies.
  RknnFixture() {
    device::OpenOptions own;
    own.own_instance = true;
    const auto device = device::open_device(default_device(), own);
    if (!device) {
      fmt::print(stderr, "{}\n", device.error().to_string());
      return;
    }
    if (auto executable = (*device)->prepare(image_elementwise(1), {})) held_ = *executable;
  }
  std::string default_device() const override { return "rknn:rk3588"; }
  Image image_elementwise(std::size_t n) const override {
    return opaque_image(tiny_chain("Relu", 1, 1, {1, static_cast<std::int64_t>(n)}));
  }
  float expected(float x) const override { return x > 0 ? x : 0; }
  /// The API has lists of shapes, no open ones.
  std::optional<Image> image_open(std::size_t) const override { return std::nullopt; }
  Image image_slow() const override {
    return opaque_image(tiny_chain("MatMul", 2, 24, {512, 512}));
  }
  Image image_malformed() const override {
    const std::string whole = tiny_chain("Relu", 1, 1, {1, 16});
    return opaque_image(whole.substr(0, whole.size() / 2));
  }

 private:
  std::shared_ptr<device::Executable> held_;
};

}  // namespace

std::unique_ptr<DriverFixture> make_fixture() { return std::make_unique<RknnFixture>(); }

}  // namespace corelane::conformance
