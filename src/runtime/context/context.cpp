#include "corelane/runtime/context.h"

#include <fmt/format.h>

#include "runtime/context/context_state.h"
#include "runtime/context/inference_state.h"

namespace corelane {
namespace {

Status no_context() {
  return error(Code::kWrongState, "this context was never made; use Program::new_context");
}

Result<std::size_t> index_of(const std::vector<TensorDesc>& descs, std::string_view name,
                             std::string_view what) {
  std::string names;
  for (std::size_t i = 0; i < descs.size(); ++i) {
    if (descs[i].name == name) return i;
    names += (i == 0 ? "'" : ", '") + descs[i].name + "'";
  }
  return error(Code::kNotFound, "there is no {} '{}'; the program has {}", what, name,
               names.empty() ? "none" : names);
}

}  // namespace

Result<Context> Context::duplicate() const {
  if (state_ == nullptr) return error(no_context());
  Context copy;
  CORELANE_ASSIGN(copy.state_, state_->duplicate());
  return copy;
}

Status Context::set_input_shapes(const std::vector<Shape>& shapes) {
  return state_ == nullptr ? no_context() : state_->set_input_shapes(shapes);
}

std::vector<TensorDesc> Context::inputs() const {
  if (state_ == nullptr) return {};
  return state_->input_descs();
}

std::vector<TensorDesc> Context::outputs() const {
  if (state_ == nullptr) return {};
  return state_->output_descs();
}

Result<std::size_t> Context::input_index(std::string_view name) const {
  return index_of(inputs(), name, "input");
}

Result<std::size_t> Context::output_index(std::string_view name) const {
  return index_of(outputs(), name, "output");
}

Status Context::bind_input(std::size_t index, const TensorView& view,
                           const ConvertOptions& convert) {
  return state_ == nullptr ? no_context() : state_->bind_input(index, view, convert);
}

Status Context::bind_output(std::size_t index, const MutableTensorView& view) {
  return state_ == nullptr ? no_context() : state_->bind_output(index, view);
}

Status Context::bind_input(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                           std::size_t offset) {
  return state_ == nullptr ? no_context() : state_->bind_input(index, std::move(buffer), offset);
}

Status Context::bind_output(std::size_t index, std::shared_ptr<device::Buffer> buffer,
                            std::size_t offset) {
  return state_ == nullptr ? no_context() : state_->bind_output(index, std::move(buffer), offset);
}

Status Context::set_input(std::size_t index, const TensorView& view,
                          const ConvertOptions& convert) {
  return state_ == nullptr ? no_context() : state_->set_input(index, view, convert);
}

Status Context::unbind_input(std::size_t index) {
  return state_ == nullptr ? no_context() : state_->unbind_input(index);
}

Status Context::unbind_output(std::size_t index) {
  return state_ == nullptr ? no_context() : state_->unbind_output(index);
}

Result<MutableTensorView> Context::input(std::size_t index) {
  if (state_ == nullptr) return error(no_context());
  return state_->input(index);
}

Result<TensorView> Context::output(std::size_t index) const {
  if (state_ == nullptr) return error(no_context());
  return state_->output(index);
}

Status Context::run(const RunOptions& options) {
  return state_ == nullptr ? no_context() : state_->run(options);
}

Result<Inference> Context::submit(const RunOptions& options) {
  if (state_ == nullptr) return error(no_context());
  Inference inference;
  CORELANE_ASSIGN(inference.state_, state_->submit(state_, options));
  return inference;
}

device::JobRecord Context::record() const {
  return state_ == nullptr ? device::JobRecord{} : state_->record();
}

RunTimes Context::times() const { return state_ == nullptr ? RunTimes{} : state_->times(); }

Result<std::vector<device::LayerTime>> Context::layer_times() const {
  if (state_ == nullptr) return error(no_context());
  return state_->layer_times();
}

device::MemoryFigures Context::memory() const {
  return state_ == nullptr ? device::MemoryFigures{} : state_->memory();
}

}  // namespace corelane
