/// What the API says of the chip: which device it is, its cores and alignments.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/rknn/api/rknn_edge.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "rknn_api.h"

namespace corelane::device {
struct DeviceInfo;
}  // namespace corelane::device

namespace corelane::rknn {

/// Cores of the device, and alignments of native layouts by chip, as docs/apis/rknn.md lists them
/// ("Types, layouts, quantization", "Cores and batch").
struct Chip {
  std::uint32_t row_pixels = 16;   ///< Rows of NHWC inputs are padded to this many pixels.
  std::uint32_t block_bytes = 16;  ///< Bytes of one C2 block.
  std::uint32_t cores = 3;
  bool core_masks = true;  ///< False on chips of one core, where masks are an error.
};
Chip chip_of(const device::DeviceInfo& info);

/// The device of this library: `CORELANE_RKNN_INNER`, else `CORELANE_DEVICE`, else the virtual
/// RK3588. A device of kind "rknn" would load a library like this one again: an error in the first,
/// the virtual NPU instead in the second.
Result<std::string> device_text();

/// The variable that gives runs a time limit whose caller gives none.
inline constexpr const char* kTimeoutVariable = "CORELANE_RKNN_TIMEOUT_MS";
/// What it says when a context is made; 0 where it is not set, or says none. kInvalidArgument for
/// anything but a number of ms: a limit that is not kept would be silent.
Result<Duration> timeout_from_environment();

/// The cores of a mask; the failure names the masks this chip has. A chip of one core has none, and
/// says so by RKNN_ERR_TARGET_PLATFORM_UNMATCH: clients of all chips go on after that code alone.
Outcome read_core_mask(rknn_core_mask mask, const Chip& chip, device::CoreSet& cores);

/// The device priority of the flags' two lowest bits.
std::int32_t priority_of(std::uint32_t flags) noexcept;

}  // namespace corelane::rknn
