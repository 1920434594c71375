#include "adapters/qaic/program/qaic_states.h"

#include <algorithm>

#include "adapters/qaic/program/qaic_buffer_plan.h"

namespace corelane::qaic {
namespace {

Status check_memory(const void* data, std::uint64_t size) {
  if (data != nullptr || size == 0) return {};
  return error(Code::kInvalidArgument, "the memory of {} bytes is null", size);
}

}  // namespace

Outcome StateCalls::list(std::uint32_t& count, QAicStateInfo* states) const {
  CORELANE_ASSIGN(const auto found, context_.states());
  const std::size_t room = states == nullptr ? 0 : count;
  for (std::size_t i = 0; i < std::min(found.size(), room); ++i) {
    const KeptState& from = found[i];
    QAicStateInfo& to = states[i];
    to.inputIndex = static_cast<std::uint32_t>(from.input_index);
    to.outputIndex = static_cast<std::uint32_t>(plan_.inputs() + from.output_index);
    // It fits: map_program() takes no tensor of 4 GiB.
    to.size = static_cast<std::uint32_t>(from.desc.bytes().value_or(0));
    to.inputKept = from.input_kept;
    to.outputKept = from.output_kept;
  }
  count = static_cast<std::uint32_t>(found.size());
  return {};
}

Outcome StateCalls::reset(std::uint32_t state) {
  return state == QAIC_ALL_STATES ? context_.reset_states() : context_.reset_state(state);
}

Outcome StateCalls::set(std::uint32_t state, const void* data, std::uint64_t size) {
  CORELANE_TRY(check_memory(data, size));
  return context_.set_state(state, {static_cast<const std::byte*>(data), size});
}

Outcome StateCalls::copy(std::uint32_t state, void* data, std::uint64_t size) const {
  CORELANE_TRY(check_memory(data, size));
  return context_.copy_state(state, {static_cast<std::byte*>(data), size});
}

}  // namespace corelane::qaic
