#include "drivers/virtual/choice/yielding_program.h"

#include <gtest/gtest.h>

#include <utility>

#include "drivers/virtual/test_requests.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// Requests of it hold what is bound; `refuses`: with kOutOfRange.
class HoldingProgram final : public device::LaneProgram {
 public:
  explicit HoldingProgram(const bool* refuses) : refuses_(refuses), descs_(1) {}
  const std::vector<TensorDesc>& inputs() const noexcept override { return descs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return descs_; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override { return {}; }
  Status reserve(std::size_t, std::size_t) override { return {}; }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return error(Code::kUnsupported, "none");
  }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t, std::size_t) override {
    return std::make_unique<Request>(refuses_);
  }

 private:
  struct Request final : device::LaneRequest {
    explicit Request(const bool* r) : refuses(r) {}
    Status set_input(std::size_t, const device::TensorRef& tensor) override {
      input = tensor;
      return {};
    }
    Status set_output(std::size_t, const device::TensorRef& tensor) override {
      output_ref = tensor;
      return {};
    }
    Status run(std::uint64_t) override {
      return *refuses ? error(Code::kOutOfRange, "not these values") : Status();
    }
    Result<device::TensorRef> output(std::size_t) override { return output_ref; }
    Result<std::vector<device::LayerTime>> layer_times() const override {
      return error(Code::kUnsupported, "none");
    }
    bool is_brief() const noexcept override { return true; }
    const bool* refuses;
    device::TensorRef input, output_ref;
  };

  const bool* refuses_;
  std::vector<TensorDesc> descs_;
};

/// A buffer lived on until the next run that the second engine computed.
TEST(YieldingProgram, WhatTheOtherEngineHadIsLetGoAtTheNextRun) {
  bool refuses = true;
  const bool never = false;
  const auto program =
      std::make_shared<YieldingProgram>(std::make_shared<HoldingProgram>(&refuses),
                                        [&]() -> Result<std::shared_ptr<device::LaneProgram>> {
                                          return std::make_shared<HoldingProgram>(&never);
                                        });
  const auto r = request(*program);
  for (int round = 0; round < 2; ++round) {
    auto owner = std::make_shared<int>(1);
    const std::weak_ptr<int> held = owner;
    refuses = true;
    ASSERT_TRUE(r->set_input(0, {owner.get(), 4, Shape{1}, owner}).ok());
    ASSERT_TRUE(r->set_output(0, {owner.get(), 4, Shape{1}, owner}).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_EQ(r->output(0)->data, owner.get());
    owner.reset();
    refuses = false;
    ASSERT_TRUE(r->set_input(0, {}).ok());
    ASSERT_TRUE(r->set_output(0, {}).ok());
    ASSERT_TRUE(r->run(1).ok());
    EXPECT_TRUE(held.expired());
  }
}

TEST(YieldingProgram, ARunIsBriefWhereTheFirstEngineSaysSo) {
  const bool never = false;
  const auto program =
      std::make_shared<YieldingProgram>(std::make_shared<HoldingProgram>(&never),
                                        []() -> Result<std::shared_ptr<device::LaneProgram>> {
                                          return error(Code::kUnsupported, "none");
                                        });
  EXPECT_TRUE(request(*program)->is_brief());
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
