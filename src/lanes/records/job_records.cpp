#include "lanes/records/job_records.h"

#include "lanes/aftermath.h"

namespace corelane::lanes {
namespace {

template <class Noted>
void tell(const std::vector<std::shared_ptr<ObserverRing>>& observers, const Noted& noted,
          Aftermath& after) {
  for (const auto& observer : observers) {
    const ObserverRing::Delivery delivery = observer->note(noted);
    if (delivery != ObserverRing::Delivery::kNone)
      after->deliveries.push_back({observer, delivery});
  }
}

}  // namespace

void JobRecords::add(const device::JobRecord& record, Aftermath& after) {
  trace_.add(record);
  tell(observers_, record, after);
}

void JobRecords::add(const device::Event& event, Aftermath& after) {
  tell(observers_, event, after);
}

void JobRecords::start_trace(std::size_t capacity) {
  trace_.start(capacity);
  update();
}

void JobRecords::add_observer(std::shared_ptr<ObserverRing> observer) {
  observers_.push_back(std::move(observer));
  update();
}

void JobRecords::remove_observer(const ObserverRing* observer) {
  std::erase_if(observers_, [&](const auto& other) { return other.get() == observer; });
  update();
}

}  // namespace corelane::lanes
