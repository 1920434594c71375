// The null device held to the suite.
#include <fmt/core.h>

#include "fixture.h"

namespace corelane::conformance {
namespace {

using device::Image;

Image text_image(std::string text) {
  auto keep = std::make_shared<const std::string>(std::move(text));
  Image image;
  image.kind = "null";
  image.bytes = as_byte_span(*keep);
  image.keep_alive = keep;
  return image;
}

class NullFixture final : public DriverFixture {
 public:
  std::string default_device() const override { return "null:rk3588"; }
  Image image_elementwise(std::size_t n) const override {
    return text_image(fmt::format("input x f32 1,{0}\noutput y f32 1,{0}\n", n));
  }
  float expected(float x) const override { return x; }
  std::optional<Image> image_open(std::size_t n) const override {
    return text_image(fmt::format("input x f32 ?,{0}\noutput y f32 ?,{0}\n", n));
  }
  Image image_slow() const override {
    return text_image("input x f32 1,16\noutput y f32 1,16\ntime 20ms\n");
  }
  Image image_malformed() const override { return text_image("input x f31\n"); }
  std::vector<Exemption> exemptions() const override {
    return {{"Identity.ImageOfAnUnknownKindIsForeign", Exemption::Kind::kNever,
             "the null device takes every kind of image, so that it can replace any device"}};
  }
};

}  // namespace

std::unique_ptr<DriverFixture> make_fixture() { return std::make_unique<NullFixture>(); }

}  // namespace corelane::conformance
