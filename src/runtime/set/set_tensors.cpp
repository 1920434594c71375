// What the tensors of a submission become, and the descriptor of a set.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/process/errno_text.h"
#include "runtime/set/set_core.h"

namespace corelane::runtime {
namespace {

template <class View>
Status check_count(const std::vector<View>& views, std::size_t count, const char* what) {
  if (views.size() <= count) return {};
  return error(Code::kInvalidArgument, "{} {}s were given; the program has {}", views.size(), what,
               count);
}

}  // namespace

/// In the handle's own memory the rest stays what it was.
Status SetCore::bind_input(Context& context, std::size_t index, const TensorView& view) const {
  const TensorDesc& desc = program_.description().inputs[index].desc;
  const bool partial = std::find(options_.partial_inputs.begin(), options_.partial_inputs.end(),
                                 desc.name) != options_.partial_inputs.end();
  const auto& states = program_.description().states;
  const bool kept = std::ranges::find(states, desc.name, &StateDecl::input) != states.end();
  if (view.data == nullptr && kept) return context.unbind_input(index);
  if (view.data == nullptr && !partial)
    return error(Code::kInvalidArgument,
                 "input '{}' was left out; give it, or name it in SetOptions::partial_inputs",
                 desc.name)
        .with(Detail::kInput, desc.name);
  if (!partial) return context.bind_input(index, view);
  CORELANE_TRY(context.unbind_input(index));
  if (view.data == nullptr) return {};
  CORELANE_ASSIGN(const MutableTensorView own, context.input(index));
  if (view.size >= own.size) return context.set_input(index, view);
  if (view.dtype != own.dtype || view.quant.kind != QuantKind::kNone)
    return error(Code::kTypeMismatch,
                 "a part of input '{}' has to be {}, the type that the program computes with",
                 desc.name, dtype_name(own.dtype))
        .with(Detail::kInput, desc.name);
  std::memcpy(own.data, view.data, view.size);
  return {};
}

Status SetCore::bind(Context& context, const SetTensors& tensors) const {
  const ProgramDescription& description = program_.description();
  CORELANE_TRY(check_count(tensors.inputs, description.inputs.size(), "input"));
  CORELANE_TRY(check_count(tensors.outputs, description.outputs.size(), "output"));
  for (std::size_t i = 0; i < description.inputs.size(); ++i)
    CORELANE_TRY(
        bind_input(context, i, i < tensors.inputs.size() ? tensors.inputs[i] : TensorView{}));
  for (std::size_t i = 0; i < description.outputs.size(); ++i)
    if (i < tensors.outputs.size() && tensors.outputs[i].data != nullptr)
      CORELANE_TRY(context.bind_output(i, tensors.outputs[i]));
    else
      CORELANE_TRY(context.unbind_output(i));
  return {};
}

Result<SetHandle> SetCore::submit(const SetTensors& tensors, std::uint64_t id, TimePoint until) {
  CORELANE_ASSIGN(SetHandle handle, acquire(until));
  Context context = items_[handle.index()].context;
  Status status = bind(context, tensors);
  if (status.ok()) status = submit(handle, id, nullptr);
  if (status.ok()) return handle;
  // Their owner may free what was bound before something failed.
  const ProgramDescription& description = program_.description();
  for (std::size_t i = 0; i < description.inputs.size(); ++i) (void)context.unbind_input(i);
  for (std::size_t i = 0; i < description.outputs.size(); ++i) (void)context.unbind_output(i);
  CORELANE_TRY(release(handle));
  return error(std::move(status));
}

Result<int> SetCore::fd() {
  CORELANE_TRY(check_process());
  const MutexLock lock(mutex_);
  if (!fd_) {
    fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd_) return error(Code::kIo, "no descriptor for an inference set: {}", errno_text());
    readable_ = false;
    update_fd();
  }
  return fd_.get();
}

void SetCore::update_fd() {
  if (!fd_ || readable_ == table_.next().has_value()) return;
  readable_ = !readable_;
  eventfd_t count = 0;
  if (readable_)
    eventfd_write(fd_.get(), 1);
  else
    eventfd_read(fd_.get(), &count);
}

}  // namespace corelane::runtime
