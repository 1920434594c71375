/// One observer of a device: what it wants of what happens there.
#pragma once

#include <cstdint>
#include <variant>

#include "corelane/device/observer.h"
#include "dispatch/delivery_ring.h"

namespace corelane::lanes {

/// Filled under the scheduler's lock, emptied by the device's thread for observers. Any thread.
class ObserverRing final
    : public dispatch::DeliveryRing<std::variant<device::Event, device::JobRecord>> {
 public:
  using Delivery = dispatch::Delivery;

  explicit ObserverRing(const device::ObserverOptions& options);

  Delivery note(const device::Event& event);
  Delivery note(const device::JobRecord& record);

 private:
  const std::uint64_t queue_;
  const bool wants_events_;
  const bool wants_records_;
  const bool group_events_;
};

}  // namespace corelane::lanes
