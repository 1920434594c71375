/// The order in which mutexes may be taken: one list for the whole house, printed with reasons in
/// docs/locks.md. A thread takes a mutex only while every mutex that it holds has a higher rank.
#pragma once

#include <cstdint>

namespace corelane {

/// The rank of a mutex: the number of its floor times 100, and a place within the floor.
enum class LockRank : std::uint16_t {
  kReserve = 0,  ///< Memory kept for what must not fail: may be taken under any other mutex.
  kLeaf = 1,     ///< Guards a few lines that call nothing, or the reserve alone: under any other.

  // 1xx: base.
  kClock = 110,  ///< A clock's timers and waiters. Timers are set under other mutexes.

  // 2xx: dispatch.
  kCallbackThread = 210,  ///< Posted to under the lock of a device or a session.
  kDeliveryRing = 220,    ///< One observer; waits on the clock.

  // 4xx: device.
  kFaultPlan = 401,      ///< A plan's random numbers.
  kHostOperators = 402,  ///< HostOperatorTable.
  kLeaseSearch = 403,    ///< A pause in the search for cores: the clock's waits want a lock.
  kFence = 410,          ///< One fence; waits on the clock.
  kFenceWatcher = 411,   ///< The descriptors of all imported fences.

  // 5xx: lanes.
  kLaneExecutables = 510,  ///< LanedDevice: its executables.
  kLaneLeases = 515,       ///< LanedDevice: the leases of its cores.
  kLaneScheduler = 520,    ///< LaneScheduler: all jobs and cores of a device; waits on the clock.

  // 6xx: drivers and runtime.
  kProgramExecutables = 602,  ///< ExecutableSet: which shapes are prepared, or being prepared.
  kBatchForms = 603,          ///< StaticForms, EngineTrial: shapes that are due; starts its thread.
  kTurnGroup = 604,           ///< Whose turn it is in a group; sets timers.
  kInferenceSet = 605,        ///< The handles of one set; waits on the clock.
  kOnnxReader = 611,    ///< drivers/virtual: the engine's list of readers, which may load one.
  kPackedMatrix = 612,  ///< drivers/virtual: one packed B, while it is packed.

  // 7xx: session.
  kFuture = 710,   ///< The result of a call; waits on the clock.
  kSession = 720,  ///< Queue and states of a session; posts to the callback thread, sets timers.

  // 7xx: scheduler.
  kSleepBackend = 735,  ///< A call of the backend Sleep; waits on the clock.
  kTicket = 741,        ///< The answer of a request; waits on the clock.
  kInstance = 742,      ///< The next call of an instance.
  kInstances = 744,     ///< The instances of a group.
  kNode = 748,          ///< The table of a node; sets timers.

  // 9xx: adapters.
  kDoorWait = 910,  ///< How an inference of a door stands, for its waiters; waits on the clock.
  kDoorOperators = 920,  ///< A door's operators and their registrations. Held while the table of
                         ///< host operators is changed.
  kDoorContext = 990,    ///< Orders the functions of one context. Anything may be taken under it.

  kUnranked = 0xffff,  ///< Not checked: see docs/locks.md; and mutexes of tests.
};

}  // namespace corelane
