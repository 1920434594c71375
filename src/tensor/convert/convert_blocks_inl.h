// Shuffles of 128-bit blocks and the lanes within them; included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_BLOCKS_INL_H_
#undef CORELANE_TENSOR_CONVERT_BLOCKS_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_BLOCKS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlockBytes = 16;

template <class T>
HWY_INLINE const T* typed(const std::byte* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T>
HWY_INLINE T* typed(std::byte* p) {
  return reinterpret_cast<T*>(p);
}

constexpr std::size_t kLine = 64;  ///< Bytes of a cache line.

/// Stores a vector; non-temporal where asked for, since only a vector that is a whole line may be
/// stored so. `p` begins a line then.
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, hn::TFromD<D>* p, bool stream) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == kLine) {
    if (stream) {
      hn::Stream(v, d, p);
      return;
    }
  }
  (void)stream;
  hn::StoreU(v, d, p);
}

#if HWY_TARGET != HWY_SCALAR

/// Lanes of a 128-bit block: channels and pixels of the square that is transposed within it.
template <class T>
constexpr std::size_t kSide = kBlockBytes / sizeof(T);

/// Blocks of a vector: 1, 2 or 4.
template <class D>
constexpr std::size_t kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / kBlockBytes;

/// True where one instruction brings the lanes of a vector, of 1 or 2 bytes, into any order.
template <class D>
constexpr bool has_shuffle =
    HWY_TARGET == HWY_AVX3_DL && sizeof(hn::TFromD<D>) <= 2 && kBlocks<D> == 4;

/// Which lane of a vector comes to each place when the lanes of every `kParts` blocks are dealt out
/// to these blocks in turn: lane i to block i % kParts.
template <class T, std::size_t kLanes, std::size_t kParts>
struct DealtLanes {
  alignas(kLine) T from[kLanes];
  constexpr DealtLanes() : from() {
    constexpr std::size_t kTogether = kSide<T> * kParts;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::size_t part = i % kTogether / kSide<T>;
      from[i] = static_cast<T>(i / kTogether * kTogether + i % kSide<T> * kParts + part);
    }
  }
};
template <class T, std::size_t kLanes, std::size_t kParts>
constexpr DealtLanes<T, kLanes, kParts> kDealtLanes;

/// Deals lanes out where has_shuffle; the vector as it is elsewhere.
template <std::size_t kParts, class D, class V>
HWY_INLINE V deal_lanes(D d, V v) {
#if HWY_TARGET == HWY_AVX3_DL
  using T = hn::TFromD<D>;
  if constexpr (has_shuffle<D> && kParts > 1) {
    const __m512i from = hn::Load(d, kDealtLanes<T, hn::MaxLanes(D()), kParts>.from).raw;
    if constexpr (sizeof(T) == 1) return V{_mm512_permutexvar_epi8(from, v.raw)};
    if constexpr (sizeof(T) == 2) return V{_mm512_permutexvar_epi16(from, v.raw)};
  }
#endif
  (void)d;
  return v;
}

/// Transposes the squares of every block: lane c of block b of v[j] becomes lane j of v[c]. Each
/// round shuffles perfectly, which turns the bits of (vector, lane) by one place; after as many
/// rounds as either has bits, vector and lane have changed places.
template <class D, class V, std::size_t kCount>
HWY_INLINE void transpose_in_blocks(D d, V (&v)[kCount]) {
#pragma GCC unroll 16
  for (std::size_t bits = 1; bits < kCount; bits *= 2) {
    V next[kCount];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kCount / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kCount / 2]);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kCount; ++i) v[i] = next[i];
  }
}

/// Block j of v[i] becomes block i of v[j], for as many vectors as they have blocks; the vectors
/// are `step` apart in the array.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V* v, std::size_t step) {
  if constexpr (kBlocks<D> == 2) {
    const V a = v[0];
    const V b = v[step];
    v[0] = hn::ConcatLowerLower(d, b, a);
    v[step] = hn::ConcatUpperUpper(d, b, a);
  } else if constexpr (kBlocks<D> == 4) {
    const V a = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[step]), v[0]);
    const V b = hn::OddEvenBlocks(v[step], hn::SwapAdjacentBlocks(v[0]));
    const V e = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(v[3 * step]), v[2 * step]);
    const V f = hn::OddEvenBlocks(v[3 * step], hn::SwapAdjacentBlocks(v[2 * step]));
    v[0] = hn::ConcatLowerLower(d, e, a);
    v[step] = hn::ConcatLowerLower(d, f, b);
    v[2 * step] = hn::ConcatUpperUpper(d, e, a);
    v[3 * step] = hn::ConcatUpperUpper(d, f, b);
  }
}

/// Stores block b at dst + b * step elements.
template <class D, class V>
HWY_INLINE void store_blocks(D d, V v, hn::TFromD<D>* dst, std::size_t step) {
  if constexpr (kBlocks<D> <= 1) {
    (void)step;
    hn::StoreU(v, d, dst);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), dst, step);
    store_blocks(half, hn::UpperHalf(half, v), dst + kBlocks<D> / 2 * step, step);
  }
}

#if HWY_TARGET <= HWY_AVX3
template <class T>
HWY_INLINE __m128i load_block(const T* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
#endif

/// Loads block b from at(b).
template <class D, class At>
HWY_INLINE hn::Vec<D> load_blocks_at(D d, At at) {
  if constexpr (kBlocks<D> <= 1) {
    return hn::LoadU(d, at(0));
#if HWY_TARGET <= HWY_AVX3
  } else if constexpr (kBlocks<D> == 4) {
    // A masked load puts a block in place without a shuffle; the Xeons measured execute one shuffle
    // a cycle.
    __m512i v = _mm512_castsi128_si512(load_block(at(0)));
    v = _mm512_mask_broadcast_i32x4(v, 0x00F0, load_block(at(1)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0F00, load_block(at(2)));
    v = _mm512_mask_broadcast_i32x4(v, 0xF000, load_block(at(3)));
    return hn::Vec<D>{v};
#endif
  } else {
    const hn::Half<D> half;
    const auto upper = [&](std::size_t b) HWY_ATTR { return at(b + kBlocks<D> / 2); };
    return hn::Combine(d, load_blocks_at(half, upper), load_blocks_at(half, at));
  }
}

/// Loads block b from src + b * step elements.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const hn::TFromD<D>* src, std::size_t step) {
  return load_blocks_at(d, [&](std::size_t b) HWY_ATTR { return src + b * step; });
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
