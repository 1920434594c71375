// Tiles between f32 planes and pixels of 1 or 2 bytes, converted on the way, compiled once per
// instruction set.
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

template <class R>
bool interleave_halves(const RowParams& params, const std::byte* const* rows, std::size_t channels,
                       std::byte* dst, std::size_t stride, std::size_t count) {
  const DW d;
  if (count < hn::Lanes(d)) return false;
  R as(params);
  interleave_vectors(d, as, rows, channels, typed<std::uint16_t>(dst), stride, count, {});
  return true;
}

/// Few channels only: a square of bytes and the constants of a quantization do not fit the
/// registers together.
template <class I>
bool interleave_bytes(const RowParams& params, const std::byte* const* rows, std::size_t channels,
                      std::byte* dst, std::size_t stride, std::size_t count) {
  const Whole<I> d;
  if (count < hn::Lanes(d) || !Quantize<I>::has_products(params)) return false;
  ToBytes<I> as(params);
  return interleave_abreast(d, as, rows, channels, typed<std::uint8_t>(dst), stride, count);
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
bool deinterleave(const RowParams& params, const std::byte* src, std::size_t stride,
                  std::byte* const* rows, std::size_t channels, std::size_t count,
                  Streaming streaming) {
  if (!params.normalise)
    return deinterleave_as<T, F>(params, src, stride, rows, channels, count, streaming);
  if constexpr (!std::is_void_v<N>) {
    // Few channels take as long to divide here as in a pass of its own.
    if (params.shortcut != nullptr && stride > 4)
      return deinterleave_as<T, N>(params, src, stride, rows, channels, count, streaming);
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
    if (dst == DType::kI8) k.interleave = interleave_bytes<I8>;
    if (dst == DType::kU8) k.interleave = interleave_bytes<U8>;
  } else if (dst == DType::kF32) {
    if (src == DType::kF16) k.deinterleave = deinterleave<U16, FromHalves<load_f16>>;
    if (src == DType::kBF16) k.deinterleave = deinterleave<U16, FromHalves<load_bf16>>;
    if (src == DType::kI8) k.deinterleave = deinterleave<U8, FromBytes<I8, Dequantize>>;
    if (src == DType::kU8)
      k.deinterleave = deinterleave<U8, FromBytes<U8, Dequantize>, FromBytes<U8, NormaliseBytes>>;
  }
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
