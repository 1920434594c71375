// Pixels of two to four channels, as pictures have them; included once per instruction set.
#if defined(CORELANE_TENSOR_CONVERT_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORELANE_TENSOR_CONVERT_FEW_INL_H_
#undef CORELANE_TENSOR_CONVERT_FEW_INL_H_
#else
#define CORELANE_TENSOR_CONVERT_FEW_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/convert/convert_transpose_inl.h"

HWY_BEFORE_NAMESPACE();
namespace corelane::detail {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Stores the vectors of three channels as pixels. ThreesApart loads such vectors from pixels.
template <class D, class = void>
struct ThreesTogether {
  using V = hn::Vec<D>;
  HWY_INLINE void store(V v0, V v1, V v2, hn::TFromD<D>* dst) const {
    hn::StoreInterleaved3(v0, v1, v2, D(), dst);
  }
};
template <class D, class = void>
struct ThreesApart {
  using V = hn::Vec<D>;
  HWY_INLINE void load(const hn::TFromD<D>* src, V& v0, V& v1, V& v2) const {
    hn::LoadInterleaved3(D(), src, v0, v1, v2);
  }
};

#if HWY_TARGET == HWY_AVX3_DL
/// Elements of 1 or 2 bytes: each result takes its elements from two vectors, and then those of the
/// third. Highway's own form, which other CPUs need, takes three times as many shuffles.
template <class T>
struct ThreesOrder {
  static constexpr std::size_t kLanes = kLine / sizeof(T);
  T pair[3][kLanes];            ///< Lane of the first two vectors.
  T third[3][kLanes];           ///< Lane of the third one,
  std::uint64_t from_third[3];  ///< for these.
  /// Lane `lane` of a result is the `from`-th of all lanes of the three vectors.
  constexpr void take(std::size_t result, std::size_t lane, std::size_t from) {
    const bool is_third = from >= 2 * kLanes;
    (is_third ? third : pair)[result][lane] = static_cast<T>(is_third ? from - 2 * kLanes : from);
    from_third[result] |= std::uint64_t{is_third} << lane;
  }
};
template <class T>
constexpr ThreesOrder<T> order_together() {
  constexpr std::size_t kLanes = ThreesOrder<T>::kLanes;
  ThreesOrder<T> order{};
  for (std::size_t i = 0; i < 3 * kLanes; ++i)
    order.take(i / kLanes, i % kLanes, i % 3 * kLanes + i / 3);
  return order;
}
template <class T>
constexpr ThreesOrder<T> order_apart() {
  ThreesOrder<T> order{};
  for (std::size_t i = 0; i < 3 * ThreesOrder<T>::kLanes; ++i) order.take(i % 3, i / 3, i);
  return order;
}

/// The shuffles of an order, in registers.
template <class D>
class ThreesShuffle {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  HWY_INLINE explicit ThreesShuffle(const ThreesOrder<T>& order) {
    for (std::size_t i = 0; i < 3; ++i) {
      pair_[i] = hn::LoadU(D(), order.pair[i]).raw;
      third_[i] = hn::LoadU(D(), order.third[i]).raw;
      from_third_[i] = order.from_third[i];
    }
  }
  /// The i-th result.
  HWY_INLINE V operator()(std::size_t i, V a, V b, V c) const {
    if constexpr (sizeof(T) == 1) {
      const __m512i pair = _mm512_permutex2var_epi8(a.raw, pair_[i], b.raw);
      return V{_mm512_mask_permutexvar_epi8(pair, from_third_[i], third_[i], c.raw)};
    } else {
      const __m512i pair = _mm512_permutex2var_epi16(a.raw, pair_[i], b.raw);
      return V{_mm512_mask_permutexvar_epi16(pair, static_cast<__mmask32>(from_third_[i]),
                                             third_[i], c.raw)};
    }
  }

 private:
  __m512i pair_[3];
  __m512i third_[3];
  std::uint64_t from_third_[3];
};

template <class D>
struct ThreesTogether<D, std::enable_if_t<has_shuffle<D>>> {
  using V = hn::Vec<D>;
  static constexpr ThreesOrder<hn::TFromD<D>> kOrder = order_together<hn::TFromD<D>>();
  HWY_INLINE ThreesTogether() : shuffle(kOrder) {}
  HWY_INLINE void store(V v0, V v1, V v2, hn::TFromD<D>* dst) const {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 3; ++i)
      hn::StoreU(shuffle(i, v0, v1, v2), D(), dst + i * hn::MaxLanes(D()));
  }
  ThreesShuffle<D> shuffle;
};
template <class D>
struct ThreesApart<D, std::enable_if_t<has_shuffle<D>>> {
  using V = hn::Vec<D>;
  static constexpr ThreesOrder<hn::TFromD<D>> kOrder = order_apart<hn::TFromD<D>>();
  HWY_INLINE ThreesApart() : shuffle(kOrder) {}
  HWY_INLINE void load(const hn::TFromD<D>* src, V& v0, V& v1, V& v2) const {
    const V a = hn::LoadU(D(), src);
    const V b = hn::LoadU(D(), src + hn::MaxLanes(D()));
    const V c = hn::LoadU(D(), src + 2 * hn::MaxLanes(D()));
    v0 = shuffle(0, a, b, c);
    v1 = shuffle(1, a, b, c);
    v2 = shuffle(2, a, b, c);
  }
  ThreesShuffle<D> shuffle;
};
#endif

