/// Memory layouts of 4-D tensors, and how many bytes they take.
///
/// A tensor's *shape* is always in model order (N, C, H, W for images). The layout says how those
/// elements lie in memory:
///  - kPlain: row-major in shape order (for 4-D: NCHW).
///  - kNHWC:  N, H, W, C; a row holds `w_stride` pixels (0: W).
///  - kNC1HWC2: C split into C1 = ceil(C / C2) blocks; memory order N, C1, H, W, C2.
///    The tail of the last block is zero.
///    A row holds `w_stride` pixels (0: W).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"

namespace corelane {

class Shape;

enum class LayoutKind : std::uint8_t { kPlain = 0, kNHWC = 1, kNC1HWC2 = 2 };

/// A layout with its parameters. A value.
struct Layout {
  LayoutKind kind = LayoutKind::kPlain;
  std::uint32_t c2 = 0;        ///< Channels per block; kNC1HWC2 only, >= 1.
  std::uint32_t w_stride = 0;  ///< Pixels per row in memory, 0 for W; also allowed with kPlain 4-D.
  bool operator==(const Layout&) const = default;
};

/// "plain", "nhwc", "nc1hwc2".
CORELANE_API std::string_view layout_name(LayoutKind kind) noexcept;
/// The layout that layout_name() gives this name; nullopt for none.
CORELANE_API std::optional<LayoutKind> layout_from_name(std::string_view name) noexcept;

/// Bytes of a static `shape` of `dtype` in `layout`, padding included. kInvalidArgument when the
/// layout does not fit the shape (not 4-D, c2 of 0, w_stride below W), when a dimension is open, or
/// when the size overflows. A type of less than 8 bits is allowed
/// with kPlain without stride only.
CORELANE_API Result<std::size_t> storage_bytes(const Shape& shape, DType dtype,
                                               const Layout& layout);

/// Whether each place of dimension 0 of a plain tensor takes whole bytes, so that tensors can be
/// cut and joined there; of types of less than 8 bits some do not. False for a scalar and, of such
/// types, where another dimension is open.
CORELANE_API bool has_whole_rows(const Shape& shape, DType dtype) noexcept;

}  // namespace corelane
