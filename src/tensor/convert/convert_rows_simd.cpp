// Conversion of rows between element types, compiled once per instruction set. Every step gives
// the bits that the step of convert_reference.cpp gives.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "tensor/convert/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert/convert_rows_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "tensor/convert/convert_bytes_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

// ---- f16 and bf16

void pass_f16_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                     std::size_t count) {
  const bool stream = params.stream;
  for_vectors<2, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f32(load_f16(in), out, stream);
  });
}
void pass_bf16_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                      std::size_t count) {
  const bool stream = params.stream;
  for_vectors<2, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f32(load_bf16(in), out, stream);
  });
}
void pass_f32_to_f16(const RowParams& params, const std::byte* src, std::byte* dst,
                     std::size_t count) {
  const std::ptrdiff_t prefetch = params.prefetch;
  for_vectors<4, 2>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_f16(load_f32(in, prefetch), out);
  });
}
void pass_f32_to_bf16(const RowParams& params, const std::byte* src, std::byte* dst,
                      std::size_t count) {
  const std::ptrdiff_t prefetch = params.prefetch;
#if HWY_TARGET == HWY_SCALAR
  for_vectors<4, 2>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_at(DH(), narrow_u16(hn::ShiftRight<16>(round_to_bf16(load_f32(in, prefetch)))), out);
  });
#else
  for_vectors_of<4, 2>(DW(), src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    store_line(DW(), load_as_bf16(in, prefetch), out, params.stream);
  });
#endif
}

// ---- integers

template <class I>
void pass_integer_to_f32(const RowParams& params, const std::byte* src, std::byte* dst,
                         std::size_t count) {
  const DF df;
  const bool stream = params.stream;
  if (!params.dequantize) {
    for_vectors<sizeof(I), 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
      store_f32(hn::ConvertTo(df, load_integer<I>(in)), out, stream);
    });
    return;
  }
  const VI zero = hn::Set(DI(), params.src_zero);
  const VF scale = hn::Set(df, params.src_scale);
  for_vectors<sizeof(I), 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    const VF q = hn::ConvertTo(df, hn::Sub(load_integer<I>(in), zero));
    store_f32(hn::Mul(q, scale), out, stream);
  });
}

// ---- normalisation

/// (x - mean) / std.
void pass_normalise(const RowParams& params, const std::byte* src, std::byte* dst,
                    std::size_t count) {
  const DF df;
  const VF mean = hn::Set(df, params.mean);
  const VF b = hn::Set(df, params.std);
  if (params.std_reciprocal == 0) {
    for_vectors<4, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
      store_at(df, hn::Div(hn::Sub(load_at(df, in), mean), b), out);
    });
    return;
  }
  const bool stream = params.stream;
  const VF y = hn::Set(df, params.std_reciprocal);
  const VF least = hn::Set(df, 0x1p-60F);
  const VF most = hn::Set(df, 0x1p60F);
  for_vectors<4, 4>(src, dst, count, [&](const std::byte* in, std::byte* out) HWY_ATTR {
    const VF a = hn::Sub(load_at(df, in), mean);
    const VF size = hn::Abs(a);
    const auto zero = hn::Eq(a, hn::Zero(df));
    const auto usual = hn::And(hn::Gt(size, least), hn::Lt(size, most));
    if (HWY_LIKELY(hn::AllTrue(df, hn::Or(usual, zero)))) {
      // Of a zero the product has the right sign, the corrected quotient has not.
      store_f32(hn::IfThenElse(zero, hn::Mul(a, y), divide(a, b, y)), out, stream);
    } else {
      store_at(df, hn::Div(a, b), out);
    }
  });
}

