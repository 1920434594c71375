#include "drivers/virtual/choice/yielding_program.h"

#include <atomic>
#include <utility>
#include <vector>

#include "corelane/base/log.h"

namespace corelane::drivers::virtual_npu {
namespace {

/// What is bound is remembered, so that either engine can be given it.
class YieldingRequest final : public device::LaneRequest {
 public:
  YieldingRequest(std::shared_ptr<YieldingProgram> program,
                  std::unique_ptr<device::LaneRequest> first, std::size_t width, std::size_t core)
      : program_(std::move(program)),
        first_(std::move(first)),
        width_(width),
        core_(core),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        used_(first_.get()),
        running_(first_.get()) {}

  Status set_input(std::size_t index, const device::TensorRef& tensor) override {
    CORELANE_TRY(first_->set_input(index, tensor));
    inputs_[index] = tensor;
    return {};
  }
  Status set_output(std::size_t index, const device::TensorRef& tensor) override {
    CORELANE_TRY(first_->set_output(index, tensor));
    outputs_[index] = tensor;
    return {};
  }
  Status run(std::uint64_t core_bits) override {
    abandoned_.store(false);
    used_ = first_.get();
    running_.store(used_);
    Status status = first_->run(core_bits);
    if (status.code() != Code::kOutOfRange) {
      second_.reset();  // It holds what was bound for its run.
      return status;
    }
    if (const Status bound = bind_second(); !bound.ok())
      return error(status.code(), "{}; the other engine does not take the run either: {}",
                   status.message(), bound.message());
    if (!said_) log::info("virtual", "a run is computed by ONNX Runtime: {}", status.message());
    said_ = true;
    used_ = second_.get();
    running_.store(used_);
    // The second engine would take that for one before its run.
    if (abandoned_.load())
      return error(Code::kCancelled, "the run was abandoned while the other engine was prepared");
    return second_->run(core_bits);
  }
  /// The first engine says so of runs that it computes.
  bool is_brief() const noexcept override { return first_->is_brief(); }
  void abandon() noexcept override {
    abandoned_.store(true);
    running_.load()->abandon();
  }
  Result<device::TensorRef> output(std::size_t index) override { return used_->output(index); }
  Result<std::vector<device::LayerTime>> layer_times() const override {
    return used_->layer_times();
  }
  bool lost() const noexcept override { return used_->lost(); }

 private:
  /// All anew: what was bound may have changed since the second engine's last run.
  Status bind_second() {
    if (second_ == nullptr) {
      CORELANE_ASSIGN(const auto other, program_->other());
      CORELANE_ASSIGN(second_, other->new_request(width_, core_));
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      CORELANE_TRY(second_->set_input(i, inputs_[i]));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      CORELANE_TRY(second_->set_output(i, outputs_[i]));
    return {};
  }

  const std::shared_ptr<YieldingProgram> program_;
  const std::unique_ptr<device::LaneRequest> first_;
  std::unique_ptr<device::LaneRequest> second_;  ///< From its run to the first one's next.
  const std::size_t width_;
  const std::size_t core_;
  std::vector<device::TensorRef> inputs_;
  std::vector<device::TensorRef> outputs_;
  device::LaneRequest* used_;                  ///< Of the last run.
  std::atomic<device::LaneRequest*> running_;  ///< The same, for abandon().
  std::atomic<bool> abandoned_{false};         ///< Since the last run began.
  bool said_ = false;
};

}  // namespace

device::MemoryFigures YieldingProgram::memory() const {
  device::MemoryFigures figures = ChosenProgram::memory();
  for (const auto& other : other_.values()) figures += other->memory();
  return figures;
}

Result<std::shared_ptr<device::LaneProgram>> YieldingProgram::other() {
  return other_.get({}, make_other_);
}

Result<std::unique_ptr<device::LaneRequest>> YieldingProgram::new_request(std::size_t width,
                                                                          std::size_t core) {
  CORELANE_ASSIGN(auto first, ChosenProgram::new_request(width, core));
  return std::make_unique<YieldingRequest>(shared_from_this(), std::move(first), width, core);
}

}  // namespace corelane::drivers::virtual_npu
