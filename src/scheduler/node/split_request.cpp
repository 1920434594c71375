#include "scheduler/node/split_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/guard.h"
#include "scheduler/backends/tensor_values.h"

namespace corelane::scheduler {
namespace {

/// Why a tensor cannot be cut into rows of dimension 0; empty where it can.
std::string why_whole(const Tensor& tensor) {
  if (tensor.shape.rank() == 0 || !tensor.shape.is_static() || tensor.shape[0] <= 0)
    return fmt::format("shape {} has no rows along dimension 0", tensor.shape.to_string());
  if (tensor.layout != Layout{}) return "its layout is not plain";
  if (!has_whole_rows(tensor.shape, tensor.dtype)) return "its rows do not take whole bytes";
  const auto bytes = storage_bytes(tensor.shape, tensor.dtype, {});
  if (!bytes) return bytes.error().message();
  if (*bytes == 0) return fmt::format("shape {} has no elements", tensor.shape.to_string());
  if (tensor.data == nullptr) return "it has no memory";
  if (tensor.size != *bytes)
    return fmt::format("it has {} bytes, and shape {} of {} takes {}", tensor.size,
                       tensor.shape.to_string(), dtype_name(tensor.dtype), *bytes);
  // Parameters along dimension 0 belong to rows of the whole.
  if (tensor.quant.per_channel() && tensor.quant.axis == 0)
    return "its quantization differs along dimension 0";
  return {};
}

Failure cannot_join(const std::string& why) {
  return error(Code::kBadResult,
               "the results of a split request cannot be joined: {}; submit at most the items of "
               "one call a request",
               why);
}

Result<Tensor> join(const std::vector<Tensors>& parts, std::size_t index) {
  const Tensor& first = parts[0][index];
  Shape shape = first.shape;
  std::int64_t items = 0;
  for (const Tensors& part : parts) {
    const Tensor& some = part[index];
    if (const std::string why = why_whole(some); !why.empty()) return cannot_join(why);
    Shape rest = some.shape;
    items += std::exchange(rest[0], first.shape[0]);
    if (rest != first.shape || some.dtype != first.dtype)
      return cannot_join(fmt::format("parts differ in more than dimension 0, {} of {} and {} of {}",
                                     first.shape.to_string(), dtype_name(first.dtype),
                                     some.shape.to_string(), dtype_name(some.dtype)));
    if (some.quant != first.quant)
      return cannot_join(fmt::format("parts differ in quantization, {} and {}",
                                     first.quant.to_string(), some.quant.to_string()));
  }
  shape[0] = items;
  CORELANE_ASSIGN(Tensor whole, Tensor::allocate(first.name, first.dtype, std::move(shape)));
  whole.quant = first.quant;
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
                 "which could be split; submit fewer items",
                 items)
        .with(Detail::kGiven, items);
  for (const Tensor& tensor : whole) {
    std::string why = why_whole(tensor);
    if (why.empty() && tensor.shape[0] != std::int64_t{items})
      why = fmt::format("shape {} has another dimension 0", tensor.shape.to_string());
    if (why.empty()) continue;
    return error(Code::kOutOfRange,
                 "a request of {} items is more than one call takes, and its data cannot be split: "
                 "{}; correct it, or submit fewer items",
                 items, why)
        .with(Detail::kGiven, items);
  }
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

Dict padding_of(const Dict& values, std::uint32_t items) {
  if (items > 1 && check_split(values, items).ok()) {
    const std::vector<std::uint32_t> one{1};
    if (auto rows = split_values(values, one)) return std::move(rows->front());
  }
  return values;
}

Status join_results(const std::vector<Dict>& parts, std::any& result) {
  std::vector<Tensors> results;
  for (const Dict& part : parts) {
    Tensors some = tensors_of(part.at(kResult));
    if (some.empty() || (!results.empty() && some.size() != results[0].size()))
      return error(Code::kBadResult,
                   "the backend's results are not Tensors, so that those of a split request cannot "
                   "be joined; submit at most max() items a request");
    results.push_back(std::move(some));
  }
  Tensors whole;
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    CORELANE_ASSIGN(Tensor joined, join(results, i));
    whole.push_back(std::move(joined));
  }
  const bool one = std::any_cast<Tensor>(&parts[0].at(kResult)) != nullptr;
  result = value_of(std::move(whole), one);
  return {};
}

namespace {

/// The answer of the first part that has no result, or all results joined.
SplitRequest::Answer answer_of(std::vector<SplitRequest::Answer>& all, Dict given) {
  const auto ran = [](const SplitRequest::Answer& each) {
    return each.how == RequestState::kDone || each.how == RequestState::kFailed;
  };
  const bool seen = std::ranges::any_of(all, ran);
  for (SplitRequest::Answer& each : all) {
    if (each.how == RequestState::kDone) continue;
    // Rejected is what no backend saw.
    if (each.how == RequestState::kRejected && seen)
      each.how = each.why.code() == Code::kTimeout ? RequestState::kExpired : RequestState::kFailed;
    return {each.how, each.why.wrap("a part of a split request"), std::move(given)};
  }
  std::vector<Dict> parts;
  for (SplitRequest::Answer& each : all) parts.push_back(std::move(each.values));
  std::any joined;
  Status wrong = no_throw("joining results", [&] { return join_results(parts, joined); });
  if (!wrong.ok()) return {RequestState::kFailed, std::move(wrong), std::move(given)};
  // Keys beside data and result are those of the first part, as its backend left them.
  SplitRequest::Answer whole{RequestState::kDone, {}, std::move(parts.front())};
  whole.values[kData] = std::move(given[kData]);
  whole.values[kResult] = std::move(joined);
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
    // All parts have ended, and nobody comes again: the results are joined without the lock.
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