/// The passes of the types that rows are converted from and to.
struct Passes {
  DType type;
  RowKernel::Pass load;
  RowKernel::Pass store;
};
constexpr Passes kPasses[] = {
    {DType::kF32, nullptr, nullptr},
    {DType::kF16, pass_f16_to_f32, pass_f32_to_f16},
    {DType::kBF16, pass_bf16_to_f32, pass_f32_to_bf16},
    {DType::kI8, pass_integer_to_f32<std::int8_t>, pass_f32_to_integer<std::int8_t>},
    {DType::kU8, pass_integer_to_f32<std::uint8_t>, pass_f32_to_integer<std::uint8_t>},
    {DType::kI16, pass_integer_to_f32<std::int16_t>, pass_f32_to_integer<std::int16_t>},
    {DType::kU16, pass_integer_to_f32<std::uint16_t>, pass_f32_to_integer<std::uint16_t>},
};

RowKernel row_kernel(DType src, DType dst) {
  const auto of = [](DType type) {
    return std::find_if(std::begin(kPasses), std::end(kPasses),
                        [type](const Passes& p) { return p.type == type; });
  };
  const Passes* const from = of(src);
  const Passes* const to = of(dst);
  if (from == std::end(kPasses) || to == std::end(kPasses)) return {};
  RowKernel::Shortcuts shortcuts{};
  if (src == DType::kU8) shortcuts = shortcuts_to<std::uint8_t>(dst);
  if (src == DType::kI8) shortcuts = shortcuts_to<std::int8_t>(dst);
  return {from->load, pass_normalise,      to->store,
          shortcuts,  dtype_bits(src) / 8, dtype_bits(dst) / 8};
}

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::detail {

HWY_EXPORT(row_kernel);

RowKernel find_row_kernel(DType src, DType dst) noexcept {
  return HWY_DYNAMIC_DISPATCH(row_kernel)(src, dst);
}

/// Prefetches memory that is read next.
static void prefetch(const std::byte* p, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(p + i, 0, 3);
}

void RowKernel::operator()(const RowParams& params, const std::byte* src, std::byte* dst,
                           std::size_t count, bool stream, const std::byte* next) const {
  RowParams last = params;
  last.stream = stream;
  if (params.shortcut != nullptr) {
    if (next != nullptr) prefetch(next, count * src_size);
    params.shortcut(last, src, dst, count);
    return;
  }
  if (!params.normalise && (load == nullptr || store == nullptr)) {
    if (next != nullptr) last.prefetch = next - src;
    (load != nullptr ? load : store)(last, src, dst, count);
    return;
  }
  constexpr std::size_t kPart = 512;
  std::byte reals[kPart * sizeof(float)];
  std::byte normalised[kPart * sizeof(float)];  // Passes do not work in place.
  for (std::size_t i = 0; i < count; i += kPart) {
    const std::size_t n = std::min(kPart, count - i);
    const std::byte* in = src + i * src_size;
    if (next != nullptr) prefetch(next + i * src_size, n * src_size);
    std::byte* const out = dst + i * dst_size;
    if (load != nullptr) {
      load(params, in, reals, n);
      in = reals;
    }
    if (params.normalise) {
      std::byte* const result = store == nullptr ? out : normalised;
      normalise(store == nullptr ? last : params, in, result, n);
      in = result;
    }
    if (store != nullptr) store(last, in, out, n);
  }
}

void RowKernel::shorten(RowParams& params, ByteResults& results) const {
  constexpr std::size_t kBytes = 256;
  std::byte all[kBytes];
  for (std::size_t i = 0; i < kBytes; ++i) all[i] = static_cast<std::byte>(i);
  (*this)(params, all, results.data(), kBytes);
  params.results = results.data();
  for (const Pass shortcut : shortcuts) {
    if (shortcut == nullptr) return;
    ByteResults tried;
    shortcut(params, all, tried.data(), kBytes);
    if (std::memcmp(tried.data(), results.data(), kBytes * dst_size) != 0) continue;
    params.shortcut = shortcut;
    return;
  }
}

void finish_streaming() noexcept { hwy::FlushStream(); }

}  // namespace corelane::detail
#endif
