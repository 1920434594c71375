#include "runtime/chain/chain_observers.h"

#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "corelane/device/device.h"

namespace corelane::runtime {

class ChainObservers::Observer final : public device::Observation {
 public:
  Observer(std::shared_ptr<ChainObservers> all, std::shared_ptr<Ring> ring,
           std::shared_ptr<device::Device> chain)
      : chain_(std::move(chain)), all_(std::move(all)), ring_(std::move(ring)) {}
  /// The subscriptions to the devices first: they fill the ring.
  ~Observer() override {
    sources_.clear();
    all_->remove(ring_);
  }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  void add(std::shared_ptr<device::Observation> source) { sources_.push_back(std::move(source)); }
  std::uint64_t dropped() const override {
    std::uint64_t sum = ring_->dropped();
    for (const auto& source : sources_) sum += source->dropped();
    return sum;
  }
  bool flush(TimePoint until) override {
    // In a forked child there is no thread that delivers, and in an observer the wait would be for
    // itself.
    if (fork_count() != all_->process_ || all_->thread_->is_current()) return false;
    // The devices first: what they deliver goes into the ring.
    for (const auto& source : sources_)
      if (!source->flush(until)) return false;
    return all_->thread_->flush(ring_, until);
  }

 private:
  const std::shared_ptr<device::Device> chain_;
  const std::shared_ptr<ChainObservers> all_;
  const std::shared_ptr<Ring> ring_;
  std::vector<std::shared_ptr<device::Observation>> sources_;
};

ChainObservers::ChainObservers(const std::shared_ptr<Clock>& clock)
    : process_(fork_count()),
      thread_(std::make_shared<dispatch::DeliveryThread>(clock, "corelane-chain", "runtime")),
      watchers_(std::make_shared<const Watchers>()) {}

ChainObservers::~ChainObservers() {
  if (fork_count() == process_) thread_->stop();
}

/// Watches a device's events, with its cores among those of all.
Status ChainObservers::watch(const Source& source, bool group_events,
                             const std::shared_ptr<Ring>& ring, Observer& observer) {
  device::ObserverOptions options;
  options.group_events = group_events;
  options.on_event = [thread = thread_, ring, cores = source.cores](const device::Event& event) {
    device::Event told = event;
    told.core_bits = cores.among_all(event.core_bits);
    thread->arrange(ring, ring->add_each(std::move(told), true));
  };
  CORELANE_ASSIGN(auto made, source.device->observe(std::move(options)));
  observer.add(std::move(made));
  return {};
}

Result<std::shared_ptr<device::Observation>> ChainObservers::observe(
    device::ObserverOptions options, const std::vector<Source>& sources,
    std::shared_ptr<device::Device> chain) {
  constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
  if (!options.on_event && !options.on_record)
    return error(Code::kInvalidArgument,
                 "an observer of '{}' without on_event and on_record; give one of them",
                 chain->info().instance);
  if (options.one_in == 0 || options.ring == 0 || options.ring > kMostWaiting)
    return error(Code::kInvalidArgument,
                 "an observer of one in {} with a ring of {}; one_in is at least 1, the ring 1 to "
                 "{}",
                 options.one_in, options.ring, kMostWaiting);
  CORELANE_TRY(thread_->start());
  const bool events = static_cast<bool>(options.on_event);
  const bool records = static_cast<bool>(options.on_record);
  auto ring = std::make_shared<Ring>(
      options.ring, options.one_in,
      [on_event = std::move(options.on_event),
       on_record = std::move(options.on_record)](const auto& item) {
        if (const auto* event = std::get_if<device::Event>(&item))
          run_callback("device", "an observer of events", on_event, *event);
        else
          run_callback("device", "an observer of jobs", on_record, std::get<1>(item));
      });
  auto observer = std::make_shared<Observer>(shared_from_this(), ring, std::move(chain));
  for (const Source& source : sources)
    if (events) CORELANE_TRY(watch(source, options.group_events, ring, *observer));
  if (!records) return observer;
  const MutexLock lock(mutex_);
  Watchers more = *watchers_;
  more.push_back({std::move(ring), options.queue});
  watchers_ = std::make_shared<const Watchers>(std::move(more));
  records_.store(true, std::memory_order_relaxed);
  return observer;
}

void ChainObservers::remove(const std::shared_ptr<Ring>& ring) {
  if (fork_count() != process_) return;
  {
    const MutexLock lock(mutex_);
    Watchers fewer = *watchers_;
    std::erase_if(fewer, [&](const Watcher& one) { return one.ring == ring; });
    records_.store(!fewer.empty(), std::memory_order_relaxed);
    watchers_ = std::make_shared<const Watchers>(std::move(fewer));
  }
  ring->close();
}

void ChainObservers::note(const device::JobRecord& record) {
  std::shared_ptr<const Watchers> all;
  {
    const MutexLock lock(mutex_);
    all = watchers_;
  }
  for (const Watcher& one : *all)
    if (one.queue == 0 || one.queue == record.queue)
      thread_->arrange(one.ring, one.ring->add_sampled(record));
}

}  // namespace corelane::runtime
