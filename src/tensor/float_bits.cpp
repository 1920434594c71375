#include <bit>

#include "corelane/tensor/convert.h"

namespace corelane {

std::uint16_t f32_to_f16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half;
  if (magnitude > 0x7F800000U) {  // NaN: quiet, with the upper bits of its payload.
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x47800000U) {  // 65536 and above, infinity.
    half = 0x7C00U;
  } else if (magnitude >=
             0x38800000U) {  // Normal; a carry out of the mantissa is the next exponent.
    half = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Denormal: adding 0.5 aligns the value so that the adder rounds at the last place of an f16.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(aligned) - 0x3F000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float f16_to_f32(std::uint16_t h) noexcept {
  const std::uint32_t sign = (h & 0x8000U) << 16;
  const std::uint32_t magnitude = h & 0x7FFFU;
  std::uint32_t bits;
  if (magnitude > 0x7C00U)  // NaN, made quiet as the CPU's own instructions do.
    bits = 0x7FC00000U | (magnitude << 13);
  else if (magnitude == 0x7C00U)
    bits = 0x7F800000U;
  else if (magnitude >= 0x400U)
    bits = (magnitude << 13) + 0x38000000U;
  else  // Denormal: magnitude * 2^-24, exact.
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  return std::bit_cast<float>(sign | bits);
}

std::uint16_t f32_to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float bf16_to_f32(std::uint16_t b) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

}  // namespace corelane
