#include "lanes/kept_inputs.h"

#include "corelane/driver/lane_engine.h"

namespace corelane::lanes {

KeptInputs::KeptInputs(device::LaneProgram& program) : program_(program) {
  const std::size_t count = program.inputs().size();
  for (std::size_t i = 0; i < count; ++i) {
    // `inputs_` stays empty where nothing is kept, so that keeps() is one comparison.
    if (!program.keeps_input(i)) continue;
    inputs_.resize(count);
    inputs_[i].kept = true;
  }
}

Result<std::shared_ptr<device::KeptContent>> KeptInputs::content_of(
    std::size_t index, const device::TensorRef& memory) {
  if (memory.data == nullptr) return nullptr;
  return program_.kept_content(index, memory);
}

Status KeptInputs::set(std::size_t index, const device::TensorRef& memory) {
  Input& input = inputs_[index];
  CORELANE_ASSIGN(input.content, content_of(index, memory));
  if (input.content != nullptr) input.content->renew();
  // The shadow still has the content of the memory before this one.
  input.copied.reset();
  input.fresh = fresh_ = true;
  return {};
}

void KeptInputs::fences_signalled() noexcept {
  if (!fresh_) return;
  // Only memory that was set since the last run: a job after that reads what was there before.
  for (const Input& input : inputs_)
    if (input.fresh && input.content != nullptr) input.content->renew();
}

/// Fences of later jobs concern what is set from now on.
void KeptInputs::ran() noexcept {
  if (!fresh_) return;
  for (Input& input : inputs_) input.fresh = false;
  fresh_ = false;
}

Status KeptInputs::set_shadow(std::size_t index, const device::TensorRef& memory) {
  inputs_[index].copied.reset();
  CORELANE_ASSIGN(inputs_[index].shadow, content_of(index, memory));
  return {};
}

bool KeptInputs::begin_copy(std::size_t index) noexcept {
  Input& input = inputs_[index];
  const std::uint64_t stamp = input.content->stamp();
  if (input.copied == stamp) return false;
  // Noted before the copy: content that changes meanwhile has another stamp, and is copied again.
  input.copied = stamp;
  return true;
}

}  // namespace corelane::lanes
