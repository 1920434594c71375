#include "lanes/laned_bindings.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/guard.h"
#include "base/process/process_end.h"
#include "lanes/laned_executable.h"
#include "lanes/resources/memory_ledger.h"

namespace corelane::lanes {
namespace {

/// Bytes; a cache line, and the widest vector of the engines.
constexpr std::size_t kAlignment = 64;

/// More than any memory has when the product overflows.
std::size_t bytes_of(const TensorDesc& desc, const Shape& shape) {
  return storage_bytes(shape, desc.dtype, {}).value_or(std::numeric_limits<std::size_t>::max());
}

Status in_use() {
  return error(Code::kBusy,
               "the bindings are in use by a job; wait until its completion is released");
}

}  // namespace

LanedBindings::LanedBindings(std::shared_ptr<LanedExecutable> executable)
    : executable_(std::move(executable)), kept_(executable_->program()) {
  for (const TensorDesc& desc : executable_->inputs()) {
    const bool kept = kept_.keeps(inputs_.size());
    Tensor& tensor = inputs_.emplace_back();
    tensor.desc = &desc;
    tensor.kept = kept;
  }
  for (const TensorDesc& desc : executable_->outputs()) {
    outputs_.emplace_back().desc = &desc;
    open_outputs_ = open_outputs_ || !desc.shape.is_static();
  }
  executable_->live_bindings().fetch_add(1, std::memory_order_relaxed);
}

LanedBindings::~LanedBindings() {
  executable_->buffer_bytes.fetch_sub(held_, std::memory_order_relaxed);
  executable_->ledger().give_back(held_);
  // The requests may hold memory of the driver, and are the engine's.
  const EngineVisit visit;
  for (const auto& slot : slots_)
    if (!visit) never_destroy(std::shared_ptr<const device::LaneRequest>(std::move(slot->request)));
  slots_.clear();
  static_cast<void>(executable_->recount());
  executable_->live_bindings().fetch_sub(1, std::memory_order_relaxed);
}

Status LanedBindings::set_input(std::size_t index, const device::TensorRef& tensor) {
  return set_tensor(inputs_, index, tensor);
}

Status LanedBindings::set_output(std::size_t index, const device::TensorRef& tensor) {
  return set_tensor(outputs_, index, tensor);
}

Status LanedBindings::check(const std::vector<Tensor>& tensors, std::size_t index) const {
  if (busy_.load(std::memory_order_acquire)) return in_use();
  if (index < tensors.size()) return {};
  return error(Code::kOutOfRange, "{} {} does not exist; the executable has {}",
               &tensors == &inputs_ ? "input" : "output", index, tensors.size());
}

Status LanedBindings::set_tensor(std::vector<Tensor>& tensors, std::size_t index,
                                 const device::TensorRef& tensor) {
  CORELANE_TRY(check(tensors, index));
  // A tensor without elements needs no memory: an empty container has none.
  if (tensor.data == nullptr && tensor.shape.elements().value_or(1) == 0) {
    alignas(64) static std::byte nothing[64];
    device::TensorRef empty = tensor;
    empty.data = nothing;
    return set_tensor(tensors, index, empty);
  }
  const char* const what = &tensors == &inputs_ ? "input" : "output";
  Tensor& mine = tensors[index];
  const TensorDesc& desc = *mine.desc;
  const bool bind = tensor.data != nullptr;
  if (bind) {
    // The caller cannot know the shape of an open output, and may leave it out.
    const bool open_output =
        &tensors == &outputs_ && !desc.shape.is_static() && tensor.shape.rank() == 0;
    if (!open_output && !desc.shape.accepts(tensor.shape))
      return error(Code::kShapeMismatch, "{} '{}' was given shape {}; declared is {}", what,
                   desc.name, tensor.shape.to_string(), desc.shape.to_string());
    const std::size_t needed = open_output ? 0 : bytes_of(desc, tensor.shape);
    if (tensor.size < needed)
      return error(Code::kInvalidArgument, "{} '{}' was given {} bytes; shape {} of {} needs {}",
                   what, desc.name, tensor.size, tensor.shape.to_string(), dtype_name(desc.dtype),
                   needed);
    // The same memory again: requests keep what they have. An input that the program keeps has new
    // content.
    if (!mine.kept && mine.user && mine.bound.data == tensor.data &&
        mine.bound.size == tensor.size && mine.bound.keep_alive == tensor.keep_alive &&
        mine.bound.shape == tensor.shape)
      return {};
  }
  device::TensorRef bound = bind ? tensor : device::TensorRef{};
  if (!bind && mine.own != nullptr) bound = {mine.own.get(), mine.own_size, desc.shape, mine.own};
  CORELANE_TRY(set_kept(mine, bound));
  mine.user = bind;
  mine.bound = std::move(bound);
  mine.has_result = false;
  ++mine.version;
  ++changes_;
  complete_ = false;
  return {};
}

/// Before `ref` is bound to a tensor; nothing to do unless it is an input that the program keeps.
Status LanedBindings::set_kept(const Tensor& tensor, const device::TensorRef& ref) {
  if (!tensor.kept) return {};
  CORELANE_TRY(drop_from_requests(index_of(tensor)));
  return kept_.set(index_of(tensor), ref);
}

/// No request holds the input's memory, nor a form of it, until the next run on its cores.
Status LanedBindings::drop_from_requests(std::size_t input) {
  // Each request that has it, also those of cores where it does not run now.
  for (const auto& slot : slots_) {
    if (slot->lost) continue;
    slot->stamp = 0;
    if (std::exchange(slot->inputs[input], 0) != 0)
      CORELANE_TRY(slot->request->set_input(input, {}));
  }
  return {};
}

Status LanedBindings::allocate(std::shared_ptr<std::byte>& memory, std::size_t& held,
                               std::size_t size, const TensorDesc& desc) {
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + kAlignment - 1) & ~(kAlignment - 1);
  MemoryLedger& ledger = executable_->ledger();
  if (ledger.limited() && size > held)
    CORELANE_TRY(ledger.take(size - held, fmt::format("tensor '{}'", desc.name)));
  // The rounding may have wrapped.
  void* block = rounded < size ? nullptr : std::aligned_alloc(kAlignment, rounded);
  if (block == nullptr) {
    if (size > held) ledger.give_back(size - held);
    return error(Code::kOutOfMemory, "no memory for tensor '{}' of {} bytes", desc.name, size);
  }
  if (size < held) ledger.give_back(held - size);
  // A user reads nothing of another's memory, and a run without inputs set is the same each time.
  std::memset(block, 0, rounded);
  memory = {static_cast<std::byte*>(block), [](std::byte* p) { std::free(p); }};
  executable_->buffer_bytes.fetch_add(size - held, std::memory_order_relaxed);
  held_ += size - held;
  held = size;
  return {};
}

