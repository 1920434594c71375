#include "adapters/rknn/api/rknn_chip.h"

#include <algorithm>
#include <atomic>

#include "base/text_parts.h"
#include "base/trust/secure_environment.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"

namespace corelane::rknn {

/// Other chips have the alignments of RK3588, the defaults.
Chip chip_of(const device::DeviceInfo& info) {
  Chip chip;
  if (info.profile == "rk3566" || info.profile == "rk3568") {
    chip.row_pixels = 8;
    chip.block_bytes = 8;
  }
  chip.cores = static_cast<std::uint32_t>(info.cores.size());
  chip.core_masks = chip.cores > 1;
  return chip;
}

Result<std::string> device_text() {
  if (std::string inner = environment_text("CORELANE_RKNN_INNER"); !inner.empty()) {
    CORELANE_ASSIGN(const device::DeviceSpec spec, device::parse_device_spec(inner));
    if (spec.kind == "rknn")
      return error(Code::kInvalidArgument,
                   "CORELANE_RKNN_INNER={} names a device that loads a library like this one, "
                   "without end; use virtual, or any other kind",
                   inner);
    return inner;
  }
  const std::string chosen = environment_text("CORELANE_DEVICE");
  if (chosen.empty()) return device::default_device();
  CORELANE_ASSIGN(const device::DeviceSpec spec, device::parse_device_spec(chosen));
  // The program uses the device "rknn", which has loaded this library: take the default.
  if (spec.kind == "rknn") return device::default_device();
  return chosen;
}

Result<Duration> timeout_from_environment() {
  const std::string text = environment_text(kTimeoutVariable);
  if (text.empty()) return Duration{0};
  const auto ms = parse_number<std::uint32_t>(text);
  if (ms) return std::chrono::milliseconds(*ms);
  return error(
      Code::kInvalidArgument,
      "{}='{}' is not a number of milliseconds from 0 (none) to {}; correct it or unset it",
      kTimeoutVariable, text, UINT32_MAX);
}

Outcome read_core_mask(rknn_core_mask mask, const Chip& chip, device::CoreSet& cores) {
  const auto bits = static_cast<std::uint32_t>(mask);
  if (!chip.core_masks) {
    Outcome none = outcome(RKNN_ERR_TARGET_PLATFORM_UNMATCH,
                           "not support core mask: {}, this chip has one core and no core masks; "
                           "leave out the call",
                           bits);
    // Clients of all chips ask for any of the API's masks, and go on with the core that there is.
    static std::atomic<bool> told{false};
    if (bits > RKNN_NPU_CORE_0_1_2 && bits != RKNN_NPU_CORE_ALL) return none;
    return std::move(none).as_probe(told.exchange(true, std::memory_order_relaxed));
  }
  const std::uint32_t masked = std::min<std::uint32_t>(chip.cores, 16);  // A mask has 16 bits.
  if (bits == RKNN_NPU_CORE_AUTO)
    cores = device::CoreSet::any();
  else if (bits == RKNN_NPU_CORE_ALL)
    cores = device::CoreSet::platform();
  else if (bits < RKNN_NPU_CORE_ALL && (bits >> masked) == 0)
    cores = device::CoreSet::mask(bits);
  else
    return outcome(RKNN_ERR_FAIL,
                   "not support core mask: {}, this chip has {} cores: use 0 (auto), a mask of "
                   "their bits from 1 to {}, or 0xffff (all)",
                   bits, chip.cores, (1U << masked) - 1);
  return {};
}

std::int32_t priority_of(std::uint32_t flags) noexcept {
  const std::uint32_t priority = flags & 3U;
  return priority == RKNN_FLAG_PRIOR_HIGH ? 0 : priority == RKNN_FLAG_PRIOR_MEDIUM ? -32 : -64;
}

}  // namespace corelane::rknn
