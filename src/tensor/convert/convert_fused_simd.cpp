// Tiles between f32 planes and pixels of 1 or 2 bytes, converted on the way, and bytes of pictures
// looked up on theirs; compiled once per instruction set.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/convert/convert_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert/convert_fused_simd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "tensor/convert/convert_bytes_inl.h"
#include "tensor/convert/convert_tiles_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

constexpr std::size_t kPrefetched = 512;  ///< Bytes of a row from a load to its prefetch.

/// Rows of f32 that become 16-bit elements.
template <hn::Vec<DW> (*kLoad)(const std::byte*, std::ptrdiff_t)>
struct ToHalves {
  static constexpr std::size_t kSize = sizeof(float);
  explicit ToHalves(const RowParams&) {}
  HWY_INLINE hn::Vec<DW> load(const std::byte* row, std::size_t pixel) const {
    return kLoad(row + pixel * kSize, kPrefetched);
  }
};

/// Rows of f32 that become integers of type I.
template <class I>
struct ToBytes {
  static constexpr std::size_t kSize = sizeof(float);
  explicit ToBytes(const RowParams& params) : quantize(params) {}
  HWY_INLINE hn::Vec<Whole<I>> load(const std::byte* row, std::size_t pixel) {
    return quantize.whole(row + pixel * kSize);
  }
  Quantize<I> quantize;
};

/// Rows of f32 that 16-bit elements become.
template <VF (*kLoad)(const std::byte*)>
struct FromHalves {
  using D = hn::ScalableTag<std::uint16_t>;
  explicit FromHalves(const RowParams&) {}
  static constexpr std::size_t kSize = sizeof(float);
  HWY_INLINE void store(hn::Vec<D> v, std::byte* row, std::size_t pixel, bool stream) const {
    HWY_ALIGN std::byte buffer[hn::MaxLanes(D()) * 2];
    store_at(D(), v, buffer);
    constexpr std::size_t kLanes = hn::MaxLanes(DF());
    for (std::size_t i = 0; i < 2; ++i)
      store_f32(kLoad(buffer + i * kLanes * 2), row + (pixel + i * kLanes) * kSize, stream);
  }
};

/// Bytes of type B as f32s that are `kBias` too large.
template <class B>
class Widen {
 public:
  using D = hn::ScalableTag<std::uint8_t>;
#if HWY_TARGET == HWY_AVX3_DL
  static constexpr bool kSigned = std::is_signed_v<B>;
  static constexpr float kBias = 8388608.0F + (kSigned ? 128 : 0);
  /// The byte is put below the upper bits of 2^23.
  HWY_INLINE Widen() {
    for (std::size_t i = 0; i < 4; ++i)
      order_[i] = hn::Iota(DI(), static_cast<std::int32_t>(16 * i)).raw;
  }
  HWY_INLINE void operator()(hn::Vec<D> v, VF (&x)[4]) const {
    if (kSigned) v = hn::Xor(v, hn::Set(D(), 0x80));
    const __m512i upper = _mm512_set1_epi32(0x4B000000);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      x[i] = VF{_mm512_castsi512_ps(
          _mm512_mask_permutexvar_epi8(upper, 0x1111111111111111, order_[i], v.raw))};
  }

 private:
  __m512i order_[4];
#else
  static constexpr float kBias = 0;
  HWY_INLINE void operator()(hn::Vec<D> v, VF (&x)[4]) const {
    HWY_ALIGN std::byte buffer[hn::MaxLanes(D())];
    store_at(D(), v, buffer);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) x[i] = load_byte<B>(buffer + i * hn::MaxLanes(DF()));
  }
#endif
};

/// Rows of f32 that bytes of type B become by F.
template <class B, class F>
struct FromBytes {
  using D = hn::ScalableTag<std::uint8_t>;
  static constexpr std::size_t kSize = sizeof(float);
  explicit FromBytes(const RowParams& params) : f(params, Widen<B>::kBias) {}
  HWY_INLINE void store(hn::Vec<D> v, std::byte* row, std::size_t pixel, bool stream) const {
    VF x[4];
    widen(v, x);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      store_f32(f(x[i]), row + (pixel + i * hn::MaxLanes(DF())) * kSize, stream);
  }
  Widen<B> widen;
  F f;
};

