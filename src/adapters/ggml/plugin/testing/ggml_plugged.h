/// The plugin in the host of fake_host.h, started once for the test program on our librknnrt.so,
/// and a backend of its device for each test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "adapters/ggml/mm/mm_test_support.h"
#include "adapters/ggml/plugin/ggml_entry.h"
#include "adapters/ggml/plugin/testing/fake_host.h"

namespace corelane::ggml {

inline constexpr std::int64_t kColumns = 64;
inline constexpr std::int64_t kRows = 48;
inline constexpr std::int64_t kTokens = 12;

struct FreeBuffer {
  void operator()(abi::Buffer* buffer) const {
    if (buffer->iface.free_buffer != nullptr) buffer->iface.free_buffer(buffer);
    delete buffer;
  }
};
using OwnedBuffer = std::unique_ptr<abi::Buffer, FreeBuffer>;

class Plugged : public testing::Test {
 protected:
  void SetUp() override {
    setenv("GGML_RKNN_LIBRARY", RKNNRT_FILE, 1);
    setenv("GGML_RKNN_OBJECTS", "64", 1);
    registry_ = ggml_backend_init();
    ASSERT_NE(registry_, nullptr) << (fake_log().empty() ? "" : fake_log().back());
    device_ = registry_->iface.get_device(registry_, 0);
    type_ = device_->iface.get_buffer_type(device_);
    backend_ = device_->iface.init_backend(device_, nullptr);
    ggml_backend_rknn_set_n_threads(backend_, 1);
  }
  void TearDown() override {
    if (backend_ != nullptr) backend_->iface.free(backend_);
  }

  OwnedBuffer buffer(std::size_t size, int usage) {
    OwnedBuffer made(fake_alloc(type_, size));
    made->usage = usage;
    return made;
  }
  static void place(abi::Tensor& tensor, const OwnedBuffer& buffer, std::size_t offset = 0) {
    tensor.buffer = buffer.get();
    tensor.data = static_cast<char*>(buffer->iface.get_base(buffer.get())) + offset;
  }
  bool supported(const abi::Tensor& node) { return device_->iface.supports_op(device_, &node); }
  /// The error of the node's product as the plugin computes it.
  double computed(abi::Tensor& weights, const MmMatrix& meant) {
    const auto a = random_matrix(kTokens, weights.ne[0], RowForm::kFloats, 77);
    abi::Tensor activations = fake_tensor(abi::kTypeF32, weights.ne[0], kTokens);
    activations.data = const_cast<void*>(a.view.data);
    abi::Tensor node = fake_product(weights, activations);
    std::vector<float> c(static_cast<std::size_t>(weights.ne[1] * kTokens));
    node.data = c.data();
    abi::Graph graph{{&node}};
    EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusSuccess);
    return error_of(a.view, meant, c, static_cast<std::size_t>(weights.ne[1]));
  }

  abi::Registry* registry_ = nullptr;
  abi::Device* device_ = nullptr;
  abi::BufferType* type_ = nullptr;
  abi::Backend* backend_ = nullptr;
};

}  // namespace corelane::ggml
