// Observers: of records, of events, side by side.
#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Observers : public Conformance {
 protected:
  struct Seen {
    std::vector<std::uint64_t> tags;
    std::shared_ptr<device::Observation> observation;
  };
  void observe(Seen& seen, std::uint64_t queue = 0, std::uint32_t one_in = 1) {
    device::ObserverOptions options;
    options.queue = queue;
    options.one_in = one_in;
    options.on_record = [&](const JobRecord& record) { seen.tags.push_back(record.tag); };
    auto observation = device_->observe(std::move(options));
    ASSERT_TRUE(observation.has_value()) << observation.error().to_string();
    seen.observation = *observation;
  }
};

TEST_F(Observers, EachSeesWhatItAskedFor) {
  const auto other = *device_->make_queue({});
  EXPECT_NE(other->id(), queue_->id());
  Seen all;
  Seen again;
  Seen one_queue;
  Seen sampled;
  observe(all);
  observe(again);
  observe(one_queue, other->id());
  observe(sampled, 0, 4);
  std::vector<std::uint64_t> tags;
  std::vector<std::uint64_t> of_other;
  for (std::uint64_t i = 0; i < 12; ++i) {
    Submission made = job();
    made.tag = i;
    const auto& queue = i % 3 == 0 ? other : queue_;
    if (i % 3 == 0) of_other.push_back(i);
    tags.push_back(i);
    if (i % 2 == 0)
      ASSERT_TRUE(queue->run(made).ok());
    else
      ASSERT_TRUE((*queue->submit(made))->wait());
  }
  for (const Seen* seen : {&all, &again, &one_queue, &sampled}) {
    EXPECT_TRUE(seen->observation->flush());
    EXPECT_EQ(seen->observation->dropped(), 0U);
  }
  EXPECT_EQ(all.tags, tags);
  EXPECT_EQ(again.tags, tags);
  EXPECT_EQ(one_queue.tags, of_other);
  EXPECT_EQ(sampled.tags, (std::vector<std::uint64_t>{0, 4, 8}));
  EXPECT_EQ(device_->read_trace().error().code(), Code::kWrongState);
}

TEST_F(Observers, EventsReachAllOfThem) {
  EventLog one;
  EventLog two;
  ASSERT_TRUE(one.watch(*device_).ok() && two.watch(*device_).ok());
  ASSERT_TRUE(device_->reset(CoreSet::of({0})).ok());
  ASSERT_EQ(one.all().size(), 1U);
  ASSERT_EQ(two.all().size(), 1U);
  EXPECT_EQ(one.all()[0].stamp, two.all()[0].stamp);
}

TEST_F(Observers, WithoutAFunctionThereIsNone) {
  EXPECT_EQ(device_->observe({}).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane::conformance
