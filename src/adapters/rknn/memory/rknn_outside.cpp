/// Memory of the caller for weights and activations: RKNN_FLAG_MEM_ALLOC_OUTSIDE and
/// RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE.
///
/// Weight memory holds the whole program, from where it is read in place. Activation memory is
/// checked and held; the device decides whether it computes there (the virtual NPU does not).
#include <algorithm>
#include <cstring>

#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {
namespace {
constexpr std::size_t kPage = 4096;
std::size_t pages(std::size_t bytes) {
  return std::max((bytes + kPage - 1) / kPage * kPage, kPage);
}
}  // namespace

/// What RKNN_QUERY_MEM_SIZE tells and memory from outside must have.
Result<std::size_t> ModelContext::outside_size(bool internal) {
  if (!internal) return pages(file_bytes_);
  {
    const std::lock_guard lock(state_);
    if (internal_bytes_ != 0) return internal_bytes_;
  }
  CORELANE_ASSIGN(const Context probe, program().new_context());
  const std::size_t bytes = pages(probe.memory().internal);
  const std::lock_guard lock(state_);
  internal_bytes_ = bytes;
  return bytes;
}

Outcome ModelContext::set_weight_mem(const rknn_tensor_mem* mem) {
  auto memory = find_memory(mem);
  if (!memory) return memory.error();
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if ((flags_ & RKNN_FLAG_MEM_ALLOC_OUTSIDE) == 0)
    return outcome(RKNN_ERR_FAIL,
                   "the context was made without RKNN_FLAG_MEM_ALLOC_OUTSIDE and has its weights; "
                   "pass the flag to rknn_init to bring the memory");
  if (pending_ == nullptr && weight_memory_ == nullptr)
    return outcome(RKNN_ERR_FAIL, "a duplicate shares the weights of its first context");
  const std::size_t needed = pages(file_bytes_);
  if ((*memory)->size < needed)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "weight memory has {} bytes, {} are needed: total_weight_size of "
                   "RKNN_QUERY_MEM_SIZE",
                   (*memory)->size, needed);
  (void)settle_all();
  const ByteSpan from =
      pending_ != nullptr
          ? ByteSpan(*pending_)
          : ByteSpan(static_cast<const std::byte*>(weight_memory_->data), file_bytes_);
  if (weight_memory_ != nullptr && weight_memory_->buffer == nullptr &&
      weight_memory_->destroyed.load(std::memory_order_acquire))
    return outcome(RKNN_ERR_FAIL,
                   "the weight memory before this was destroyed by rknn_destroy_mem and was the "
                   "caller's, so the program is gone; make another context");
  auto* const to = static_cast<std::byte*>((*memory)->data);
  if (to != from.data() && to < from.data() + from.size() && from.data() < to + from.size())
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "the new weight memory overlaps the old one, which is in use; give memory of "
                   "its own");
  if (to != from.data()) std::memcpy(to, from.data(), from.size());
  const ByteSpan bytes(static_cast<const std::byte*>((*memory)->data), from.size());
  auto program = load_program(load_options(), [&](const LoadOptions& options) {
    return Program::load(bytes, options, *memory);
  });
  if (!program) return program.error();
  if (Status status = adopt(*std::move(program)); !status.ok()) return status;
  weight_memory_ = *std::move(memory);
  pending_.reset();
  return rebind_all("rknn_set_weight_mem");
}

Outcome ModelContext::set_internal_mem(const rknn_tensor_mem* mem) {
  auto memory = find_memory(mem);
  if (!memory) return memory.error();
  const Order order(*this);
  if (!order.ok()) return order.refused();
  if ((flags_ & (RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)) == 0)
    return outcome(RKNN_ERR_FAIL,
                   "the context was made without RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE and has its "
                   "internal memory; pass the flag to rknn_init to bring it");
  auto needed = outside_size(true);
  if (!needed) return needed.error();
  if ((*memory)->size < *needed)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "internal memory has {} bytes, {} are needed: total_internal_size of "
                   "RKNN_QUERY_MEM_SIZE",
                   (*memory)->size, *needed);
  (void)settle_all();
  internal_memory_ = *std::move(memory);
  return {};
}

}  // namespace corelane::rknn