/// Two to four channels without others between them, at least Lanes(d) pixels; false: it is not so.
template <class D, class R, class T = hn::TFromD<D>>
HWY_INLINE bool interleave_abreast(D d, R& as, const std::byte* const* rows, std::size_t channels,
                                   T* dst, std::size_t stride, std::size_t count) {
  if (channels != stride || channels < 2 || channels > 4) return false;
  const std::size_t lanes = hn::Lanes(d);
  const auto row = [&](std::size_t c, std::size_t p) HWY_ATTR { return as.load(rows[c], p); };
  if (channels == 2) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::StoreInterleaved2(row(0, p), row(1, p), d, dst + 2 * p);
    });
  } else if (channels == 3) {
    const ThreesTogether<D> threes;
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      threes.store(row(0, p), row(1, p), row(2, p), dst + 3 * p);
    });
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::StoreInterleaved4(row(0, p), row(1, p), row(2, p), row(3, p), d, dst + 4 * p);
    });
  }
  return true;
}

/// The inverse of interleave_abreast(): store(channel, pixel, vector) takes what a channel becomes.
template <class D, class Store, class T = hn::TFromD<D>>
HWY_INLINE bool deinterleave_abreast(D d, Store store, const T* src, std::size_t stride,
                                     std::size_t channels, std::size_t count) {
  if (channels != stride || channels < 2 || channels > 4) return false;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> v0;
  hn::Vec<D> v1;
  hn::Vec<D> v2;
  hn::Vec<D> v3;
  if (channels == 2) {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::LoadInterleaved2(d, src + 2 * p, v0, v1);
      store(0, p, v0);
      store(1, p, v1);
    });
  } else if (channels == 3) {
    const ThreesApart<D> threes;
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      threes.load(src + 3 * p, v0, v1, v2);
      store(0, p, v0);
      store(1, p, v1);
      store(2, p, v2);
    });
  } else {
    for_vectors(lanes, count, [&](std::size_t p) HWY_ATTR {
      hn::LoadInterleaved4(d, src + 4 * p, v0, v1, v2, v3);
      store(0, p, v0);
      store(1, p, v1);
      store(2, p, v2);
      store(3, p, v3);
    });
  }
  return true;
}

/// Up to four channels of bytes, at least Lanes(d) pixels, to pixels of one block that `padding`
/// fills: the bytes of each pixel are put together as 32 bits, and these spread to blocks.
/// load(pixel, vectors) sets a vector for each channel; those of the others hold padding.
template <class D, class Load>
HWY_INLINE void interleave_into_blocks(D d, Load load, std::uint8_t* dst, std::size_t count,
                                       const std::byte* padding, bool stream) {
  static_assert(sizeof(hn::TFromD<D>) == 1);
  const hn::Repartition<std::uint16_t, D> d16;
  using D32 = hn::Repartition<std::uint32_t, D>;
  const D32 d32;
  constexpr std::size_t kPixels = kBlocks<D>;  // Of a vector that is stored.
  HWY_ALIGN std::int32_t order[4][hn::MaxLanes(D32())] = {};
  HWY_ALIGN std::uint32_t is_pixel[hn::MaxLanes(D32())] = {};
  for (std::size_t i = 0; i < kPixels; ++i) {
    is_pixel[4 * i] = ~0U;
    for (std::size_t k = 0; k < 4; ++k)
      order[k][4 * i] = static_cast<std::int32_t>(k * kPixels + i);
  }
  const auto keep = hn::MaskFromVec(hn::Load(d32, is_pixel));
  const auto fill = hn::LoadDup128(d, typed<std::uint8_t>(padding));
  for_vectors(hn::Lanes(d), count, [&](std::size_t p) HWY_ATTR {
    hn::Vec<D> v[4] = {fill, fill, fill, fill};
    load(p, v);
    const bool lines = stream && begins_line(dst + p * kBlockBytes);
    const auto lower01 = hn::BitCast(d16, hn::InterleaveLower(d, v[0], v[1]));
    const auto upper01 = hn::BitCast(d16, hn::InterleaveUpper(d, v[0], v[1]));
    const auto lower23 = hn::BitCast(d16, hn::InterleaveLower(d, v[2], v[3]));
    const auto upper23 = hn::BitCast(d16, hn::InterleaveUpper(d, v[2], v[3]));
    // Block b of the i-th holds the pixels 16 * b + 4 * i to 16 * b + 4 * i + 3.
    const hn::Vec<D32> four[4] = {hn::BitCast(d32, hn::InterleaveLower(d16, lower01, lower23)),
                                  hn::BitCast(d32, hn::InterleaveUpper(d16, lower01, lower23)),
                                  hn::BitCast(d32, hn::InterleaveLower(d16, upper01, upper23)),
                                  hn::BitCast(d32, hn::InterleaveUpper(d16, upper01, upper23))};
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const auto part = hn::SetTableIndices(d32, order[k]);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        const auto pixels =
            hn::IfThenElse(keep, hn::TableLookupLanes(four[i], part), hn::BitCast(d32, fill));
        const std::size_t first = p + k * kPixels / 4 * 16 + 4 * i + k * kPixels % 4;
        store(d, hn::BitCast(d, pixels), dst + first * kBlockBytes, lines);
      }
    }
  });
}

/// Out of rows: row(channel, pixel) loads a vector of one. False, with nothing written, for other
/// than one to four channels and for few pixels.
template <class D, class Row>
HWY_INLINE bool interleave_rows_into_blocks(D d, Row row, std::size_t channels, std::uint8_t* dst,
                                            std::size_t count, const std::byte* padding,
                                            bool stream) {
  if (channels == 0 || channels > 4 || count < hn::Lanes(d)) return false;
  const auto load = [&](std::size_t p, hn::Vec<D>(&v)[4]) HWY_ATTR {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c)
      if (c < channels) v[c] = row(c, p);
  };
  interleave_into_blocks(d, load, dst, count, padding, stream);
  return true;
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace corelane::detail
HWY_AFTER_NAMESPACE();

#endif  // per target
