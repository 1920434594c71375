#include "session/tasks/batch_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "session/tasks/future_state.h"
#include "session/tasks/session_model.h"
#include "session/tasks/session_task.h"

namespace corelane::session {
namespace {

/// Parts of equal shape, one after the other along dimension 0.
Result<Tensor> concatenate(const BatchParts& parts, std::size_t output) {
  const Tensor& first = parts.front()[output];
  Shape shape = first.shape;
  // Scalars become a vector with an element for each sample.
  if (shape.rank() == 0) shape = Shape{1};
  std::int64_t rows = 0;
  for (const SureVector<Tensor>& part : parts) {
    const Shape& s = part[output].shape;
    const bool fits = s.rank() == first.shape.rank() &&
                      (s.rank() < 2 ||
                       std::equal(s.dims().begin() + 1, s.dims().end(), shape.dims().begin() + 1));
    if (!fits) {
      return error(Code::kShapeMismatch,
                   "output '{}' is {} for one sample and {} for another; run them one by one",
                   first.name, first.shape.to_string(), s.to_string());
    }
    rows += s.rank() == 0 ? 1 : s[0];
    if (parts.size() > 1) CORELANE_TRY(check_rows("output", first.name, s, first.dtype));
  }
  shape[0] = rows;
  CORELANE_ASSIGN(Tensor whole, Tensor::allocate(first.name, first.dtype, shape));
  whole.quant = first.quant;
  auto* to = static_cast<std::byte*>(whole.data.get());
  for (const SureVector<Tensor>& part : parts) {
    if (part[output].size > 0) std::memcpy(to, part[output].data.get(), part[output].size);
    to += part[output].size;
  }
  return whole;
}

}  // namespace

void BatchCall::add(const std::weak_ptr<SessionTask>& task) {
  const MutexLock lock(mutex_);
  ++added_;
  tasks_.push_back(task);
}

void BatchCall::remove_last() {
  const MutexLock lock(mutex_);
  --added_;
  tasks_.pop_back();
}

void BatchCall::accepted(const SessionTask& task) {
  if (task.draws_ticket) ticket = task.ticket;
  if (task.sample > 0) return;
  first_id = task.id;
  future->task_id.store(task.id, std::memory_order_relaxed);
}

/// Samples end in any order and in any thread; each has its own place in `parts_`.
bool BatchCall::complete(std::size_t sample, Call& call, const Status& status) noexcept {
  SureVector<Tensor> part;
  if (status.ok() && outputs.empty())
    for (CallOutput& output : call.outputs) part.push_back(std::move(output.tensor));
  const MutexLock lock(mutex_);
  // The first failure is reported; the samples after it still run.
  if (!status.ok() && failed_.ok())
    failed_ = status.wrap(text_or_none([&] { return fmt::format("sample {}", sample); }));
  if (parts_.size() < samples) parts_.resize(samples);
  // Empty for a sample that failed, and where the outputs were allocated whole.
  parts_[sample] = std::move(part);
  ++done_;
  // True once: for the sample that ends last. After end() no more than those that were added come.
  return done_ == (ended_ ? added_ : samples);
}

bool BatchCall::end(const Status& refused) {
  const MutexLock lock(mutex_);
  if (failed_.ok()) failed_ = refused;
  ended_ = true;
  return done_ == added_;
}

Result<Outputs> BatchCall::result() {
  BatchParts parts;
  {
    const MutexLock lock(mutex_);
    if (!failed_.ok()) return error(failed_);
    // Nobody else needs them: the copying needs no lock.
    parts.swap(parts_);
  }
  Outputs whole;
  if (outputs.empty()) {
    for (std::size_t i = 0; i < parts.front().size(); ++i) {
      CORELANE_ASSIGN(Tensor tensor, concatenate(parts, i));
      whole.push_back(std::move(tensor));
    }
  } else {
    for (const CallOutput& output : outputs) whole.push_back(output.tensor);
  }
  if (order.empty()) return whole;
  Outputs ordered;
  for (const std::size_t i : order) ordered.push_back(whole[i]);
  return ordered;
}

SureVector<std::weak_ptr<SessionTask>> BatchCall::tasks() const {
  const MutexLock lock(mutex_);
  return tasks_;
}

Status check_rows(std::string_view side, const std::string& name, const Shape& shape, DType dtype) {
  if (has_whole_rows(shape.rank() == 0 ? Shape{1} : shape, dtype)) return {};
  return error(Code::kUnsupported,
               "{} '{}': samples of {} {} do not take whole bytes; run them one by one", side, name,
               dtype_name(dtype), shape.to_string());
}

Result<std::size_t> count_samples(const SessionModel& model, const std::vector<CallInput>& inputs) {
  std::size_t samples = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = model.native_inputs()[i].name;
    const Shape& shape = inputs[i].view.shape;
    const Shape& declared = model.description().inputs[i].desc.shape;
    if (shape.rank() == 0 || declared.rank() == 0 ||
        (declared[0] != 1 && declared[0] != Shape::kOpen)) {
      return error(Code::kInvalidArgument,
                   "input '{}' is {}: only a model whose dimension 0 is 1 takes a batch sample by "
                   "sample",
                   name, declared.to_string());
    }
    const auto here = static_cast<std::size_t>(std::max<std::int64_t>(shape[0], 0));
    if (here == 0) {
      return error(Code::kInvalidArgument, "input '{}' holds no sample; a batch has at least one",
                   name);
    }
    if (i > 0 && here != samples) {
      return error(Code::kInvalidArgument, "input '{}' holds {} samples, the one before {}", name,
                   here, samples);
    }
    samples = here;
    if (samples == 1) continue;
    // As given, and as a copy of it would be.
    CORELANE_TRY(check_rows("input", name, shape, inputs[i].view.dtype));
    CORELANE_TRY(check_rows("input", name, shape, model.native_inputs()[i].dtype));
  }
  if (samples == 0) return error(Code::kInvalidArgument, "a model without inputs takes no batch");
  return samples;
}

std::vector<CallInput> sample_of(const std::vector<CallInput>& inputs, std::size_t k) {
  std::vector<CallInput> sample = inputs;
  for (CallInput& input : sample) {
    input.view.shape[0] = 1;
    // Dimension 0 is the outermost of every layout, so samples are equal slices.
    const std::size_t bytes =
        storage_bytes(input.view.shape, input.view.dtype, input.view.layout).value_or(0);
    input.view.data = static_cast<const std::byte*>(input.view.data) + k * bytes;
    // What follows the sample stays readable, as the view said.
    input.view.size -= std::min(input.view.size, k * bytes);
  }
  return sample;
}

}  // namespace corelane::session
