#include "runtime/set/set_records.h"

#include <utility>

#include "base/fork.h"
#include "base/guard.h"

namespace corelane::runtime {

class SetRecords::Observer final : public device::Observation {
 public:
  Observer(std::shared_ptr<SetRecords> records, std::shared_ptr<Ring> ring)
      : records_(std::move(records)), ring_(std::move(ring)) {}
  ~Observer() override { records_->remove(ring_); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  std::uint64_t dropped() const override { return ring_->dropped(); }
  bool flush(TimePoint until) override {
    if (fork_count() != records_->process_) return false;
    return records_->thread_->flush(ring_, until);
  }

 private:
  const std::shared_ptr<SetRecords> records_;
  const std::shared_ptr<Ring> ring_;
};

SetRecords::SetRecords(const std::shared_ptr<Clock>& clock)
    : process_(fork_count()),
      thread_(std::make_shared<dispatch::DeliveryThread>(clock, "corelane-record", "runtime")),
      rings_(std::make_shared<const Rings>()) {}

SetRecords::~SetRecords() {
  if (fork_count() == process_) thread_->stop();
}

Result<std::shared_ptr<device::Observation>> SetRecords::observe(SetObserverOptions options) {
  constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
  if (!options.on_record)
    return error(Code::kInvalidArgument, "an observer of an inference set without on_record");
  if (options.one_in == 0 || options.ring == 0 || options.ring > kMostWaiting)
    return error(Code::kInvalidArgument,
                 "an observer of one in {} with a ring of {}; one_in is at least 1, the ring 1 to "
                 "{}",
                 options.one_in, options.ring, kMostWaiting);
  CORELANE_TRY(thread_->start());
  auto ring = std::make_shared<Ring>(
      options.ring, options.one_in, [f = std::move(options.on_record)](const SetRecord& record) {
        run_callback("runtime", "an observer of an inference set", f, record);
      });
  auto observer = std::make_shared<Observer>(shared_from_this(), ring);
  const MutexLock lock(mutex_);
  Rings more = *rings_;
  more.push_back({std::move(ring), options.at_completion ? When::kCompleted : When::kCollected});
  rings_ = std::make_shared<const Rings>(std::move(more));
  on_.store(true, std::memory_order_relaxed);
  return observer;
}

void SetRecords::remove(const std::shared_ptr<Ring>& ring) {
  if (fork_count() != process_) return;
  {
    const MutexLock lock(mutex_);
    Rings fewer = *rings_;
    std::erase_if(fewer, [&](const Watch& one) { return one.ring == ring; });
    on_.store(!fewer.empty(), std::memory_order_relaxed);
    rings_ = std::make_shared<const Rings>(std::move(fewer));
  }
  ring->close();
}

std::shared_ptr<const SetRecords::Rings> SetRecords::rings() const {
  const MutexLock lock(mutex_);
  return rings_;
}

/// The thread runs since the first observer came, so that nothing is written to the log here.
void SetRecords::note(const SetRecord& record, When when) {
  const std::shared_ptr<const Rings> all = rings();
  for (const auto& [ring, wanted] : *all)
    if (wanted == when) thread_->arrange(ring, ring->add_sampled(record));
}

}  // namespace corelane::runtime
