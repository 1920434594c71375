#include "drivers/null/null_engine.h"

#include "drivers/null/null_image.h"
#include "drivers/null/null_request.h"

namespace corelane::drivers::null {
namespace {

class NullProgram final : public device::LaneProgram {
 public:
  NullProgram(std::shared_ptr<NullState> state, Description description)
      : state_(std::move(state)),
        description_(std::make_shared<const Description>(std::move(description))) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return description_->inputs; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return description_->outputs; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override { return {}; }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t, std::size_t) override {
    return make_null_request(state_, description_);
  }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return error(Code::kUnsupported,
                 "the null device has no pre-compiled form; it compiles nothing");
  }

 private:
  const std::shared_ptr<NullState> state_;
  const std::shared_ptr<const Description> description_;
};

}  // namespace

NullEngine::NullEngine(Script script, std::shared_ptr<Clock> clock)
    : state_(std::make_shared<NullState>()) {
  state_->script = std::move(script);
  state_->clock = std::move(clock);
}

Result<std::shared_ptr<device::LaneProgram>> NullEngine::prepare(
    const device::Image& image, const device::PrepareOptions& options) {
  if (options.profile_layers)
    return error(Code::kUnsupported, "the null device has no layers to profile");
  if (!options.exposed_values.empty())
    return error(Code::kUnsupported, "the null device has no inner value '{}' to expose",
                 options.exposed_values.front());
  if (!options.custom_operators.empty())
    return error(Code::kUnsupported, "the null device runs no operators, so not '{}'",
                 options.custom_operators.front().type);
  CORELANE_ASSIGN(Description description, describe(image, options.input_shapes));
  return std::make_shared<NullProgram>(state_, std::move(description));
}

}  // namespace corelane::drivers::null
