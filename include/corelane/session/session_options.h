/// The words of a session's options, and how they are read. SessionOptions itself is in session.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"

namespace corelane {

/// Which cores all contexts of a session share, when it has no schedule.
enum class TpMode : std::uint8_t { kAuto, kAll, kCore0, kCore1, kCore2, kCores01, kCores012 };

/// Where a task goes.
enum class PlacementPolicy : std::uint8_t {
  kFormula,      ///< Task t on core schedule[t % length], whatever the others do.
  kLeastLoaded,  ///< The first core of the schedule that becomes free; the formula breaks ties.
  kAdaptive,     ///< As kLeastLoaded, but the eighth uncontended task in a row takes all cores of
              ///< the schedule at once, as do those after it, where tasks take 0.1 ms or more and
              ///< the device has jobs of several cores. Such tasks stay on one context, whichever
              ///< the formula says. Short ones (30 ms on two cores, less on more) try both from
              ///< time to time, first after 32 tasks, and keep to one core where that is quicker.
};

/// In which order the dimensions of 4-D inputs are given and reported (others are not touched).
enum class InputLayout : std::uint8_t {
  kNchw,          ///< N, C, H, W, "nchw" or "original".
  kNchwSoftware,  ///< The same, "nchw_software" or "original_software".
  kNhwc,          ///< N, H, W, C.
  kAny,           ///< As kNhwc.
};

/// Which element types an input takes.
enum class InputRules : std::uint8_t {
  kStrict,   ///< Its own type alone (kTypeMismatch otherwise).
  kLenient,  ///< f32 f16 i8 u8 i16 u16 i32 u32 i64 bool, converted. f64 only where it is its own.
};

/// What the outputs are.
enum class OutputForm : std::uint8_t {
  kDeclared,  ///< The type that the model declares.
  kFloat,     ///< f32, converted where the model has another type.
  kRaw,       ///< Quantized outputs as integers with scale and zero point; others as declared.
};

/// max_queue_size and max_pending_callbacks: no limit.
inline constexpr std::int64_t kUnlimited = INT64_MAX;

struct SessionOptions;  // session.h

/// Reads a schedule: "0,1,2", "[0, 1]", "0 1", "2". kInvalidArgument names the bad token; signs,
/// other separators and empty lists are bad.
CORELANE_API Result<std::vector<std::size_t>> parse_schedule(std::string_view text);
/// Reads auto, all, 0, 1, 2, "0,1" or "0,1,2"; letter case and blanks do not matter.
/// kInvalidArgument lists the modes.
CORELANE_API Result<TpMode> parse_tp_mode(std::string_view text);
/// The name of a mode, as parse_tp_mode reads it.
CORELANE_API std::string_view tp_mode_name(TpMode mode) noexcept;
/// Reads "original", "nchw", ...; letter case does not matter. kInvalidArgument lists the layouts.
CORELANE_API Result<InputLayout> parse_input_layout(std::string_view text);
/// The name of a layout, as parse_input_layout reads it.
CORELANE_API std::string_view input_layout_name(InputLayout layout) noexcept;
/// Reads "formula", "least_loaded" or "adaptive". kInvalidArgument lists the policies.
CORELANE_API Result<PlacementPolicy> parse_placement(std::string_view text);
/// The name of a policy, as parse_placement reads it.
CORELANE_API std::string_view placement_name(PlacementPolicy policy) noexcept;

/// The cores that a mode stands for.
CORELANE_API device::CoreSet cores_of(TpMode mode) noexcept;

/// kInvalidArgument for values and combinations that are not allowed; kOutOfCores, with what there
/// is, for cores that a device of `cores` cores lacks. Session::create calls it before it makes
/// anything.
CORELANE_API Status check(const SessionOptions& options, std::size_t cores);

}  // namespace corelane
