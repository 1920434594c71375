#include "runtime/context/state_store.h"

#include <fmt/format.h>

#include <cstring>

#include "corelane/device/completion.h"
#include "runtime/context/output_copies.h"
#include "runtime/context/own_memory.h"

namespace corelane::runtime {

/// The right to the store for the length of a call.
class StateStore::Call {
 public:
  explicit Call(StateStore& store) : store_(store), status_(store.enter()) {}
  ~Call() {
    if (status_.ok()) store_.leave();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const Status& status() const noexcept { return status_; }

 private:
  StateStore& store_;
  Status status_;
};

StateStore::StateStore(std::string program, std::vector<std::string> inputs,
                       std::shared_ptr<std::atomic<std::size_t>> counter)
    : program_(std::move(program)),
      inputs_(std::move(inputs)),
      counter_(std::move(counter)),
      values_(inputs_.size()) {}

Status StateStore::busy() const {
  return error(Code::kBusy,
               "the state of program '{}' is in use by another inference or call; wait for that, "
               "or give each sequence an activation, or a context without one, of its own",
               program_);
}

Status StateStore::enter() {
  if (in_use_.exchange(true, std::memory_order_acquire)) return busy();
  Status status = settle();
  if (!status.ok()) leave();
  return status;
}

Status StateStore::settle() {
  if (pending_ == nullptr) return {};
  const bool done =
      pending_->done() && (pending_conversion_ == nullptr || pending_conversion_->finished());
  if (!done) return busy();
  const Status ended =
      pending_conversion_ != nullptr ? pending_conversion_->status() : pending_->status();
  // First: it may fail, and is tried again then.
  if (!pending_->released()) CORELANE_TRY(leave_memory());
  exchange(ended.ok());
  pending_.reset();
  pending_conversion_.reset();
  return {};
}

Result<std::shared_ptr<void>> StateStore::allocate(std::size_t bytes) {
  return allocate_own(bytes, counter_);
}

/// The job may still read it. It has failed, so what it was to read is the state.
Status StateStore::leave_memory() {
  for (Value& value : values_) {
    if (value.front == nullptr) continue;
    CORELANE_ASSIGN(auto copy, allocate(value.bytes));
    std::memcpy(copy.get(), value.front.get(), value.bytes);
    value.front = std::move(copy);
  }
  return {};
}

/// What its slices replaced comes back after a failure, the last one first. What a failed run was
/// to write is not used again: of a lost device's job nobody knows when it
/// ends.
void StateStore::exchange(bool ok) noexcept {
  for (Value& value : values_) {
    for (std::size_t left = ok ? 0 : value.replaced.size(); left > 0; --left) {
      const Replaced& last = value.replaced[left - 1];
      auto* const front = static_cast<std::byte*>(value.front.get());
      last.box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
        std::memcpy(front + place, last.bytes.data() + inside, bytes);
      });
    }
    value.replaced.clear();
    if (!std::exchange(value.written, false)) continue;
    if (ok)
      std::swap(value.front, value.back);
    else if (std::exchange(value.back, nullptr) != nullptr)
      held_ -= value.bytes;
  }
}

Status StateStore::check_shape(std::size_t index, const Shape& shape) const {
  const Value& value = values_[index];
  if (value.front == nullptr || value.shape == shape) return {};
  return error(Code::kShapeMismatch,
               "the state of input '{}' is kept as {}, these shapes make it {}; reset it, or set "
               "it anew, before a run in other shapes",
               inputs_[index], value.shape.to_string(), shape.to_string())
      .with(Detail::kInput, inputs_[index]);
}

/// A state that is zeros takes the shape of the first run.
Status StateStore::prepare(std::size_t index, const Use& use) {
  if (!use.reads && !use.writes) return {};
  CORELANE_TRY(check_shape(index, use.shape));
  Value& value = values_[index];
  if (value.front == nullptr) {
    CORELANE_ASSIGN(value.front, allocate(use.bytes));
    value.shape = use.shape;
    value.bytes = use.bytes;
    held_ += use.bytes;
  }
  if (use.writes && value.back == nullptr) {
    CORELANE_ASSIGN(value.back, allocate(value.bytes));
    held_ += value.bytes;
  }
  value.written = use.writes;
  return {};
}