struct Dequantize {
  Dequantize(const RowParams& params, float bias)
      : zero(hn::Set(DF(), static_cast<float>(params.src_zero) + bias)),
        scale(hn::Set(DF(), params.src_scale)) {}
  HWY_INLINE VF operator()(VF x) const { return hn::Mul(hn::Sub(x, zero), scale); }
  VF zero, scale;
};
/// What the shortcut of a row does.
struct NormaliseBytes {
  NormaliseBytes(const RowParams& params, float of_bytes)
      : normalise(params), bias(hn::Set(DF(), of_bytes)) {}
  HWY_INLINE VF operator()(VF x) const { return normalise(hn::Sub(x, bias)); }
  Normalise normalise;
  VF bias;
};

#if HWY_TARGET == HWY_AVX3_DL
/// The results of up to four channels.
struct ResultsOfChannels {
  HWY_INLINE ResultsOfChannels(ChannelParams params, std::size_t channels)
      : of{ResultsOfBytes(params.of(0)), ResultsOfBytes(params.of(channels > 1 ? 1 : 0)),
           ResultsOfBytes(params.of(channels > 2 ? 2 : 0)),
           ResultsOfBytes(params.of(channels > 3 ? 3 : 0))} {}
  const ResultsOfBytes of[4];
};

/// Pixels of `kChannels` bytes: of each vector the lanes that belong to a channel are looked up in
/// its results.
template <std::size_t kChannels>
void look_up_pixels(ChannelParams params, const std::byte* src, std::byte* dst, std::size_t count) {
  constexpr std::size_t kLanes = hn::MaxLanes(Bytes());
  const ResultsOfChannels results(params, kChannels);
  // Which lanes of a vector that begins with the first channel each channel has.
  std::uint64_t lanes[kChannels] = {};
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i % kChannels] |= std::uint64_t{1} << i;
  const auto convert = [&](std::size_t vector, std::uint64_t valid, const std::byte* in,
                           std::byte* out) HWY_ATTR {
    const __m512i x = _mm512_maskz_loadu_epi8(valid, in);
    const __mmask64 is_upper = _mm512_movepi8_mask(x);
    __m512i y = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kChannels; ++c) {
      // Vector k begins with channel 64 * k mod kChannels.
      const std::uint64_t mine = lanes[(c + kChannels - vector * kLanes % kChannels) % kChannels];
      y = _mm512_mask_mov_epi8(y, mine, results.of[c].of(x, is_upper));
    }
    _mm512_mask_storeu_epi8(out, valid, y);
  };
  constexpr std::size_t kStep = kLanes * kChannels;
  const std::size_t bytes = count * kChannels;
  std::size_t i = 0;
  for (; i + kStep <= bytes; i += kStep) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kChannels; ++k)
      convert(k, ~std::uint64_t{0}, src + i + k * kLanes, dst + i + k * kLanes);
  }
#pragma GCC unroll 4
  for (std::size_t k = 0; k < kChannels; ++k) {
    const std::size_t at = i + k * kLanes;
    const std::size_t left = at < bytes ? std::min(bytes - at, kLanes) : 0;
    if (left > 0) convert(k, ~std::uint64_t{0} >> (kLanes - left), src + at, dst + at);
  }
}

void look_up(ChannelParams params, std::size_t channels, const std::byte* src, std::byte* dst,
             std::size_t count) {
  if (channels == 2) return look_up_pixels<2>(params, src, dst, count);
  if (channels == 3) return look_up_pixels<3>(params, src, dst, count);
  look_up_pixels<4>(params, src, dst, count);
}

