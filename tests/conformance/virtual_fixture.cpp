/// What the virtual NPU brings to the conformance suite: small ONNX networks.
#include <string>

#include "conformance/fixture.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::conformance {
namespace {

using virtual_npu::NetworkBuilder;
using virtual_npu::onnx_image;

device::Image relu(std::int64_t rows, std::size_t n) {
  const auto columns = static_cast<std::int64_t>(n);
  return onnx_image(NetworkBuilder()
                        .input("x", {rows, columns})
                        .node("Relu", {"x"}, {"y"}, "relu")
                        .output("y", {rows, columns})
                        .bytes());
}

class VirtualFixture final : public DriverFixture {
 public:
  std::string default_device() const override { return "virtual:rk3588"; }
  device::Image image_elementwise(std::size_t n) const override { return relu(1, n); }
  float expected(float x) const override { return x > 0 ? x : 0.0F; }
  std::optional<device::Image> image_open(std::size_t n) const override { return relu(-1, n); }
  device::Image image_slow() const override {
    // Three products of 1024 x 1024: 6.4 GFLOP, which no single core does in 20 ms.
    const std::vector<std::int64_t> dims = {1024, 1024};
    return onnx_image(NetworkBuilder()
                          .input("x", dims)
                          .node("MatMul", {"x", "x"}, {"x2"})
                          .node("MatMul", {"x2", "x"}, {"x3"})
                          .node("MatMul", {"x3", "x"}, {"y"})
                          .output("y", dims)
                          .bytes());
  }
  device::Image image_malformed() const override { return onnx_image("this is no ONNX model"); }
};

}  // namespace

std::unique_ptr<DriverFixture> make_fixture() { return std::make_unique<VirtualFixture>(); }

}  // namespace corelane::conformance
