/// The engine of the null device: it runs nothing, takes the scripted time, and gives zeros or a
/// copy of the input.
#pragma once

#include <atomic>
#include <memory>

#include "corelane/driver/lane_engine.h"
#include "drivers/null/null_script.h"

namespace corelane::drivers::null {

/// What all programs of a device share.
struct NullState {
  Script script;
  std::shared_ptr<Clock> clock;
  std::atomic<std::uint64_t> runs{0};
};

class NullEngine final : public device::LaneEngine {
 public:
  NullEngine(Script script, std::shared_ptr<Clock> clock);
  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override;
  bool event_driven() const noexcept override { return !state_->script.threads; }

 private:
  const std::shared_ptr<NullState> state_;
};

}  // namespace corelane::drivers::null
