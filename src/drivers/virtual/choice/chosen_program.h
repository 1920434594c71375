/// A program that says which engine computes it, and why.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "corelane/driver/lane_engine.h"

namespace corelane::drivers::virtual_npu {

/// Passes each call on. Any thread.
class ChosenProgram : public device::LaneProgram {
 public:
  /// `program` is not null. `choice`: empty for the first engine.
  ChosenProgram(std::shared_ptr<device::LaneProgram> program, device::EngineChoice choice)
      : program_(std::move(program)), choice_(std::move(choice)) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return program_->inputs(); }
  const std::vector<TensorDesc>& outputs() const noexcept override { return program_->outputs(); }
  device::Placement placement() const noexcept override { return program_->placement(); }
  bool from_precompiled() const noexcept override { return program_->from_precompiled(); }
  device::EngineChoice engine() const override { return choice_; }
  device::MemoryFigures memory() const override { return program_->memory(); }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override {
    return program_->new_request(width, core);
  }
  Status reserve(std::size_t width, std::size_t requests) override {
    return program_->reserve(width, requests);
  }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return program_->export_precompiled();
  }

 private:
  const std::shared_ptr<device::LaneProgram> program_;
  const device::EngineChoice choice_;
};

}  // namespace corelane::drivers::virtual_npu