Status LanedBindings::ensure_own(Tensor& tensor) {
  if (tensor.bound.data != nullptr) return {};
  const TensorDesc& desc = *tensor.desc;
  if (tensor.own == nullptr)
    CORELANE_TRY(allocate(tensor.own, tensor.own_size, bytes_of(desc, desc.shape), desc));
  device::TensorRef bound{tensor.own.get(), tensor.own_size, desc.shape, tensor.own};
  CORELANE_TRY(set_kept(tensor, bound));
  tensor.bound = std::move(bound);
  ++tensor.version;
  ++changes_;
  return {};
}

Status LanedBindings::ensure_input(Tensor& tensor) {
  const TensorDesc& desc = *tensor.desc;
  if (tensor.bound.data == nullptr && !desc.shape.is_static())
    return error(Code::kWrongState,
                 "input '{}' has the open shape {} and no memory; bind memory with set_input",
                 desc.name, desc.shape.to_string());
  return ensure_own(tensor);
}

Result<device::TensorRef> LanedBindings::input(std::size_t index) {
  CORELANE_TRY(check(inputs_, index));
  CORELANE_TRY(ensure_input(inputs_[index]));
  return inputs_[index].bound;
}

Result<device::TensorRef> LanedBindings::output(std::size_t index) {
  CORELANE_TRY(check(outputs_, index));
  Tensor& mine = outputs_[index];
  const TensorDesc& desc = *mine.desc;
  if (mine.has_result) {
    CORELANE_ASSIGN(device::TensorRef result, last_->request->output(index));
    const bool fits = desc.any_rank || desc.shape.accepts(result.shape);
    if (!fits || result.size < bytes_of(desc, result.shape))
      return error(Code::kBadResult,
                   "output '{}' came back as {} in {} bytes; declared is {} of {}", desc.name,
                   result.shape.to_string(), result.size, desc.shape.to_string(),
                   dtype_name(desc.dtype));
    // The engine may have written to the shadow; the result lies in the user's memory.
    if (mine.user) {
      result.data = mine.bound.data;
      result.keep_alive = mine.bound.keep_alive;
    }
    return result;
  }
  if (mine.bound.data == nullptr && !desc.shape.is_static())
    return error(Code::kWrongState,
                 "output '{}' has the open shape {} and no result yet; run a job first", desc.name,
                 desc.shape.to_string());
  CORELANE_TRY(ensure_own(mine));
  return mine.bound;
}

