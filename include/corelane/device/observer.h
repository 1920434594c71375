/// Watching a device: its events, and the records of the jobs that end. Any number of observers,
/// none of which takes anything from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "corelane/base/api.h"
#include "corelane/base/clock.h"
#include "corelane/device/figures.h"

namespace corelane::device {

/// kCoreReset: cores were reset, by a job's deadline, a crash or reset(). kLost and kBack: the
/// device went away, and is there again; see Health. kLog: a line of the device's own log: resets,
/// losses, refused jobs, and what its engine writes.
enum class EventKind : std::uint8_t { kCoreReset, kLost, kBack, kLog };
/// Something that happened to a device, not to one job.
struct Event {
  EventKind kind = EventKind::kLog;
  TimePoint stamp{};            ///< The device's.
  std::uint64_t core_bits = 0;  ///< Cores concerned.
  std::string text;             ///< For people; one line.
};

/// What an observer wants. The functions are called from one thread of the device that runs no
/// jobs, one at a time, in the order in which things happened, with no lock held. They may call
/// the device; an exception is logged and dropped.
struct ObserverOptions {
  std::function<void(const Event&)> on_event;       ///< Empty: no events.
  std::function<void(const JobRecord&)> on_record;  ///< Empty: no records. Each within some 5 ms.
  std::uint64_t queue = 0;    ///< Records of this queue (Queue::id()); 0: all.
  std::uint32_t one_in = 1;   ///< Of its records the first of each n.
  bool group_events = false;  ///< Events wait for others, as records do; else they come at once.
  /// What may wait to be delivered, events and records; 1 to 2^20. What comes while so many wait is
  /// dropped and counted.
  std::size_t ring = 1024;
};

/// A subscription; ends with the last reference to it. That of a device keeps it alive. Any thread.
class CORELANE_API Observation {
 public:
  /// Nothing is delivered from here on: waits for the end of a call that runs, unless it is made in
  /// that call. What waits is dropped.
  virtual ~Observation() = default;
  /// Events and records that were dropped because the ring was full.
  virtual std::uint64_t dropped() const = 0;
  /// Waits until what has happened before is delivered; false when `until` came first, and in a
  /// call of an observer of the same device or set.
  virtual bool flush(TimePoint until = kNever) = 0;
};

}  // namespace corelane::device
