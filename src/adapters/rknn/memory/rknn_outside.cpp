#include "adapters/rknn/memory/rknn_outside.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/rknn/checks/rknn_dump.h"
#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {

/// In the order in which a program has to make up for what is missing.
Status OutsideMemory::ready(std::uint32_t flags) const {
  if (pending != nullptr)
    return error(Code::kWrongState,
                 "the context was made with RKNN_FLAG_MEM_ALLOC_OUTSIDE and has no weights yet; "
                 "call rknn_set_weight_mem first");
  if ((flags & (RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)) != 0 &&
      internal == nullptr)
    return error(Code::kWrongState,
                 "internal memory comes from the caller by the flags of rknn_init and is not "
                 "there yet; call rknn_set_internal_mem first");
  return check_use(flags);
}

Status OutsideMemory::check_use(std::uint32_t flags) {
  if ((flags & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) != 0)
    return error(Code::kWrongState,
                 "the context was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and answers "
                 "RKNN_QUERY_MEM_SIZE only; make another one to run");
  return {};
}

/// From `pending` at the first call, later from the weight memory of the call before, which may be
/// the same memory again.
Status OutsideMemory::copy_program(Memory& to, std::size_t bytes) const {
  if (weights != nullptr && weights->buffer == nullptr &&
      weights->destroyed.load(std::memory_order_acquire))
    return error(Code::kWrongState,
                 "the weight memory before this was destroyed by rknn_destroy_mem and was the "
                 "caller's, so the program is gone; make another context");
  const auto* const from =
      pending != nullptr ? pending->data() : static_cast<const std::byte*>(weights->data);
  auto* const begin = static_cast<std::byte*>(to.data);
  if (begin == from) return {};
  if (begin < from + bytes && from < begin + bytes)
    return error(Code::kOutOfRange,
                 "the new weight memory overlaps the old one, which is in use; give memory of "
                 "its own");
  std::memcpy(begin, from, bytes);
  return {};
}

namespace {

/// The inputs that rknn_inputs_set has brought lie in the earlier contexts.
void keep_inputs(std::vector<Frame>& before, std::vector<Frame>& now) {
  for (std::size_t f = 0; f < std::min(before.size(), now.size()); ++f) {
    now[f].input_age = before[f].input_age;
    for (std::size_t i = 0; i < before[f].context.inputs().size(); ++i) {
      const auto from = before[f].context.input(i);
      const auto to = now[f].context.input(i);
      // One whose shape is not chosen yet has no memory.
      if (from && to) std::memcpy(to->data, from->data, std::min(from->size, to->size));
    }
  }
}

}  // namespace

/// The program is loaded anew from its new place, so that the old memory is free afterwards.
Outcome ModelContext::set_weight_mem(const rknn_tensor_mem* mem) {
  CORELANE_ASSIGN(const std::shared_ptr<Memory> memory, find_memory(mem));
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  if (!facts_.has(RKNN_FLAG_MEM_ALLOC_OUTSIDE))
    return outcome(RKNN_ERR_FAIL,
                   "the context was made without RKNN_FLAG_MEM_ALLOC_OUTSIDE and has its weights; "
                   "pass the flag to rknn_init to bring the memory");
  OutsideMemory& outside = runs_.outside();
  if (outside.pending == nullptr && outside.weights == nullptr)
    return outcome(RKNN_ERR_FAIL, "a duplicate shares the weights of its first context");
  CORELANE_ASSIGN(const std::size_t needed, queries_.outside_size(false));
  if (memory->size < needed)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "weight memory has {} bytes, {} are needed: total_weight_size of "
                   "RKNN_QUERY_MEM_SIZE",
                   memory->size, needed);
  (void)runs_.complete_all();
  CORELANE_TRY(outside.copy_program(*memory, facts_.program_bytes));
  const ByteSpan bytes(static_cast<const std::byte*>(memory->data), facts_.program_bytes);
  CORELANE_ASSIGN(Program program, load_dumped(load_options(), [&](const LoadOptions& options) {
                    return Program::load(bytes, options, memory);
                  }));
  // Chosen before: a new program begins with its first ones.
  std::vector<Shape> shapes;
  for (const TensorDesc& desc : runs_.frames().front().context.inputs())
    shapes.push_back(desc.shape);
  std::vector<Frame> before = std::exchange(runs_.frames(), {});
  if (const Status adopted = adopt(std::move(program)); !adopted.ok()) {
    runs_.frames() = std::move(before);
    return adopted;
  }
  CORELANE_TRY(runs_.keep_shapes(shapes));
  keep_inputs(before, runs_.frames());
  outside.weights = memory;
  outside.pending.reset();
  return runs_.io_memory().rebind_all(runs_.frames(), "rknn_set_weight_mem");
}

/// Checked and held; rknn_outside.h says who computes there.
Outcome ModelContext::set_internal_mem(const rknn_tensor_mem* mem) {
  CORELANE_ASSIGN(std::shared_ptr<Memory> memory, find_memory(mem));
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  if (!facts_.has(RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE))
    return outcome(RKNN_ERR_FAIL,
                   "the context was made without RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE and has its "
                   "internal memory; pass the flag to rknn_init to bring it");
  CORELANE_ASSIGN(const std::size_t needed, queries_.outside_size(true));
  if (memory->size < needed)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "internal memory has {} bytes, {} are needed: total_internal_size of "
                   "RKNN_QUERY_MEM_SIZE",
                   memory->size, needed);
  (void)runs_.complete_all();
  runs_.outside().internal = std::move(memory);
  return {};
}

}  // namespace corelane::rknn