Result<std::vector<device::LayerTime>> LanedBindings::layer_times() const {
  if (!executable_->profiled())
    return error(Code::kUnsupported,
                 "layer times were not measured; prepare with PrepareOptions::profile_layers");
  if (busy_.load(std::memory_order_acquire)) return error(in_use());
  if (last_ == nullptr)
    return error(Code::kWrongState, "there are no layer times before the first job");
  return last_->request->layer_times();
}

Status LanedBindings::make_complete() {
  // No call is in a lost request any more: the job that lost it is over.
  if (last_ != nullptr && last_->lost) last_ = nullptr;
  std::erase_if(slots_, [](const auto& slot) { return slot->lost; });
  for (Tensor& tensor : inputs_) CORELANE_TRY(ensure_input(tensor));
  for (Tensor& tensor : outputs_)
    if (tensor.desc->shape.is_static()) CORELANE_TRY(ensure_own(tensor));
  count_bytes();
  complete_ = true;
  return {};
}

void LanedBindings::count_bytes() {
  bytes_in_ = 0;
  bytes_out_ = 0;
  for (const Tensor& tensor : inputs_) bytes_in_ += bytes_of(*tensor.desc, tensor.bound.shape);
  for (const Tensor& tensor : outputs_)
    if (tensor.bound.data != nullptr)
      bytes_out_ += std::min(tensor.bound.size, bytes_of(*tensor.desc, tensor.bound.shape));
}

Status LanedBindings::ensure_shadow(Tensor& tensor, std::size_t size) {
  const bool has_content = !tensor.kept || kept_.has_shadow(index_of(tensor));
  if (tensor.shadow != nullptr && tensor.shadow_size == size && has_content) return {};
  // The engine may still have the tensor of the old block.
  ++tensor.version;
  ++changes_;
  if (tensor.kept) {
    CORELANE_TRY(drop_from_requests(index_of(tensor)));
    CORELANE_TRY(kept_.set_shadow(index_of(tensor), {}));
  }
  CORELANE_TRY(allocate(tensor.shadow, tensor.shadow_size, size, *tensor.desc));
  if (!tensor.kept) return {};
  return kept_.set_shadow(index_of(tensor),
                          {tensor.shadow.get(), size, tensor.bound.shape, tensor.shadow});
}

Result<bool> LanedBindings::make_shadows() {
  bool any = false;
  for (Tensor& tensor : inputs_) {
    if (!tensor.shadowable()) continue;
    CORELANE_TRY(ensure_shadow(tensor, bytes_of(*tensor.desc, tensor.bound.shape)));
    any = true;
  }
  for (Tensor& tensor : outputs_) {
    if (!tensor.shadowable()) continue;
    CORELANE_TRY(ensure_shadow(tensor, tensor.bound.size));
    any = true;
  }
  return any;
}

void LanedBindings::copy_in() noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& tensor = inputs_[i];
    if (!tensor.shadowable() || tensor.shadow_size == 0) continue;
    if (tensor.kept && !kept_.begin_copy(i)) continue;
    std::memcpy(tensor.shadow.get(), tensor.bound.data, tensor.shadow_size);
    if (tensor.kept) kept_.end_copy(i);
  }
}

Status LanedBindings::copy_out() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Tensor& tensor = outputs_[i];
    if (!tensor.shadowable()) continue;
    CORELANE_ASSIGN(const device::TensorRef result, last_->request->output(i));
    // A driver from outside may say more than it had room for.
    if (result.size > tensor.bound.size)
      return error(Code::kShapeMismatch, "output '{}' has {} bytes; the memory bound to it {}",
                   executable_->outputs()[i].name, result.size, tensor.bound.size);
    if (result.size != 0) std::memcpy(tensor.bound.data, result.data, result.size);
  }
  return {};
}

/// The request for these cores, with all tensors bound.
Result<LanedBindings::Slot*> LanedBindings::slot_for(std::uint64_t core_bits, bool shadow) {
  Slot* slot = core_bits == last_core_bits_ ? last_ : nullptr;
  if (slot == nullptr) {
    const auto width = static_cast<std::size_t>(std::popcount(core_bits));
    // Requests of shared constants run on any core: one for each width is enough.
    const bool per_core = width == 1 && executable_->placement() == device::Placement::kReplicated;
    const auto core = per_core ? static_cast<std::size_t>(std::countr_zero(core_bits)) : 0;
    for (const auto& other : slots_)
      if (other->width == width && other->core == core && !other->lost) slot = other.get();
    if (slot == nullptr) {
      CORELANE_ASSIGN(auto request, executable_->program().new_request(width, core));
      if (request == nullptr)
        return error(Code::kEngineFailed,
                     "the driver says that it made a request of {} cores and gave none; install "
                     "another version of the driver",
                     width);
      if (Status status = executable_->recount(); !status.ok()) {
        request.reset();
        static_cast<void>(executable_->recount());
        return error(std::move(status));
      }
      auto made = std::make_unique<Slot>();
      made->width = width;
      made->core = core;
      made->inputs.resize(inputs_.size());
      made->outputs.resize(outputs_.size());
      made->request = std::move(request);
      slot = slots_.emplace_back(std::move(made)).get();
    }
  }
  if (slot->stamp != stamp_of(shadow)) {
    slot->stamp = 0;
    CORELANE_TRY(apply(*slot, shadow));
    slot->stamp = stamp_of(shadow);
  }
  if (slot->batch != batch_) {
    slot->request->set_batch(batch_);
    slot->batch = batch_;
  }
  if (slot->cores != cores_) {
    slot->request->set_cores(cores_);
    slot->cores = cores_;
  }
  return slot;
}

