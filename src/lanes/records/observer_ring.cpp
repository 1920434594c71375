#include "lanes/records/observer_ring.h"

#include "base/guard.h"

namespace corelane::lanes {
namespace {

using Item = std::variant<device::Event, device::JobRecord>;

/// What is called with each item; only the functions of the options are used.
std::function<void(const Item&)> caller_of(const device::ObserverOptions& options) {
  return [on_event = options.on_event, on_record = options.on_record](const Item& item) {
    if (const auto* event = std::get_if<device::Event>(&item))
      run_callback("device", "an observer of events", on_event, *event);
    else
      run_callback("device", "an observer of records", on_record,
                   std::get<device::JobRecord>(item));
  };
}

}  // namespace

ObserverRing::ObserverRing(const device::ObserverOptions& options)
    : DeliveryRing(options.ring, options.one_in, caller_of(options)),
      queue_(options.queue),
      wants_events_(options.on_event != nullptr),
      wants_records_(options.on_record != nullptr),
      group_events_(options.group_events) {}

ObserverRing::Delivery ObserverRing::note(const device::Event& event) {
  return wants_events_ ? add_each(event, !group_events_) : Delivery::kNone;
}

ObserverRing::Delivery ObserverRing::note(const device::JobRecord& record) {
  if (!wants_records_ || (queue_ != 0 && queue_ != record.queue)) return Delivery::kNone;
  return add_sampled(record);
}

}  // namespace corelane::lanes
