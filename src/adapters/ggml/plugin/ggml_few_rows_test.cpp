/// What is kept of weights until they are measured.
#include "adapters/ggml/plugin/ggml_few_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "adapters/ggml/plugin/testing/fake_host.h"

namespace corelane::ggml {
namespace {

/// A host frees descriptions of tensors, and keeps the buffer that their bytes lie in.
TEST(FewRowsOfViews, AreMeasuredThoughTheTensorThatIsViewedIsGone) {
  abi::Buffer buffer{};
  char bytes = 0;
  abi::Tensor root = fake_tensor(kFakeBlocks, 4096, 4096);
  root.buffer = &buffer;
  abi::Tensor view = fake_tensor(kFakeBlocks, 4096, 4096);
  view.view_src = &root;
  view.data = &bytes;
  const FewRows::Timer timer = [&buffer](const std::vector<abi::Tensor>& weights) {
    EXPECT_EQ(weights[0].view_src, nullptr);
    EXPECT_EQ(weights[0].buffer, &buffer);
    return 1.0;
  };
  FewRows few(timer, timer, [](const std::string&) {});
  EXPECT_FALSE(few.go_to_npu(view));
}

}  // namespace
}  // namespace corelane::ggml