Status LanedBindings::apply(Slot& slot, bool shadow) {
  const auto bind = [&](std::vector<Tensor>& tensors, std::vector<std::uint64_t>& applied,
                        auto set) -> Status {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Tensor& tensor = tensors[i];
      const bool stand_in = shadow && tensor.shadowable();
      const std::uint64_t tag = tensor.version << 1 | static_cast<std::uint64_t>(stand_in);
      if (applied[i] == tag) continue;
      // An output that never had memory stays with the engine.
      if (tensor.bound.data == nullptr && applied[i] == 0) continue;
      // Until it is set the request has neither: a failure must not leave the old tag.
      applied[i] = 0;
      CORELANE_TRY(set(i, stand_in ? device::TensorRef{tensor.shadow.get(), tensor.shadow_size,
                                                       tensor.bound.shape, tensor.shadow}
                                   : tensor.bound));
      applied[i] = tag;
    }
    return {};
  };
  CORELANE_TRY(bind(inputs_, slot.inputs, [&](std::size_t i, const device::TensorRef& ref) {
    return slot.request->set_input(i, ref);
  }));
  return bind(outputs_, slot.outputs, [&](std::size_t i, const device::TensorRef& ref) {
    return slot.request->set_output(i, ref);
  });
}

/// True when the engine lost the request.
inline bool LanedBindings::ran(Slot& slot, std::uint64_t core_bits, const Status& status) noexcept {
  last_ = &slot;
  last_core_bits_ = core_bits;
  kept_.ran();
  const bool ok = status.ok();
  for (Tensor& tensor : outputs_) tensor.has_result = ok;
  if (!ok && slot.request->lost()) {
    slot.lost = true;
    // The next job looks for a request, and finds none that is lost.
    last_core_bits_ = 0;
    complete_ = false;
  }
  // Static outputs were counted when they were bound.
  if (ok && open_outputs_) {
    bytes_out_ = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto result =
          no_throw("the size of an output", [&] { return slot.request->output(i); });
      if (result) bytes_out_ += result->size;
    }
  }
  return slot.lost;
}

/// Asked twice: memory is not set in vain where an engine's call is no brief one.
bool LanedBindings::is_brief() noexcept {
  if (last_ == nullptr || last_core_bits_ == 0 || !last_->request->is_brief()) return false;
  const auto slot = no_throw("setting tensors", [&] { return slot_for(last_core_bits_, false); });
  return slot && (*slot)->request->is_brief();
}

Outcome LanedBindings::run(std::uint64_t core_bits, bool shadow) noexcept {
  bool lost = false;
  const auto run_slot = [&]() -> Status {
    // Mostly a job runs where the last one ran, with nothing bound anew.
    Slot* slot = core_bits == last_core_bits_ ? last_ : nullptr;
    if (slot == nullptr || !is_ready(*slot, shadow)) {
      auto other = slot_for(core_bits, shadow);
      if (!other) return error(std::move(other).error());
      slot = *other;
    }
    running_.store(slot->request.get(), std::memory_order_release);
    Status status = no_throw(
        "the engine", [&] { return slot->request->run(core_bits); }, Code::kEngineFailed);
    lost = ran(*slot, core_bits, status);
    return status;
  };
  // Engines may throw, and so may what is made for them: a lane must go on.
  Status status = no_throw("a run", run_slot);
  running_.store(nullptr, std::memory_order_release);
  return {std::move(status), lost, lost};
}

Status LanedBindings::start(std::uint64_t core_bits, TimePoint ready, bool shadow,
                            std::function<void(Outcome)> done) {
  CORELANE_ASSIGN(Slot* const slot, slot_for(core_bits, shadow));
  slot->request->start(core_bits, ready,
                       [this, slot, core_bits, done = std::move(done)](Status status) {
                         const bool lost = ran(*slot, core_bits, status);
                         done({std::move(status), lost, lost, slot->request->span()});
                       });
  return {};
}

}  // namespace corelane::lanes
