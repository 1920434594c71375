/// For tests and fuzzing: makes a random conversion and holds the fast path against the reference.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "corelane/tensor/convert.h"
#include "tensor/convert/convert_plan.h"

namespace corelane::testing {

/// A number below `bound` (which is at least 1); the source of all choices.
using Pick = std::function<std::uint32_t(std::uint32_t bound)>;

/// One conversion without its memory.
struct ConvertCase {
  TensorDesc src;
  TensorDesc dst;
  ConvertOptions options;
  std::uint32_t seed = 0;  ///< Of the elements.
  bool any_bits = false;   ///< Floats of any bit pattern, or within +-300.
  std::string to_string() const {
    std::string text =
        fmt::format("{} -> {} seed {} bits {}", src.to_string(), dst.to_string(), seed, any_bits);
    for (const TensorDesc* d : {&src, &dst}) {
      const Quant& q = d->quant;
      if (q.kind != QuantKind::kAffine) continue;
      text += fmt::format("; axis {} scale {} zero {}", q.axis, q.scales[0], q.zero_points[0]);
    }
    return text + fmt::format("; mean {} std {}", options.mean.size(), options.std.size());
  }
};

inline Quant random_quant(const Pick& pick, const Shape& shape, DType type) {
  const auto scale = [&pick] {
    const float mantissa = pick(3) == 0 ? 1.0F : 1.0F + static_cast<float>(pick(1000)) / 1000;
    return std::ldexp(mantissa, static_cast<int>(pick(20)) - (pick(40) == 0 ? 130 : 12));
  };
  const auto zero_point = [&pick, type] {
    if (pick(12) == 0) return static_cast<std::int32_t>(pick(UINT32_MAX));
    const auto range = static_cast<std::int32_t>(1U << std::min<std::size_t>(dtype_bits(type), 16));
    return static_cast<std::int32_t>(pick(static_cast<std::uint32_t>(range))) - range / 2;
  };
  switch (pick(4)) {
    case 0:
      return Quant::none();
    case 1:
      return Quant::dfp(static_cast<std::int8_t>(pick(256)));
    case 2:
      return Quant::affine(scale(), zero_point());
    default:
      break;
  }
  if (shape.rank() == 0) return Quant::none();
  Quant q;
  q.kind = QuantKind::kAffine;
  q.axis = shape.rank() == 4 && pick(3) != 0
               ? 1
               : static_cast<std::int32_t>(pick(static_cast<std::uint32_t>(shape.rank())));
  const bool same_zero = pick(2) == 0;
  const std::int32_t zero = zero_point();
  for (std::int64_t i = 0; i < shape[static_cast<std::size_t>(q.axis)]; ++i) {
    q.scales.push_back(scale());
    q.zero_points.push_back(same_zero ? zero : zero_point());
  }
  return q;
}

inline Layout random_layout(const Pick& pick, const Shape& shape, DType type) {
  Layout layout;
  if (shape.rank() != 4 || dtype_bits(type) < 8) return layout;
  layout.kind = static_cast<LayoutKind>(pick(3));
  if (layout.kind == LayoutKind::kNC1HWC2) {
    const std::array<std::uint32_t, 8> usual{1, 4, 8, 16, 32, 3, 64, 200};
    layout.c2 = pick(3) == 0 ? 1 + pick(40) : usual[pick(usual.size())];
  }
  if (pick(3) == 0) layout.w_stride = static_cast<std::uint32_t>(shape[3]) + pick(9);
  return layout;
}

inline Shape random_shape(const Pick& pick) {
  if (pick(5) == 0) {
    std::vector<std::int64_t> dims(pick(5));
    for (auto& d : dims) d = pick(12);
    return Shape(std::move(dims));
  }
  const std::array<std::uint32_t, 10> channels{1, 2, 3, 4, 5, 16, 17, 32, 64, 130};
  const std::uint32_t c = pick(3) == 0 ? 1 + pick(80) : channels[pick(channels.size())];
  const std::uint32_t most = std::max(1U, std::min(200U, 6000 / c));
  return Shape({1 + pick(3), c, pick(12) == 0 ? 0 : 1 + pick(4), 1 + pick(most)});
}

inline ConvertCase random_case(const Pick& pick) {
  ConvertCase k;
  // The types of the fast path more often than the others.
  const std::array<DType, 18> types{
      DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kI8,  DType::kI8,
      DType::kU8,  DType::kU8,  DType::kI16, DType::kU16,  DType::kI32, DType::kU32,
      DType::kI64, DType::kU64, DType::kF64, DType::kBool, DType::kI4,  DType::kU4};
  const auto type = [&] { return types[pick(3) != 0 ? pick(10) : pick(types.size())]; };
  k.src.dtype = type();
  k.dst.dtype = pick(4) == 0 ? k.src.dtype : type();
  k.src.shape = k.dst.shape = random_shape(pick);
  k.src.layout = random_layout(pick, k.src.shape, k.src.dtype);
  k.dst.layout = random_layout(pick, k.dst.shape, k.dst.dtype);
  k.src.quant = random_quant(pick, k.src.shape, k.src.dtype);
  k.dst.quant = pick(4) == 0 ? k.src.quant : random_quant(pick, k.dst.shape, k.dst.dtype);
  if (k.src.shape.rank() == 4 && pick(5) == 0) {
    const auto channels = static_cast<std::size_t>(k.src.shape[1]);
    k.options.mean.resize(pick(2) == 0 ? 1 : channels);
    for (auto& m : k.options.mean) m = static_cast<float>(pick(2000)) / 8 - 100;
    k.options.std.resize(pick(2) == 0 ? 1 : channels);
    for (auto& s : k.options.std) s = static_cast<float>(1 + pick(2000)) / 16;
  }
  k.any_bits = pick(2) == 0;
  k.seed = pick(UINT32_MAX);
  return k;
}

inline void fill_elements(const ConvertCase& k, std::byte* data, std::size_t bytes) {
  std::uint64_t state = k.seed * 0x9E3779B97F4A7C15U + 1;
  const auto next = [&state] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state >> 32);
  };
  if (k.src.dtype == DType::kF32 && !k.any_bits) {
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
      const float x = static_cast<float>(static_cast<std::int32_t>(next() % 4801) - 2400) / 8;
      std::memcpy(data + i, &x, sizeof(x));
    }
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(next());
  // Specials between the random ones, also where a width is not a multiple of the vectors'.
  if (k.src.dtype != DType::kF32) return;
  const std::array<std::uint32_t, 10> special{0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000,
                                              0x80000000, 0x00000001, 0x477FF000, 0x33000001,
                                              0x387FFFFF, 0x7F7FFFFF};
  for (std::size_t i = 0; i + 4 <= bytes; i += std::size_t{4} * (1 + next() % 16))
    std::memcpy(data + i, &special[next() % special.size()], 4);
}

