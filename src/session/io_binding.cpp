#include "corelane/session/io_binding.h"

#include <algorithm>

#include "base/leaked.h"
#include "corelane/device/buffer.h"
#include "runtime/context/slot.h"
#include "session/binding_state.h"
#include "session/tasks/session_core.h"

namespace corelane {
namespace {

/// A binding does not keep its session alive.
Result<std::shared_ptr<session::SessionCore>> core_of(
    const std::shared_ptr<session::BindingState>& state) {
  if (state == nullptr)
    return error(Code::kWrongState, "this binding was never made; use Session::io_binding");
  auto core = state->core.lock();
  if (core == nullptr) return error(Code::kWrongState, "the session of this binding is gone");
  return core;
}

/// An output in memory that was given; nothing holds the memory where `keep` is null.
session::CallOutput given_output(std::size_t index, std::string_view name,
                                 const MutableTensorView& view, std::shared_ptr<const void> keep) {
  session::CallOutput output;
  output.index = index;
  output.given = true;
  output.tensor = {std::string(name), view.dtype, view.shape,
                   view.layout,       view.quant, std::shared_ptr<void>(std::move(keep), view.data),
                   view.size};
  return output;
}

void put(session::BindingState& state, std::size_t index, session::CallInput input) {
  state.changeable().inputs[index] = std::move(input);
  state.has_input[index] = true;
}

/// Replaces what was bound to the same output.
void put(session::BindingState& state, session::CallOutput output) {
  std::vector<session::CallOutput>& outputs = state.changeable().outputs;
  const auto same = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const auto& o) { return o.index == output.index; });
  if (same != outputs.end())
    *same = std::move(output);
  else
    outputs.push_back(std::move(output));
}

}  // namespace

Status IoBinding::bind_input(std::string_view name, const TensorView& view,
                             std::shared_ptr<const void> keep_alive) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  CORELANE_ASSIGN(const std::size_t index, core->model().input_index(name));
  session::CallInput input;
  CORELANE_ASSIGN(input.view, core->model().check_input(index, view));
  input.keep = std::move(keep_alive);
  put(*state_, index, std::move(input));
  return {};
}

Status IoBinding::bind_input(std::string_view name, std::shared_ptr<device::Buffer> buffer,
                             std::size_t offset) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  CORELANE_ASSIGN(const std::size_t index, core->model().input_index(name));
  const TensorDesc& desc = core->model().native_inputs()[index];
  session::CallInput input;
  // The native form: a buffer has no type or layout of its own.
  CORELANE_ASSIGN(input.view, runtime::buffer_view(desc, buffer, offset, Detail::kInput));
  CORELANE_TRY(runtime::check_view(desc, input.view, Detail::kInput));
  input.buffer = std::move(buffer);
  input.offset = offset;
  put(*state_, index, std::move(input));
  return {};
}

Status IoBinding::copy_input(std::string_view name, const TensorView& view) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  CORELANE_ASSIGN(const std::size_t index, core->model().input_index(name));
  session::CallInput input;
  CORELANE_ASSIGN(input.view, core->model().check_input(index, view));
  CORELANE_TRY(core->model().capture(index, input));
  put(*state_, index, std::move(input));
  return {};
}

Status IoBinding::bind_output(std::string_view name, const MutableTensorView& view,
                              std::shared_ptr<const void> keep_alive) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  CORELANE_ASSIGN(const std::size_t index, core->model().output_index(name));
  if (view.data == nullptr)
    return error(Code::kInvalidArgument, "output '{}': the memory is null", name);
  const Shape& declared = core->model().native_outputs()[index].shape;
  // With open shapes the size of the result is known after the run, which checks it.
  if (view.shape.is_static() && !core->model().has_open_shapes() && !declared.accepts(view.shape))
    return error(Code::kShapeMismatch, "output '{}' is {}, the bound memory is {}", name,
                 declared.to_string(), view.shape.to_string())
        .with(Detail::kOutput, name)
        .with(Detail::kGiven, view.shape.to_string())
        .with(Detail::kAllowed, declared.to_string());
  put(*state_, given_output(index, name, view, std::move(keep_alive)));
  return {};
}

Status IoBinding::bind_output(std::string_view name, std::shared_ptr<device::Buffer> buffer,
                              std::size_t offset) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  CORELANE_ASSIGN(const std::size_t index, core->model().output_index(name));
  CORELANE_ASSIGN(
      const MutableTensorView view,
      runtime::buffer_view(core->model().native_outputs()[index], buffer, offset, Detail::kOutput));
  session::CallOutput output = given_output(index, name, view, buffer);
  output.buffer = std::move(buffer);
  output.offset = offset;
  put(*state_, std::move(output));
  return {};
}

Status IoBinding::bind_output(std::string_view name) {
  CORELANE_ASSIGN(const auto core, core_of(state_));
  session::CallOutput output;
  CORELANE_ASSIGN(output.index, core->model().output_index(name));
  put(*state_, std::move(output));
  return {};
}

void IoBinding::clear_inputs() {
  if (state_ == nullptr) return;
  for (session::CallInput& input : state_->changeable().inputs) input = {};
  state_->has_input.assign(state_->has_input.size(), false);
}

void IoBinding::clear_outputs() {
  if (state_ == nullptr) return;
  state_->changeable().outputs.clear();
  state_->results.clear();
}

const Outputs& IoBinding::outputs() const {
  static Leaked<const Outputs> none;
  return state_ == nullptr ? *none : state_->results;
}

std::vector<std::string_view> IoBinding::input_names() const {
  std::vector<std::string_view> names;
  const auto core = core_of(state_);
  if (!core) return names;
  for (std::size_t i = 0; i < state_->has_input.size(); ++i)
    if (state_->has_input[i]) names.emplace_back((*core)->model().native_inputs()[i].name);
  return names;
}

std::vector<std::string_view> IoBinding::output_names() const {
  std::vector<std::string_view> names;
  const auto core = core_of(state_);
  if (!core) return names;
  for (const session::CallOutput& output : state_->call->outputs)
    names.emplace_back((*core)->model().native_outputs()[output.index].name);
  return names;
}

}  // namespace corelane