Status StateStore::prepare(std::span<const Use> uses) {
  for (std::size_t i = 0; i < values_.size(); ++i) CORELANE_TRY(prepare(i, uses[i]));
  return {};
}

void StateStore::write(const Slice& slice) {
  Value& value = values_[slice.index];
  auto* const front = static_cast<std::byte*>(value.front.get());
  Replaced before{slice.box, std::vector<std::byte>(slice.bytes.size())};
  slice.box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(before.bytes.data() + inside, front + place, bytes);
  });
  value.replaced.push_back(std::move(before));
  slice.box.each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
    std::memcpy(front + place, slice.bytes.data() + inside, bytes);
  });
}

Status StateStore::write(std::size_t index, const Shape& shape, ByteSpan bytes) {
  const Call call(*this);
  CORELANE_TRY(call.status());
  Value& value = values_[index];
  if (value.front == nullptr || value.shape != shape) {
    CORELANE_ASSIGN(auto front, allocate(bytes.size()));
    clear(index);
    value.front = std::move(front);
    value.shape = shape;
    value.bytes = bytes.size();
    held_ += value.bytes;
  }
  if (!bytes.empty()) std::memcpy(value.front.get(), bytes.data(), bytes.size());
  return {};
}

Status StateStore::read(std::size_t index, const Shape& shape, MutableByteSpan to) {
  const Call call(*this);
  CORELANE_TRY(call.status());
  CORELANE_TRY(check_shape(index, shape));
  const void* const from = values_[index].front.get();
  if (to.empty()) return {};
  if (from == nullptr)
    std::memset(to.data(), 0, to.size());
  else
    std::memcpy(to.data(), from, to.size());
  return {};
}

/// The memory goes: what is bound to it in a context stays there until the next run.
void StateStore::clear(std::size_t index) noexcept {
  Value& value = values_[index];
  for (auto* buffer : {&value.front, &value.back})
    if (std::exchange(*buffer, nullptr) != nullptr) held_ -= value.bytes;
}

Status StateStore::reset(std::size_t index) {
  const Call call(*this);
  CORELANE_TRY(call.status());
  clear(index);
  return {};
}

Status StateStore::reset_all() {
  const Call call(*this);
  CORELANE_TRY(call.status());
  for (std::size_t i = 0; i < values_.size(); ++i) clear(i);
  return {};
}

Result<StateTurn> StateTurn::begin(std::shared_ptr<StateStore> store,
                                   std::span<const StateStore::Use> uses,
                                   std::span<const StateStore::Slice> slices) {
  CORELANE_TRY(store->enter());
  StateTurn turn;
  turn.store_ = std::move(store);
  CORELANE_TRY(turn.store_->prepare(uses));
  for (const StateStore::Slice& slice : slices) turn.store_->write(slice);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const StateStore::Value& value = turn.store_->values_[i];
    StateStore::Memory& memory = turn.memory_.emplace_back();
    const auto ref = [&](const std::shared_ptr<void>& buffer) {
      return device::TensorRef{buffer.get(), value.bytes, value.shape, buffer};
    };
    if (uses[i].reads) memory.from = ref(value.front);
    if (uses[i].writes) memory.to = ref(value.back);
  }
  return turn;
}

void StateTurn::end_store(bool ok) noexcept {
  const auto store = std::exchange(store_, nullptr);
  store->exchange(ok);
  store->leave();
}

void StateTurn::submitted(std::shared_ptr<device::Completion> completion,
                          std::shared_ptr<OutputConversion> conversion) noexcept {
  const auto store = std::exchange(store_, nullptr);
  if (store == nullptr) return;
  store->pending_ = std::move(completion);
  store->pending_conversion_ = std::move(conversion);
  store->leave();
}

}  // namespace corelane::runtime
