// The images by which the conformance suite of the library runs the driver beside this file.
#include <fmt/core.h>

#include "fixture.h"

namespace corelane::conformance {
namespace {

using device::Image;

Image text_image(std::string text) {
  auto keep = std::make_shared<const std::string>(std::move(text));
  Image image;
  image.kind = "gain";
  image.bytes = as_byte_span(*keep);
  image.keep_alive = keep;
  return image;
}

class GainFixture final : public DriverFixture {
 public:
  std::string default_device() const override { return "gain:duo"; }
  Image image_elementwise(std::size_t n) const override {
    return text_image(fmt::format("gain 2.5 1 {}", n));
  }
  float expected(float x) const override { return 2.5F * x; }
  std::optional<Image> image_open(std::size_t n) const override {
    return text_image(fmt::format("gain 2.5 ? {}", n));
  }
  Image image_slow() const override { return text_image("gain 1 1 16 25"); }
  Image image_malformed() const override { return text_image("gain much"); }
};

}  // namespace

std::unique_ptr<DriverFixture> make_fixture() { return std::make_unique<GainFixture>(); }

}  // namespace corelane::conformance
