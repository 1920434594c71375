/// Where a program of the API stands, and what may follow. Plain data, no lock.
#pragma once

#include <cstdint>

#include "QAicApi.h"

namespace corelane::qaic {

/// What happens to a program.
enum class ProgramEvent : std::uint8_t {
  kLoaded,
  kLoadFailed,
  kActivated,
  kActivationFailed,
  kDeactivated,
  kUnloaded,
  kLost,  ///< Its device was.
};

namespace program_ways {

struct Way {
  ProgramEvent event;
  unsigned from;  ///< Bits of statuses.
  QAicProgramStatus to;
};
constexpr unsigned bit(QAicProgramStatus status) noexcept {
  // 0, 1, 2, and 100 to 102.
  return 1U << (static_cast<unsigned>(status) % 50U + (status >= QAIC_PROGRAM_ERROR ? 8U : 0U));
}
inline constexpr unsigned kUnready =
    bit(QAIC_PROGRAM_INIT) | bit(QAIC_PROGRAM_ERROR) | bit(QIAC_PROGRAM_LOAD_ERROR);
inline constexpr unsigned kIdle = bit(QAIC_PROGRAM_LOADED) | bit(QIAC_PROGRAM_ACTIVATE_ERROR);
inline constexpr unsigned kActive = bit(QAIC_PROGRAM_FULLY_ACTIVATED);
inline constexpr Way kWays[] = {
    {ProgramEvent::kLoaded, kUnready, QAIC_PROGRAM_LOADED},
    {ProgramEvent::kLoadFailed, kUnready, QIAC_PROGRAM_LOAD_ERROR},
    {ProgramEvent::kActivated, kIdle, QAIC_PROGRAM_FULLY_ACTIVATED},
    {ProgramEvent::kActivationFailed, kIdle, QIAC_PROGRAM_ACTIVATE_ERROR},
    {ProgramEvent::kDeactivated, kActive, QAIC_PROGRAM_LOADED},
    {ProgramEvent::kUnloaded, kUnready | kIdle, QAIC_PROGRAM_INIT},
    {ProgramEvent::kLost, kUnready | kIdle | kActive, QAIC_PROGRAM_ERROR},
};

}  // namespace program_ways

/// One of the API's statuses, which changes only along the ways listed here.
class ProgramStates {
 public:
  QAicProgramStatus status() const noexcept { return status_; }
  bool active() const noexcept { return status_ == QAIC_PROGRAM_FULLY_ACTIVATED; }
  /// Its constants and code are on the device.
  bool loaded() const noexcept {
    return active() || status_ == QAIC_PROGRAM_LOADED || status_ == QIAC_PROGRAM_ACTIVATE_ERROR;
  }

  /// False, and nothing changes, when no way leads from here.
  bool advance(ProgramEvent event) noexcept {
    for (const program_ways::Way& way : program_ways::kWays) {
      if (way.event != event || (way.from & program_ways::bit(status_)) == 0) continue;
      status_ = way.to;
      return true;
    }
    return false;
  }

 private:
  QAicProgramStatus status_ = QAIC_PROGRAM_INIT;
};

}  // namespace corelane::qaic
