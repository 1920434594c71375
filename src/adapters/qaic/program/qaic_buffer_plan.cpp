#include "adapters/qaic/program/qaic_buffer_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
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

std::uint64_t hash_more(std::uint64_t hash, std::size_t bytes) noexcept {
  return (hash ^ bytes) * 0x100000001b3;
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
    std::uint64_t sizes = kHashBegin;
    for (const IoMapping& mapping : program_.mappings) {
      const Dims& dims = mapping.shapes[k];
      Shape shape(std::vector<std::int64_t>(dims.begin(), dims.end()));
      // It does not overflow: map_program() takes nothing of 4 GiB or more.
      const std::size_t bytes = shape.elements().value_or(0) * mapping.element_size;
      forms_.push_back({nullptr, bytes, mapping.dtype, std::move(shape), {}, {}});
      if (mapping.partial) continue;
      hash = hash_more(hash, dims);
      sizes = hash_more(sizes, bytes);
    }
    by_dims_.emplace(hash, k);
    by_size_.emplace(sizes, k);
    std::vector<Shape>& shapes = input_shapes_.emplace_back();
    for (std::size_t i = 0; i < program_.inputs; ++i) shapes.push_back(form(i, k).shape);
  }
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

Status BufferPlan::check_size(const QBuffer& given, std::size_t i,
                              std::size_t specialization) const {
  if (fits(i, specialization, given)) return {};
  const std::size_t bytes = form(i, specialization).size;
  const bool partial = mapping(i).partial;
  return error(Code::kInvalidArgument, "buffer {} ('{}') {}; {} bytes {} allowed{}", i,
               mapping(i).name,
               given.size == 0 && given.buf == nullptr && given.type != QBUFFER_TYPE_DMABUF
                   ? std::string("was never set, or without memory")
                   : fmt::format("has {} bytes", given.size),
               bytes, bytes == 1 ? "is" : "are",
               !partial                           ? ""
               : is_input(i) && !mapping(i).state ? ", and less, as it is a partial one"
                                                  : ", or none");
}

Status BufferPlan::check_sizes(const QBuffer* buffers, std::size_t specialization) const {
  for (std::size_t i = 0; i < count(); ++i) CORELANE_TRY(check_size(buffers[i], i, specialization));
  return {};
}

Box BufferPlan::box_of(std::size_t buffer, std::size_t specialization,
                       const SlicePart& part) const {
  const Shape& whole = form(buffer, specialization).shape;
  Box box{whole, part.start, part.extent.value_or(whole), mapping(buffer).element_size};
  for (std::size_t d = 0; d < whole.rank() && d < part.start.size() && !part.extent; ++d)
    if (part.start[d] >= 0 && part.start[d] <= whole[d]) box.extent[d] = whole[d] - part.start[d];
  return box;
}

std::vector<bool> BufferPlan::missing(const QBuffer* buffers, const SliceParts& parts) const {
  std::vector<bool> missing(count());
  for (std::size_t i = 0; i < count(); ++i)
    missing[i] =
        parts[i] == nullptr && buffers[i].size == 0 && !mapping(i).partial && mapping(i).bytes != 0;
  return missing;
}

Status BufferPlan::check_parts(const QBuffer* buffers, const SliceParts& parts,
                               const std::vector<bool>& missing, std::size_t specialization) const {
  for (std::size_t i = 0; i < count(); ++i) {
    if (missing[i]) continue;
    if (parts[i] == nullptr) {
      CORELANE_TRY(check_size(buffers[i], i, specialization));
      continue;
    }
    const Box box = box_of(i, specialization, *parts[i]);
    if (const Status inside = box.check(); !inside.ok())
      return inside.wrap(fmt::format("a slice of buffer {} ('{}')", i, mapping(i).name));
    if (box.bytes() != buffers[i].size)
      return error(
          Code::kInvalidArgument, "a slice {} of buffer {} ('{}') has {} bytes, {} are given{}",
          box.extent.to_string(), i, mapping(i).name, box.bytes(), buffers[i].size,
          parts[i]->extent ? "" : "; without dimensions it goes to the end of each of them");
  }
  return {};
}

Result<std::size_t> BufferPlan::choose_parts(const QBuffer* buffers, const SliceParts& parts,
                                             const std::vector<bool>& missing,
                                             std::size_t now) const {
  Status why = check_parts(buffers, parts, missing, now);
  if (why.ok()) return now;
  for (std::size_t k = 0; k < specializations(); ++k)
    if (k != now && check_parts(buffers, parts, missing, k).ok()) return k;
  if (specializations() == 1) return error(std::move(why));
  return error(why.wrap(fmt::format("none of the {} specializations takes these buffers; of {}",
                                    specializations(), tuple_text(now))));
}

