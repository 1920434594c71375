#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tensor/convert/convert_plan.h"

namespace corelane::detail {

namespace {

/// An integer of any element type: sign and magnitude, so that i64 and u64 share one path.
struct Wide {
  bool negative = false;
  std::uint64_t magnitude = 0;
};

Wide make_wide(std::int64_t v) {
  const auto bits = static_cast<std::uint64_t>(v);
  return {v < 0, v < 0 ? 0 - bits : bits};
}

/// Memory may be unaligned, so every access is a copy.
template <class T>
T load_as(const std::byte* base, std::size_t i) {
  T value;
  std::memcpy(&value, base + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store_as(std::byte* base, std::size_t i, T value) {
  std::memcpy(base + i * sizeof(T), &value, sizeof(T));
}

bool is_signed(DType t) {
  return t == DType::kI4 || t == DType::kI8 || t == DType::kI16 || t == DType::kI32 ||
         t == DType::kI64;
}

Wide load_integer(DType t, const std::byte* base, std::size_t i) {
  switch (t) {
    case DType::kI4:
    case DType::kU4: {
      const int nibble = std::to_integer<int>(base[i / 2] >> (i % 2 * 4)) & 0xF;
      return make_wide(t == DType::kI4 && nibble >= 8 ? nibble - 16 : nibble);
    }
    case DType::kI8:
      return make_wide(load_as<std::int8_t>(base, i));
    case DType::kU8:
      return make_wide(load_as<std::uint8_t>(base, i));
    case DType::kI16:
      return make_wide(load_as<std::int16_t>(base, i));
    case DType::kU16:
      return make_wide(load_as<std::uint16_t>(base, i));
    case DType::kI32:
      return make_wide(load_as<std::int32_t>(base, i));
    case DType::kU32:
      return make_wide(load_as<std::uint32_t>(base, i));
    case DType::kI64:
      return make_wide(load_as<std::int64_t>(base, i));
    default:
      return {false, load_as<std::uint64_t>(base, i)};
  }
}

/// Stores with saturation. Nibbles must be stored in order: the even one clears its neighbour.
void store_integer(DType t, std::byte* base, std::size_t i, Wide v) {
  const std::size_t bits = dtype_bits(t);
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  // Magnitudes: the lowest number of a signed type has one more than the highest.
  const std::uint64_t highest = is_signed(t) ? all >> 1 : all;
  const std::uint64_t lowest = is_signed(t) ? (all >> 1) + 1 : 0;
  const std::uint64_t value =
      v.negative ? 0 - std::min(v.magnitude, lowest) : std::min(v.magnitude, highest);
  switch (bits) {
    case 4: {
      const auto nibble = static_cast<std::byte>(value & 0xF);
      base[i / 2] = i % 2 == 0 ? nibble : (base[i / 2] | nibble << 4);
      break;
    }
    case 8:
      store_as(base, i, static_cast<std::uint8_t>(value));
      break;
    case 16:
      store_as(base, i, static_cast<std::uint16_t>(value));
      break;
    case 32:
      store_as(base, i, static_cast<std::uint32_t>(value));
      break;
    default:
      store_as(base, i, value);
      break;
  }
}

/// Rounds a double towards an f32 with the last place set when anything was lost ("to odd"), so
/// that rounding again to fewer bits gives what rounding once would have.
float to_f32_odd(double x) {
  auto f = static_cast<float>(x);
  const auto back = static_cast<double>(f);
  if (std::isnan(x) || back == x) return f;
  if (std::abs(back) > std::abs(x)) f = std::nextafter(f, 0.0F);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1U);
}

/// A 64-bit magnitude as a double that was rounded to odd at 53 bits.
double to_f64_odd(Wide v) {
  std::uint64_t m = v.magnitude;
  int shift = 0;
  std::uint64_t lost = 0;
  // 53 bits are what a double holds.
  while (m >> 53 != 0) {
    lost |= m & 1;
    m >>= 1;
    ++shift;
  }
  const double x = std::ldexp(static_cast<double>(m | lost), shift);
  return v.negative ? -x : x;
}

template <class Real>
Real scale_of(const QuantPlan& q, std::size_t k) {
  if (q.wide_dfp) return static_cast<Real>(std::ldexp(1.0, -q.fl));
  return static_cast<Real>(q.scales[k]);
}

template <class Real>
Real load_real(const ConvertPlan& p, std::size_t offset, std::size_t place) {
  switch (p.src_type) {
    case DType::kF32:
      return static_cast<Real>(load_as<float>(p.src, offset));
    case DType::kF64:
      return static_cast<Real>(load_as<double>(p.src, offset));
    case DType::kF16:
      return static_cast<Real>(f16_to_f32(load_as<std::uint16_t>(p.src, offset)));
    case DType::kBF16:
      return static_cast<Real>(bf16_to_f32(load_as<std::uint16_t>(p.src, offset)));
    case DType::kBool:
      return p.src[offset] != std::byte{0} ? Real{1} : Real{0};
    default:
      break;
  }
  const Wide v = load_integer(p.src_type, p.src, offset);
  if (!p.dequant.active) {
    const bool rounds_later = is_float(p.dst_type) && p.dst_type != DType::kF64 && !p.normalise;
    if (std::is_same_v<Real, double> && rounds_later) return static_cast<Real>(to_f64_odd(v));
    const auto magnitude = static_cast<Real>(v.magnitude);
    return v.negative ? -magnitude : magnitude;
  }
  const std::size_t k = p.dequant.index(place);
  const Real scale = scale_of<Real>(p.dequant, k);
  const std::int32_t zero_point = p.dequant.zero_points[k];
  if constexpr (std::is_same_v<Real, float>) {
    // At most 32 bits here, so the difference is exact and rounds once.
    const auto q = static_cast<std::int64_t>(v.negative ? 0 - v.magnitude : v.magnitude);
    return static_cast<float>(q - zero_point) * scale;
  } else {
    const auto magnitude = static_cast<double>(v.magnitude);
    return ((v.negative ? -magnitude : magnitude) - zero_point) * scale;
  }
}

/// round(x / scale) + zero point, before saturation to the type.
template <class Real>
Wide quantize(const QuantPlan& q, std::size_t place, Real x) {
  const std::size_t k = q.index(place);
  const Wide zero = make_wide(q.active ? q.zero_points[k] : 0);
  if (std::isnan(x)) return zero;
  const Real rounded = std::nearbyint(q.active ? x / scale_of<Real>(q, k) : x);
  const Real magnitude = std::abs(rounded);
  // Any type saturates then, whatever the zero point adds.
  if (magnitude >= static_cast<Real>(0x1p64)) return {rounded < 0, UINT64_MAX};
  Wide sum{rounded < 0, static_cast<std::uint64_t>(magnitude)};
  if (sum.negative == zero.negative) {
    if (__builtin_add_overflow(sum.magnitude, zero.magnitude, &sum.magnitude))
      sum.magnitude = UINT64_MAX;
  } else if (sum.magnitude >= zero.magnitude) {
    sum.magnitude -= zero.magnitude;
  } else {
    sum = {zero.negative, zero.magnitude - sum.magnitude};
  }
  return sum;
}

template <class Real>
void store_real(const ConvertPlan& p, std::size_t offset, std::size_t place, Real x) {
  float half_source;
  if constexpr (std::is_same_v<Real, double>)
    half_source = to_f32_odd(x);
  else
    half_source = x;
  switch (p.dst_type) {
    case DType::kF32:
      store_as(p.dst, offset, static_cast<float>(x));
      break;
    case DType::kF64:
      store_as(p.dst, offset, static_cast<double>(x));
      break;
    case DType::kF16:
      store_as(p.dst, offset, f32_to_f16(half_source));
      break;
    case DType::kBF16:
      store_as(p.dst, offset, f32_to_bf16(half_source));
      break;
    case DType::kBool:
      store_as(p.dst, offset, static_cast<std::uint8_t>(x != 0));
      break;
    default:
      store_integer(p.dst_type, p.dst, offset, quantize(p.quant, place, x));
      break;
  }
}

/// Calls f(c, source offset, destination offset, place) for every element in shape order.
template <class F>
void for_each_element(const ConvertPlan& p, F f) {
  // Nibbles are stored in this order; see store_integer().
  for (std::size_t n = 0; n < p.n; ++n) {
    for (std::size_t c = 0; c < p.c; ++c) {
      for (std::size_t h = 0; h < p.h; ++h) {
        const std::size_t from = p.from.offset(n, c, h, 0);
        const std::size_t to = p.to.offset(n, c, h, 0);
        const std::size_t place = p.place(n, c, h, 0);
        for (std::size_t w = 0; w < p.w; ++w)
          f(c, from + w * p.from.sw, to + w * p.to.sw, place + w);
      }
    }
  }
}

template <class Real>
void convert_reals(const ConvertPlan& p) {
  for_each_element(p, [&p](std::size_t c, std::size_t from, std::size_t to, std::size_t place) {
    // The order of convert(): dequantize, normalise, quantize.
    Real x = load_real<Real>(p, from, place);
    if (p.normalise) {
      const auto mean = static_cast<Real>(p.mean[p.mean.size() > 1 ? c : 0]);
      const auto std = static_cast<Real>(p.std[p.std.size() > 1 ? c : 0]);
      x = (x - mean) / std;
    }
    store_real(p, to, place, x);
  });
}

void move_bits(const ConvertPlan& p) {
  const std::size_t bits = dtype_bits(p.src_type);
  // Types of less than a byte are plain without a row stride, whatever else their layouts say.
  if (p.src_layout == p.dst_layout || bits < 8) {
    std::memmove(p.dst, p.src, dtype_bytes(p.src_type, p.to.total));
    // What no element uses of the last byte.
    const std::size_t used = p.to.total * bits % 8;
    if (used != 0) p.dst[p.to.total * bits / 8] &= std::byte{0xFF} >> (8 - used);
    return;
  }
  const std::size_t size = bits / 8;
  for_each_element(p, [&p, size](std::size_t, std::size_t from, std::size_t to, std::size_t) {
    std::memcpy(p.dst + to * size, p.src + from * size, size);
  });
}

}  // namespace

void store_zero_point(DType type, std::byte* base, std::size_t i, std::int32_t zero_point) {
  store_integer(type, base, i, make_wide(zero_point));
}

void fill_padding(const ConvertPlan& p) {
  const Addressing& to = p.to;
  if (to.stored_c == p.c && to.stored_w == p.w) return;
  const auto fill = [&p](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
    const std::size_t offset = p.to.offset(n, c, h, w);
    if (!is_integer(p.dst_type)) {
      std::memset(p.dst + dtype_bytes(p.dst_type, offset), 0, dtype_bytes(p.dst_type, 1));
      return;
    }
    const std::size_t last_w = p.w == 0 ? 0 : std::min(w, p.w - 1);
    const std::size_t k = p.quant.index(p.place(n, std::min(c, p.c - 1), h, last_w));
    const bool has = p.quant.active && p.quant.count != 0;
    store_zero_point(p.dst_type, p.dst, offset, has ? p.quant.zero_points[k] : 0);
  };
  for (std::size_t n = 0; n < p.n; ++n) {
    for (std::size_t c = 0; c < to.stored_c; ++c) {
      for (std::size_t h = 0; h < p.h; ++h)
        for (std::size_t w = c < p.c ? p.w : 0; w < to.stored_w; ++w) fill(n, c, h, w);
    }
  }
}

void convert_reference(const ConvertPlan& p) {
  switch (p.arithmetic) {
    case Arithmetic::kMoveBits:
      move_bits(p);
      break;
    case Arithmetic::kExactInteger:
      for_each_element(p, [&p](std::size_t, std::size_t from, std::size_t to, std::size_t) {
        store_integer(p.dst_type, p.dst, to, load_integer(p.src_type, p.src, from));
      });
      break;
    case Arithmetic::kF32:
      convert_reals<float>(p);
      break;
    case Arithmetic::kF64:
      convert_reals<double>(p);
      break;
  }
  fill_padding(p);
}

}  // namespace corelane::detail
