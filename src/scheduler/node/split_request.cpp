#include "scheduler/node/split_request.h"

#include <cstring>
#include <utility>

#include "base/guard.h"
#include "scheduler/backends/tensor_values.h"

namespace corelane::scheduler {
namespace {

bool can_cut(const Tensor& tensor) {
  return tensor.shape.rank() > 0 && tensor.layout == Layout{} && tensor.shape.is_static() &&
         tensor.shape[0] > 0 && tensor.size != 0 && has_whole_rows(tensor.shape, tensor.dtype) &&
         tensor.size % static_cast<std::size_t>(tensor.shape[0]) == 0;
}

Result<Tensor> join(const std::vector<Tensors>& parts, std::size_t index) {
  const Tensor& first = parts[0][index];
  if (!can_cut(first))
    return error(Code::kBadResult, "a result of shape {} cannot be joined along dimension 0",
                 first.shape.to_string());
  Shape shape = first.shape;
  shape[0] = 0;
  for (const Tensors& part : parts) {
    Shape rest = part[index].shape;
    if (!can_cut(part[index]) || part[index].dtype != first.dtype || rest.rank() != shape.rank())
      return error(Code::kBadResult, "results of shapes {} and {} cannot be joined",
                   first.shape.to_string(), rest.to_string());
    shape[0] += std::exchange(rest[0], first.shape[0]);
    if (rest != first.shape)
      return error(Code::kBadResult, "results of parts differ in more than dimension 0: {} and {}",
                   first.shape.to_string(), part[index].shape.to_string());
  }
  CORELANE_ASSIGN(Tensor whole, Tensor::allocate(first.name, first.dtype, std::move(shape)));
  auto* at = static_cast<char*>(whole.data.get());
  for (const Tensors& part : parts) {
    std::memcpy(at, part[index].data.get(), part[index].size);
    at += part[index].size;
  }
  return whole;
}

}  // namespace

Status check_split(const Dict& values, std::uint32_t items) {
  const Tensors whole = tensors_of(values.at(kData));
  if (whole.empty())
    return error(Code::kOutOfRange,
                 "a request of {} items is more than one call takes, and its data is not a Tensor, "
                 "which could be split",
                 items)
        .with(Detail::kGiven, items);
  for (const Tensor& tensor : whole)
    if (!can_cut(tensor) || tensor.shape[0] != std::int64_t{items})
      return error(Code::kOutOfRange,
                   "a request of {} items has data of shape {}; to be split, dimension 0 must be "
                   "the number of items",
                   items, tensor.shape.to_string())
          .with(Detail::kGiven, items);
  return {};
}

Result<std::vector<Dict>> split_values(const Dict& values,
                                       const std::vector<std::uint32_t>& sizes) {
  const std::any& data = values.at(kData);
  const Tensors whole = tensors_of(data);
  if (whole.empty()) return error(Code::kInternal, "data that cannot be split");
  const bool one = std::any_cast<Tensor>(&data) != nullptr;
  std::vector<Dict> parts;
  std::size_t from = 0;
  for (const std::uint32_t size : sizes) {
    Dict part = values;
    Tensors cut;
    for (const Tensor& tensor : whole) cut.push_back(rows_of(tensor, from, size));
    part[kData] = value_of(std::move(cut), one);
    parts.push_back(std::move(part));
    from += size;
  }
  return parts;
}

Result<std::any> join_results(const std::vector<Dict>& parts) {
  std::vector<Tensors> results;
  for (const Dict& part : parts) {
    Tensors some = tensors_of(part.at(kResult));
    if (some.empty() || (!results.empty() && some.size() != results[0].size()))
      return error(Code::kBadResult,
                   "the backend's results are no Tensors, so that those of a split request cannot "
                   "be joined; submit at most max() items a request");
    results.push_back(std::move(some));
  }
  Tensors whole;
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    CORELANE_ASSIGN(Tensor joined, join(results, i));
    whole.push_back(std::move(joined));
  }
  const bool one = std::any_cast<Tensor>(&parts[0].at(kResult)) != nullptr;
  return value_of(std::move(whole), one);
}

namespace {

/// Of the first part that has no result, or all results joined.
SplitRequest::Answer answer_of(std::vector<SplitRequest::Answer>& all, Dict given) {
  for (SplitRequest::Answer& each : all)
    if (each.how != RequestState::kDone)
      return {each.how, each.why.wrap("a part of a split request"), std::move(given)};
  std::vector<Dict> parts;
  for (SplitRequest::Answer& each : all) parts.push_back(std::move(each.values));
  auto joined = no_throw("joining results", [&] { return join_results(parts); });
  if (!joined) return {RequestState::kFailed, joined.error(), std::move(given)};
  SplitRequest::Answer whole{RequestState::kDone, {}, std::move(parts.front())};
  whole.values[kData] = std::move(given[kData]);
  whole.values[kResult] = std::move(*joined);
  return whole;
}

}  // namespace

std::optional<SplitRequest::Answer> SplitRequest::ended(std::size_t part, std::uint64_t id,
                                                        RequestState how, Status why,
                                                        Dict values) noexcept {
  std::vector<Answer> all;
  {
    const MutexLock lock(mutex_);
    parts_[part] = {how, std::move(why), std::move(values), {id}};
    if (++done_ != parts_.size()) return std::nullopt;
    all = std::move(parts_);
  }
  Answer whole{RequestState::kFailed, {}, {}};
  whole.why = no_throw("joining the answers of parts", [&]() -> Status {
    whole = answer_of(all, std::move(whole_->values));
    return whole.why;
  });
  for (const Answer& each : all) whole.parts.push_back(each.parts.front());
  return whole;
}

}  // namespace corelane::scheduler