Result<std::size_t> BufferPlan::choose_by_size(const QBuffer* buffers) const {
  std::uint64_t hash = kHashBegin;
  for (std::size_t i = 0; i < count(); ++i)
    if (!mapping(i).partial) hash = hash_more(hash, buffers[i].size);
  std::size_t found = specializations();
  const auto range = by_size_.equal_range(hash);
  for (auto at = range.first; at != range.second; ++at) {
    // Hashes may collide, so that each is compared. Of several the first counts, in whatever order
    // the table has them.
    bool right = at->second < found;
    for (std::size_t i = 0; i < count() && right; ++i) right = fits(i, at->second, buffers[i]);
    if (right) found = at->second;
  }
  if (found < specializations()) return found;
  // None: the message is about the one that most of them are of.
  std::size_t nearest = 0;
  std::size_t most = 0;
  for (std::size_t k = 0; k < specializations(); ++k) {
    std::size_t right = 0;
    for (std::size_t i = 0; i < count(); ++i) right += fits(i, k, buffers[i]) ? 1 : 0;
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
                 "buffer {} ('{}') was left out, but does not allow partial data; give it", buffer,
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

Result<std::size_t> BufferPlan::find_by_dims(const QBuffer* buffers,
                                             const QBufferDimensions* dims) const {
  std::uint64_t hash = kHashBegin;
  for (std::size_t i = 0; i < count(); ++i) {
    CORELANE_TRY(check_dims(buffers[i], dims[i], i));
    // Partial ones may be left out, so that the hash does without them; matches() looks at those
    // given.
    if (!mapping(i).partial) hash = hash_more(hash, numbers(dims[i]));
  }
  std::size_t found = specializations();
  const auto range = by_dims_.equal_range(hash);
  for (auto at = range.first; at != range.second; ++at)
    if (at->second < found && matches(buffers, dims, at->second)) found = at->second;
  return found;
}

Result<std::size_t> BufferPlan::choose_by_dims(const QBuffer* buffers,
                                               const QBufferDimensions* dims) const {
  CORELANE_ASSIGN(const std::size_t found, find_by_dims(buffers, dims));
  if (found == specializations()) return error(no_specialization(buffers, dims));
  return check_found(buffers, dims, found);
}

Result<std::size_t> BufferPlan::check_found(const QBuffer* buffers, const QBufferDimensions* dims,
                                            std::size_t found) const {
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

namespace {

/// How far apart two lists of dimensions are: the sum of their differences. Lists of other ranks
/// are further apart than any of one.
std::uint64_t distance_of(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  if (a.size() != b.size()) return std::uint64_t{1} << 56;
  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] < b[d] ? b[d] - a[d] : a[d] - b[d];
  return sum;
}

}  // namespace

/// Nearest: the fewest buffers that differ, of those the smallest sum of differences of their
/// dimensions. The buffer that stands out is the first one that differs from the nearest.
Status BufferPlan::no_specialization(const QBuffer* buffers, const QBufferDimensions* dims) const {
  std::vector<std::tuple<std::size_t, std::uint64_t, std::size_t>> by_distance;
  for (std::size_t k = 0; k < specializations(); ++k) {
    std::size_t wrong = 0;
    std::uint64_t distance = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      if (left_out(buffers[i], &dims[i])) continue;
      const std::uint64_t apart = distance_of(numbers(dims[i]), mapping(i).shapes[k]);
      distance += apart;
      wrong += apart != 0 ? 1 : 0;
    }
    by_distance.emplace_back(wrong, distance, k);
  }
  std::ranges::sort(by_distance);
  const std::size_t nearest = std::get<2>(by_distance.front());
  std::size_t odd = 0;
  while (odd + 1 < count() &&
         (left_out(buffers[odd], &dims[odd]) ||
          std::ranges::equal(numbers(dims[odd]), mapping(odd).shapes[nearest])))
    ++odd;
  std::string allowed;
  for (std::size_t i = 0; i < by_distance.size() && i < kNamed; ++i)
    allowed += (i == 0 ? "" : ", ") + tuple_text(std::get<2>(by_distance[i]));
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

bool BufferPlan::covers(const QBuffer* buffers, const QBufferDimensions* dims,
                        std::size_t specialization) const {
  for (std::size_t i = 0; i < count(); ++i) {
    if (left_out(buffers[i], &dims[i])) continue;
    const auto given = numbers(dims[i]);
    const Dims& whole = mapping(i).shapes[specialization];
    const auto holds = [](std::uint32_t a, std::uint32_t b) { return a <= b; };
    if (given.size() != whole.size() ||
        !std::equal(given.begin(), given.end(), whole.begin(), whole.end(), holds))
      return false;
    // What is partial, and state, is of its own form.
    if (mapping(i).partial && !std::ranges::equal(given, whole)) return false;
  }
  return true;
}

std::size_t BufferPlan::total_bytes(std::size_t specialization) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count(); ++i) bytes += form(i, specialization).size;
  return bytes;
}

Result<std::size_t> BufferPlan::choose_covering(const QBuffer* buffers,
                                                const QBufferDimensions* dims) const {
  if (dims == nullptr) return choose(buffers, dims);
  CORELANE_ASSIGN(std::size_t found, find_by_dims(buffers, dims));
  if (found < specializations()) return check_found(buffers, dims, found);
  for (std::size_t k = 0; k < specializations(); ++k)
    if (covers(buffers, dims, k) &&
        (found == specializations() || total_bytes(k) < total_bytes(found)))
      found = k;
  if (found == specializations())
    return error(
        no_specialization(buffers, dims).wrap("no specialization covers these dimensions either"));
  for (std::size_t i = 0; i < count(); ++i) {
    if (left_out(buffers[i], &dims[i])) continue;
    std::size_t bytes = dims[i].sizeOfElem;
    for (const std::uint32_t d : numbers(dims[i])) bytes *= d;
    if (bytes != buffers[i].size)
      return error(Code::kInvalidArgument,
                   "buffer {} ('{}') has {} bytes, and {} by its dimensions {}", i, mapping(i).name,
                   buffers[i].size, bytes, dims_text(numbers(dims[i])));
  }
  return found;
}

Result<std::size_t> BufferPlan::choose(const QBuffer* buffers,
                                       const QBufferDimensions* dims) const {
  if (dims != nullptr) return choose_by_dims(buffers, dims);
  if (specializations() > 1) return choose_by_size(buffers);
  CORELANE_TRY(check_sizes(buffers, 0));
  return 0;
}

}  // namespace corelane::qaic