/// Pixels of bytes into rows.
bool look_up_apart(ChannelParams params, const std::byte* src, std::size_t stride,
                   std::byte* const* rows, std::size_t channels, std::size_t count, Streaming) {
  const Bytes d;
  if (params.of(0).results == nullptr || count < hn::Lanes(d)) return false;
  const ResultsOfChannels results(params, channels);
  const auto store = [&](std::size_t c, std::size_t p, hn::Vec<Bytes> v)
                         HWY_ATTR { store_at(d, results.of[c](v), rows[c] + p); };
  return deinterleave_abreast(d, store, typed<std::uint8_t>(src), stride, channels, count);
}

/// Rows of bytes, or pixels of them, into blocks.
bool look_up_rows_padded(ChannelParams params, const std::byte* const* rows, std::size_t channels,
                         std::byte* dst, std::size_t count, const std::byte* padding, bool stream) {
  // No more than there are results for.
  if (params.of(0).results == nullptr || channels == 0 || channels > 4) return false;
  const ResultsOfChannels results(params, channels);
  const auto row = [&](std::size_t c, std::size_t p)
                       HWY_ATTR { return results.of[c](load_at(Bytes(), rows[c] + p)); };
  return interleave_rows_into_blocks(Bytes(), row, channels, typed<std::uint8_t>(dst), count,
                                     padding, stream);
}
bool look_up_padded(ChannelParams params, std::size_t channels, const std::byte* src,
                    std::byte* dst, std::size_t count, const std::byte* padding, bool stream) {
  const Bytes d;
  if (params.of(0).results == nullptr || channels != 3 || count < hn::Lanes(d)) return false;
  const ResultsOfChannels results(params, channels);
  const ThreesApart<Bytes> threes;
  const auto load = [&](std::size_t p, hn::Vec<Bytes>(&v)[4]) HWY_ATTR {
    threes.load(typed<std::uint8_t>(src + 3 * p), v[0], v[1], v[2]);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 3; ++c) v[c] = results.of[c](v[c]);
  };
  interleave_into_blocks(d, load, typed<std::uint8_t>(dst), count, padding, stream);
  return true;
}
#endif

template <class R>
bool interleave_halves(const RowParams& params, const std::byte* const* rows, std::size_t channels,
                       std::byte* dst, std::size_t stride, std::size_t count, Streaming streaming) {
  const DW d;
  if (count < hn::Lanes(d)) return false;
  R as(params);
  interleave_vectors(d, as, rows, channels, typed<std::uint16_t>(dst), stride, count, streaming);
  return true;
}

/// Pixels of one block, out of rows that are converted beforehand: a square of bytes and the
/// constants of a quantization do not fit the registers together.
template <class D, class R>
HWY_INLINE bool interleave_staged(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                  std::uint8_t* dst, std::size_t stride, std::size_t count,
                                  bool stream) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  if (channels != kBlockBytes || stride != kBlockBytes) return false;
  HWY_ALIGN std::uint8_t staged[kBlockBytes * kLanes];
  const std::byte* staged_rows[kBlockBytes];
  for (std::size_t c = 0; c < kBlockBytes; ++c)
    staged_rows[c] = reinterpret_cast<const std::byte*>(staged + c * kLanes);
  EqualRows<D> equal;
  for_vectors(kLanes, count, [&](std::size_t p) HWY_ATTR {
    for (std::size_t c = 0; c < kBlockBytes; ++c)
      hn::Store(as.load(rows[c], p), d, staged + c * kLanes);
    interleave_packed(d, equal, staged_rows, 0, dst + p * stride, {false, stream});
  });
  return true;
}

template <class I>
bool interleave_bytes(const RowParams& params, const std::byte* const* rows, std::size_t channels,
                      std::byte* dst, std::size_t stride, std::size_t count, Streaming streaming) {
  const Whole<I> d;
  if (count < hn::Lanes(d) || !Quantize<I>::has_products(params)) return false;
  ToBytes<I> as(params);
  auto* const pixels = typed<std::uint8_t>(dst);
  // Panels that overlap would convert rows twice.
  const std::size_t panel = panel_channels<Whole<I>>(channels);
  const bool fills_panels = panel != 0 && channels % panel == 0;
  return interleave_abreast(d, as, rows, channels, pixels, stride, count) ||
         (fills_panels &&
          interleave_panels(d, as, rows, channels, pixels, stride, count, streaming)) ||
         interleave_staged(d, as, rows, channels, pixels, stride, count, streaming.store);
}