/// Memory of a destination, `shift` bytes after the start of a cache line, with red zones around
/// it.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t bytes, std::size_t shift, std::byte before)
      : bytes_(bytes), memory_(2 * kZone + shift + bytes + kZone, kMark) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = 2 * kZone - begin % kZone + shift;
    std::fill_n(data(), bytes, before);
  }
  std::byte* data() { return memory_.data() + start_; }
  bool intact() const {
    const auto marked = [](std::byte b) { return b == kMark; };
    const auto end = memory_.begin() + static_cast<std::ptrdiff_t>(start_ + bytes_);
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(start_),
                       marked) &&
           std::all_of(end, memory_.end(), marked);
  }

 private:
  static constexpr std::size_t kZone = 128;
  static constexpr std::byte kMark{0xA5};
  std::size_t bytes_;
  std::size_t start_ = 0;
  std::vector<std::byte> memory_;
};

/// "" when both hold the same bytes.
inline std::string difference(GuardedMemory& expected, GuardedMemory& actual, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (expected.data()[i] == actual.data()[i]) continue;
    return fmt::format("byte {} of {} is {:#04x}, the reference has {:#04x}", i, bytes,
                       std::to_integer<int>(actual.data()[i]),
                       std::to_integer<int>(expected.data()[i]));
  }
  return "";
}

struct CheckResult {
  std::string problem;  ///< Empty when both paths agree.
  bool fast = false;    ///< A fast kernel ran.
};

/// Runs the case on both paths. The source ends with its allocation, so that AddressSanitizer sees
/// a read beyond it.
inline CheckResult check_case(ConvertCase k, const Pick& pick) {
  const auto src_bytes = k.src.bytes();
  const auto dst_bytes = k.dst.bytes();
  if (!src_bytes || !dst_bytes)
    return {"no size: " + (src_bytes ? dst_bytes : src_bytes).error().to_string(), false};
  const std::size_t shift = pick(2) == 0 ? 0 : pick(64);
  const auto memory = std::make_unique<std::byte[]>(*src_bytes + shift);
  fill_elements(k, memory.get() + shift, *src_bytes);
  const TensorView src{memory.get() + shift, *src_bytes,   k.src.dtype,
                       k.src.shape,          k.src.layout, k.src.quant};
  GuardedMemory expected(*dst_bytes, 0, std::byte{0x5A});
  GuardedMemory actual(*dst_bytes, pick(64), std::byte{0xC3});
  const auto run = [&](GuardedMemory& out, ConvertPath path) {
    k.options.path = path;
    return convert(src,
                   {out.data(), *dst_bytes, k.dst.dtype, k.dst.shape, k.dst.layout, k.dst.quant},
                   k.options);
  };
  const Status reference = run(expected, ConvertPath::kReference);
  Status fast = run(actual, ConvertPath::kFast);
  const bool has_kernel = fast.code() != Code::kUnsupported;
  if (!has_kernel) fast = run(actual, ConvertPath::kAuto);
  if (reference.code() != fast.code())
    return {"reference: " + reference.to_string() + "; fast: " + fast.to_string(), has_kernel};
  if (!reference.ok()) return {"", has_kernel};
  if (!expected.intact()) return {"the reference wrote outside of its memory", has_kernel};
  if (!actual.intact()) return {"the fast path wrote outside of its memory", has_kernel};
  std::string problem = difference(expected, actual, *dst_bytes);
  if (!problem.empty() || !has_kernel) return {problem, has_kernel};
  // Once more as if the tensors were larger than the caches.
  GuardedMemory streamed(*dst_bytes, std::size_t{pick(2)} * pick(64), std::byte{0x3C});
  auto plan = detail::make_convert_plan(
      src, {streamed.data(), *dst_bytes, k.dst.dtype, k.dst.shape, k.dst.layout, k.dst.quant},
      k.options);
  if (!plan) return {plan.error().to_string(), true};
  plan->cache_bytes = 0;
  if (*dst_bytes == 0 || !detail::convert_fast(*plan)) return {"", true};
  if (!streamed.intact()) return {"the streaming path wrote outside of its memory", true};
  problem = difference(expected, streamed, *dst_bytes);
  return {problem.empty() ? problem : "streamed: " + problem, true};
}

}  // namespace corelane::testing
