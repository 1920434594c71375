/// Rows of floats to what the NPU multiplies, and back. Sizes are elements. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace corelane::ggml {

/// IEEE 754 binary32 to binary16, to nearest even; beyond 65504 infinity.
void floats_to_halves(const float* in, std::size_t count, std::uint16_t* out);
void halves_to_floats(const std::uint16_t* in, std::size_t count, float* out);

/// The power of two that a row is divided by before it becomes halves: 1 where its largest element
/// is one that they hold well, or is not finite; else such that the largest becomes 2048 to 4096,
/// as far as floats reach.
float scale_for_halves(const float* row, std::size_t count);

/// Multiplies blocks of a row by fixed signs and the normalised Hadamard matrix, in place: blocks
/// of 512, or of the largest power of two that fits, one after another; where that leaves a rest,
/// one more block that ends with the row. All of it is orthogonal: the product of two rows turned
/// alike is that of the rows, while what int8 has no room for beside small elements is spread over
/// a block: single large ones, and by the signs what all have in common.
void rotate(float* row, std::size_t count);

/// Symmetric: out = round(in / scale), within 127; the scale is returned, 0 for a row of zeros or
/// of elements below 2^-120. A row that is not finite gives a scale that is not, so that the
/// products of the row are not either.
float floats_to_int8(const float* in, std::size_t count, std::int8_t* out);

/// The same within 7, two elements a byte, the first in its low half; an even count. Of a few
/// scales the one that errs least: so few steps are better spent on the many elements than on the
/// largest ones, which become 7 or -7.
float floats_to_int4(const float* in, std::size_t count, std::uint8_t* out);

/// out[i] (+)= sums[i] * row_scale * column_scales[i].
void scale_sums(const std::int32_t* sums, std::size_t count, float row_scale,
                const float* column_scales, bool add, float* out);
void scale_sums(const std::int16_t* sums, std::size_t count, float row_scale,
                const float* column_scales, bool add, float* out);

}  // namespace corelane::ggml
