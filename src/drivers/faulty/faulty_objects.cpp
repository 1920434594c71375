#include "drivers/faulty/faulty_objects.h"

namespace corelane::drivers::faulty {

double FaultDice::draw() {
  const MutexLock lock(mutex_);
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

ResultFault FaultDice::for_job() {
  if (!strikes_results()) return ResultFault::kNone;
  const double x = draw();
  if (x < plan_.short_result) return ResultFault::kShort;
  return x < plan_.short_result + plan_.flip ? ResultFault::kFlip : ResultFault::kNone;
}

bool FaultDice::for_allocation() { return plan_.oom > 0 && draw() < plan_.oom; }

std::uint64_t FaultDice::number() {
  const MutexLock lock(mutex_);
  return random_();
}

Result<TensorRef> FaultyBindings::output(std::size_t index) {
  CORELANE_ASSIGN(TensorRef tensor, inner->output(index));
  if (is_short) tensor.size /= 2;
  return tensor;
}

void FaultyBindings::flip(std::uint64_t random) {
  const std::size_t count = executable->outputs().size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto tensor = inner->output((random + i) % count);
    if (!tensor || tensor->size == 0) continue;
    const std::size_t bit = random % (tensor->size * 8);
    static_cast<unsigned char*>(tensor->data)[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    return;
  }
}

Result<std::shared_ptr<Bindings>> FaultyExecutable::new_bindings() {
  if (dice_->for_allocation())
    return error(Code::kOutOfMemory, "no memory for bindings (injected fault 'oom')");
  CORELANE_ASSIGN(std::shared_ptr<Bindings> bindings, inner->new_bindings());
  return std::make_shared<FaultyBindings>(std::move(bindings), shared_from_this());
}

void FaultyCompletion::watch(std::shared_ptr<Completion> inner, ResultFault fault,
                             std::uint64_t random) {
  inner_ = std::move(inner);
  inner_->on_done([self = shared_from_this(), fault, random](Completion& done) {
    const Status status = done.status();
    if (status.ok() && fault == ResultFault::kFlip) self->bindings_->flip(random);
    if (status.ok() && fault == ResultFault::kShort) self->bindings_->is_short = true;
    self->done_.signal();
    for (const auto& fence : self->signals_) fence->signal(status);
  });
}

Status FaultyCompletion::status() const {
  if (done()) return inner_->status();
  return error(Code::kWrongState, "the job is not done; wait for it before asking for its status");
}

void FaultyCompletion::on_done(std::function<void(Completion&)> f) {
  done_.on_signal([self = shared_from_this(), f = std::move(f)](const Status&) { f(*self); });
}

}  // namespace corelane::drivers::faulty
