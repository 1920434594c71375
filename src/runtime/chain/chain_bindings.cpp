#include <utility>

#include "runtime/chain/chain_device.h"
#include "runtime/chain/chain_executable.h"

namespace corelane::runtime {

Result<std::shared_ptr<device::Bindings>> ChainBindings::make(std::shared_ptr<ChainExecutable> of) {
  std::shared_ptr<ChainBindings> made(new ChainBindings(std::move(of)));
  const ChainExecutable& executable = *made->executable_;
  for (const auto& part : executable.parts()) {
    CORELANE_ASSIGN(auto bindings, part->new_bindings());
    made->parts_.push_back(std::move(bindings));
  }
  for (const InnerValue& value : executable.routes().inner) CORELANE_TRY(made->join(value));
  made->shared_.resize(executable.inputs().size());
  for (std::size_t i = 0; i < made->shared_.size(); ++i)
    if (executable.routes().inputs[i].size() > 1) CORELANE_TRY(made->share(i));
  return made;
}

/// Zeroed memory of the device that has `owner`, which jobs keep for as long as they use it.
Result<device::TensorRef> ChainBindings::new_memory(const PartTensor& owner,
                                                    const TensorDesc& desc) {
  CORELANE_ASSIGN(const std::size_t bytes, desc.bytes());
  const auto& device = executable_->device()->device_of(owner.part);
  // A buffer of 0 bytes is refused, and a value may have no elements.
  CORELANE_ASSIGN(std::shared_ptr<device::Buffer> buffer,
                  device->create_buffer(std::max<std::size_t>(bytes, 1), {}));
  *executable_->inner_bytes() += bytes;
  void* const data = buffer->data();
  std::shared_ptr<const void> keep(
      data,
      [buffer = std::move(buffer), count = executable_->inner_bytes(), bytes](const void*) mutable {
        *count -= bytes;
        buffer.reset();
      });
  return device::TensorRef{data, bytes, desc.shape, std::move(keep)};
}

/// One memory for the part that makes a value and for those that read it: nothing is copied between
/// parts.
Status ChainBindings::join(const InnerValue& value) {
  const auto& maker = executable_->parts()[value.from.part];
  CORELANE_ASSIGN(const device::TensorRef memory,
                  new_memory(value.from, maker->outputs()[value.from.index]));
  CORELANE_TRY(parts_[value.from.part]->set_output(value.from.index, memory));
  for (const PartTensor& at : value.to) CORELANE_TRY(parts_[at.part]->set_input(at.index, memory));
  return {};
}

/// Shares an input that several parts read: else each part would have memory of its own for it.
Status ChainBindings::share(std::size_t input) {
  const TensorDesc& desc = executable_->inputs()[input];
  if (!desc.shape.is_static()) return {};
  const auto& readers = executable_->routes().inputs[input];
  CORELANE_ASSIGN(shared_[input], new_memory(readers.front(), desc));
  for (const PartTensor& at : readers)
    CORELANE_TRY(parts_[at.part]->set_input(at.index, shared_[input]));
  return {};
}

Status ChainBindings::check_free() const {
  bool used = acquired_;
  for (const auto& job : last_) used = used || !job->released();
  if (!used) return {};
  return error(Code::kBusy,
               "the bindings are in use by another job; wait until it is released, or use separate "
               "bindings for each job in flight");
}

Status ChainBindings::check(std::size_t index, std::size_t count, const char* what) const {
  {
    const MutexLock lock(mutex_);
    CORELANE_TRY(check_free());
  }
  if (index < count) return {};
  return error(Code::kOutOfRange, "{} {} of a chain that has {}", what, index, count);
}

Status ChainBindings::acquire() {
  Jobs ended;  // They go after the lock.
  const MutexLock lock(mutex_);
  CORELANE_TRY(check_free());
  acquired_ = true;
  ended.swap(last_);
  return {};
}

void ChainBindings::give_back(Jobs jobs) {
  const MutexLock lock(mutex_);
  acquired_ = false;
  // The jobs before go with `jobs`, after the lock.
  last_.swap(jobs);
}

Status ChainBindings::set_input(std::size_t index, const device::TensorRef& tensor) {
  CORELANE_TRY(check(index, executable_->inputs().size(), "input"));
  // Null gives each part its own memory back, or the shared memory where there is some.
  const bool own = tensor.data == nullptr;
  for (const PartTensor& at : executable_->routes().inputs[index])
    CORELANE_TRY(parts_[at.part]->set_input(at.index, own ? shared_[index] : tensor));
  return {};
}

Status ChainBindings::set_output(std::size_t index, const device::TensorRef& tensor) {
  CORELANE_TRY(check(index, executable_->outputs().size(), "output"));
  const PartTensor& at = executable_->routes().outputs[index];
  return parts_[at.part]->set_output(at.index, tensor);
}

Result<device::TensorRef> ChainBindings::input(std::size_t index) {
  CORELANE_TRY(check(index, executable_->inputs().size(), "input"));
  const PartTensor& at = executable_->routes().inputs[index].front();
  return parts_[at.part]->input(at.index);
}

Result<device::TensorRef> ChainBindings::output(std::size_t index) {
  CORELANE_TRY(check(index, executable_->outputs().size(), "output"));
  const PartTensor& at = executable_->routes().outputs[index];
  return parts_[at.part]->output(at.index);
}

Result<std::vector<device::LayerTime>> ChainBindings::layer_times() const {
  std::vector<device::LayerTime> all;
  for (const auto& part : parts_) {
    CORELANE_ASSIGN(auto own, part->layer_times());
    all.insert(all.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  return all;
}

}  // namespace corelane::runtime