/// The same into blocks of 16 that are padded.
template <class I>
bool interleave_bytes_padded(ChannelParams params, const std::byte* const* rows,
                             std::size_t channels, std::byte* dst, std::size_t count,
                             const std::byte* padding, bool stream) {
  const RowParams& all = params.of(0);
  if (params.step != 0 || all.normalise || !Quantize<I>::has_products(all)) return false;
  ToBytes<I> as(all);
  const auto row = [&](std::size_t c, std::size_t p) HWY_ATTR { return as.load(rows[c], p); };
  return interleave_rows_into_blocks(Whole<I>(), row, channels, typed<std::uint8_t>(dst), count,
                                     padding, stream);
}

template <class T, class F>
bool deinterleave_as(const RowParams& params, const std::byte* src, std::size_t stride,
                     std::byte* const* rows, std::size_t channels, std::size_t count,
                     Streaming streaming) {
  const hn::ScalableTag<T> d;
  if (count < hn::Lanes(d)) return false;
  F as(params);
  deinterleave_vectors(d, as, typed<T>(src), stride, rows, channels, count, streaming);
  return true;
}

/// By F, or where there is a mean by N; void: not at all.
template <class T, class F, class N = void>
bool deinterleave(ChannelParams params, const std::byte* src, std::size_t stride,
                  std::byte* const* rows, std::size_t channels, std::size_t count,
                  Streaming streaming) {
  const RowParams& all = params.of(0);
  if (params.step != 0) return false;
  if (!all.normalise)
    return deinterleave_as<T, F>(all, src, stride, rows, channels, count, streaming);
  if constexpr (!std::is_void_v<N>) {
    // Few channels take as long to divide here as in a pass of its own.
    if (all.shortcut != nullptr && stride > 4)
      return deinterleave_as<T, N>(all, src, stride, rows, channels, count, streaming);
  }
  return false;
}

FusedKernels fused_kernels(DType src, DType dst) {
  using U8 = std::uint8_t;
  using I8 = std::int8_t;
  using U16 = std::uint16_t;
  FusedKernels k;
  if (src == DType::kF32) {
    if (dst == DType::kF16) k.interleave = interleave_halves<ToHalves<load_as_f16>>;
    if (dst == DType::kBF16) k.interleave = interleave_halves<ToHalves<load_as_bf16>>;
    if (dst == DType::kI8) {
      k.interleave = interleave_bytes<I8>;
      k.interleave_padded = interleave_bytes_padded<I8>;
    }
    if (dst == DType::kU8) {
      k.interleave = interleave_bytes<U8>;
      k.interleave_padded = interleave_bytes_padded<U8>;
    }
  } else if (dst == DType::kF32) {
    if (src == DType::kF16) k.deinterleave = deinterleave<U16, FromHalves<load_f16>>;
    if (src == DType::kBF16) k.deinterleave = deinterleave<U16, FromHalves<load_bf16>>;
    if (src == DType::kI8) k.deinterleave = deinterleave<U8, FromBytes<I8, Dequantize>>;
    if (src == DType::kU8)
      k.deinterleave = deinterleave<U8, FromBytes<U8, Dequantize>, FromBytes<U8, NormaliseBytes>>;
  }
#if HWY_TARGET == HWY_AVX3_DL
  if (dtype_bits(src) == 8 && dtype_bits(dst) == 8) {
    k.deinterleave = look_up_apart;
    k.interleave_padded = look_up_rows_padded;
    k.look_up = look_up;
    k.look_up_padded = look_up_padded;
  }
#endif
  return k;
}

#else

FusedKernels fused_kernels(DType, DType) { return {}; }

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace corelane::detail {

HWY_EXPORT(fused_kernels);

FusedKernels find_fused_kernels(DType src, DType dst) noexcept {
  return HWY_DYNAMIC_DISPATCH(fused_kernels)(src, dst);
}

}  // namespace corelane::detail
#endif
