#include "adapters/qaic/program/qaic_buffer_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "adapters/qaic/qpc/qaic_qpc.h"

namespace corelane::qaic {
namespace {

/// How many of the nearest specializations a message names.
constexpr std::size_t kNamed = 3;

/// FNV-1a, a number at a time.
constexpr std::uint64_t kHashBegin = 0xcbf29ce484222325;
std::uint64_t hash_more(std::uint64_t hash, std::span<const std::uint32_t> dims) noexcept {
  hash = (hash ^ dims.size()) * 0x100000001b3;
  for (const std::uint32_t d : dims) hash = (hash ^ d) * 0x100000001b3;
  return hash;
}

std::span<const std::uint32_t> numbers(const QBufferDimensions& dims) noexcept {
  return {dims.dims, dims.count};
}

std::string dims_text(std::span<const std::uint32_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace

BufferPlan::BufferPlan(std::shared_ptr<const QpcObject> qpc, std::size_t index)
    : qpc_(std::move(qpc)), program_(qpc_->program(index)) {
  for (std::size_t k = 0; k < specializations(); ++k) {
    std::uint64_t hash = kHashBegin;
    for (const IoMapping& mapping : program_.mappings) {
      const Dims& dims = mapping.shapes[k];
      Shape shape(std::vector<std::int64_t>(dims.begin(), dims.end()));
      const std::size_t bytes = shape.elements().value_or(0) * mapping.element_size;
      forms_.push_back({nullptr, bytes, mapping.dtype, std::move(shape), {}, {}});
      if (!mapping.partial) hash = hash_more(hash, dims);
    }
    by_dims_.emplace(hash, k);
  }
}

std::vector<Shape> BufferPlan::input_shapes(std::size_t specialization) const {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < program_.inputs; ++i) shapes.push_back(form(i, specialization).shape);
  return shapes;
}

/// A partial input may be shorter; a partial output, and state, is given whole, or left out.
bool BufferPlan::fits(std::size_t buffer, std::size_t specialization,
                      const QBuffer& given) const noexcept {
  const std::size_t bytes = form(buffer, specialization).size;
  if (given.size == bytes) return true;
  if (!mapping(buffer).partial) return false;
  if (given.size == 0) return true;
  return is_input(buffer) && !mapping(buffer).state && given.size < bytes;
}

Status BufferPlan::check_sizes(const QBuffer* buffers, std::size_t specialization) const {
  for (std::size_t i = 0; i < count(); ++i) {
    if (fits(i, specialization, buffers[i])) continue;
    const std::size_t bytes = form(i, specialization).size;
    const bool partial = mapping(i).partial;
    return error(Code::kInvalidArgument, "buffer {} ('{}') has {} bytes; {} bytes {} allowed{}", i,
                 mapping(i).name, buffers[i].size, bytes, bytes == 1 ? "is" : "are",
                 !partial                           ? ""
                 : is_input(i) && !mapping(i).state ? ", and less, as it is a partial one"
                                                    : ", or none");
  }
  return {};
}

Result<std::size_t> BufferPlan::choose_by_size(const QBuffer* buffers) const {
  std::size_t nearest = 0;
  std::size_t most = 0;
  for (std::size_t k = 0; k < specializations(); ++k) {
    std::size_t right = 0;
    for (std::size_t i = 0; i < count(); ++i) right += fits(i, k, buffers[i]) ? 1 : 0;
    if (right == count()) return k;
    if (right > most) {
      most = right;
      nearest = k;
    }
  }
  CORELANE_TRY(check_sizes(buffers, nearest)
                   .wrap(fmt::format("the sizes are those of none of the {} specializations",
                                     specializations())));
  return nearest;
}

Status BufferPlan::check_dims(const QBuffer& given, const QBufferDimensions& dims,
                              std::size_t buffer) const {
  const IoMapping& wanted = mapping(buffer);
  if (dims.dims == nullptr && dims.count != 0)
    return error(Code::kInvalidArgument, "the {} dimensions of buffer {} ('{}') are null",
                 dims.count, buffer, wanted.name);
  if (left_out(given, &dims)) {
    if (wanted.partial) return {};
    return error(Code::kInvalidArgument,
                 "buffer {} ('{}') was left out, and is no partial one; give it", buffer,
                 wanted.name);
  }
  if (dims.sizeOfElem == wanted.element_size) return {};
  return error(Code::kInvalidArgument,
               "the elements of buffer {} ('{}') are given with {} bytes; they have {}", buffer,
               wanted.name, dims.sizeOfElem, wanted.element_size);
}

bool BufferPlan::matches(const QBuffer* buffers, const QBufferDimensions* dims,
                         std::size_t specialization) const {
  for (std::size_t i = 0; i < count(); ++i)
    if (!left_out(buffers[i], &dims[i]) &&
        !std::ranges::equal(numbers(dims[i]), mapping(i).shapes[specialization]))
      return false;
  return true;
}

Result<std::size_t> BufferPlan::choose_by_dims(const QBuffer* buffers,
                                               const QBufferDimensions* dims) const {
  std::uint64_t hash = kHashBegin;
  for (std::size_t i = 0; i < count(); ++i) {
    CORELANE_TRY(check_dims(buffers[i], dims[i], i));
    if (!mapping(i).partial) hash = hash_more(hash, numbers(dims[i]));
  }
  std::size_t found = specializations();
  const auto range = by_dims_.equal_range(hash);
  for (auto at = range.first; at != range.second; ++at)
    if (at->second < found && matches(buffers, dims, at->second)) found = at->second;
  if (found == specializations()) return error(no_specialization(buffers, dims));
  for (std::size_t i = 0; i < count(); ++i) {
    // One that is left out by its dimensions may have a size.
    if (left_out(buffers[i], &dims[i]) || fits(i, found, buffers[i])) continue;
    CORELANE_TRY(check_sizes(buffers, found));
  }
  return found;
}

std::string BufferPlan::tuple_text(std::size_t specialization) const {
  std::string text;
  for (const IoMapping& mapping : program_.mappings)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mapping.name,
                        dims_text(mapping.shapes[specialization]));
  return "(" + text + ")";
}

/// The buffer that stands out is the first one that differs from the nearest specialization.
Status BufferPlan::no_specialization(const QBuffer* buffers, const QBufferDimensions* dims) const {
  std::vector<std::pair<std::size_t, std::size_t>> by_distance;
  for (std::size_t k = 0; k < specializations(); ++k) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count(); ++i)
      if (!left_out(buffers[i], &dims[i]) &&
          !std::ranges::equal(numbers(dims[i]), mapping(i).shapes[k]))
        ++wrong;
    by_distance.emplace_back(wrong, k);
  }
  std::ranges::sort(by_distance);
  const std::size_t nearest = by_distance.front().second;
  std::size_t odd = 0;
  while (odd + 1 < count() &&
         (left_out(buffers[odd], &dims[odd]) ||
          std::ranges::equal(numbers(dims[odd]), mapping(odd).shapes[nearest])))
    ++odd;
  std::string allowed;
  for (std::size_t i = 0; i < by_distance.size() && i < kNamed; ++i)
    allowed += (i == 0 ? "" : ", ") + tuple_text(by_distance[i].second);
  const std::string given = dims_text(numbers(dims[odd]));
  return error(
             Code::kShapeMismatch,
             "buffer {} ('{}') is given as {}; with the others' dimensions this is none of the {} "
             "specializations, of which the nearest are {}",
             odd, mapping(odd).name, given, specializations(), allowed)
      .with(is_input(odd) ? Detail::kInput : Detail::kOutput, mapping(odd).name)
      .with(Detail::kGiven, given)
      .with(Detail::kAllowed, allowed);
}

Result<std::size_t> BufferPlan::choose(const QBuffer* buffers,
                                       const QBufferDimensions* dims) const {
  if (dims != nullptr) return choose_by_dims(buffers, dims);
  if (specializations() > 1) return choose_by_size(buffers);
  CORELANE_TRY(check_sizes(buffers, 0));
  return 0;
}

}  // namespace corelane::qaic
