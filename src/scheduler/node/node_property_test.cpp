#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "scheduler/backends/builtin_backends.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

/// A device below the scripted backends: some calls lose it, and all calls that end until it is
/// back fail.
class LostNowAndThen {
 public:
  LostNowAndThen(std::shared_ptr<VirtualClock> clock, std::uint64_t one_in)
      : clock_(std::move(clock)), one_in_(one_in) {}
  /// At the end of each call; any thread.
  Status call() {
    const std::int64_t now = clock_->now().time_since_epoch().count();
    if (one_in_ != 0 && ++calls_ % one_in_ == 0) back_ = now + Duration(milliseconds(15)).count();
    return now < back_ ? error(Code::kDeviceLost, "lost") : Status();
  }

 private:
  const std::shared_ptr<VirtualClock> clock_;
  const std::uint64_t one_in_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::int64_t> back_{0};
};

/// A random node under random use; what must hold whatever happens.
void interleave(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  VirtualBench bench;
  add_builtin_backends(bench.registry);
  const double a = static_cast<double>(below(5)), b = static_cast<double>(below(4)) / 2;
  bench.script->time = linear_time(a, b);
  bench.script->repeatable = below(2) == 0;
  LostNowAndThen device(bench.script->clock, below(2) * (5 + below(20)));
  const std::uint64_t bad = below(10), thrown = below(10);
  bench.script->body = [&](std::span<const RequestPtr> batch) -> Status {
    CORELANE_TRY(device.call());
    for (const RequestPtr& request : batch) {
      const auto data = static_cast<std::uint64_t>(std::any_cast<int>(request->values.at(kData)));
      if (data % 10 == bad) return error(Code::kEngineFailed, "bad");
      if (data % 37 == thrown) throw std::runtime_error("thrown");
      if (data % 11 == 3)
        request->fail(error(Code::kMalformed, "this one"));
      else if (data % 13 != 5)
        request->values[kResult] = static_cast<int>(data);
    }
    return {};
  };
  const std::string shapes[][2] = {{"1", "8"}, {"1&4", "1&4"}, {"1&4&8", "2&4&8"}, {"1", "1"}};
  const auto& shape = shapes[below(4)];
  const char* policies[] = {"reject", "drop_oldest"};
  const char* batchings[] = {"idle", "full", "learned"};
  const char* plans[] = {"greedy", "cost"};
  Config config = {{"min", shape[0]},
                   {"max", shape[1]},
                   {"instance_num", std::to_string(1 + below(3))},
                   {"queue_items", std::to_string(4 + below(30))},
                   {"queue_policy", policies[below(2)]},
                   {"batching", batchings[below(3)]},
                   {"plan", plans[below(2)]},
                   {"deadlines", below(2) == 0 ? "predict" : "expire"}};
  if (below(2) == 0)  // One call of a hundred fails, by chance.
    config.insert({{"backend", "Faulty[Scripted]"},
                   {"fail_rate", "0.01"},
                   {"seed", std::to_string(below(1000))}});
  RC_ASSERT(bench.open(config).ok());
  std::atomic<std::uint64_t> callbacks{0};
  std::vector<Ticket> tickets;
  for (int i = 0; i < 60; ++i) {
    switch (below(12)) {
      case 0:
        bench.run_to(bench.now() + static_cast<double>(below(20)) / 2);
        break;
      case 1:
        if (!tickets.empty()) (void)tickets[below(tickets.size())].cancel();
        break;
      case 2:
        (void)bench.pipeline.reconfigure({{"max_batch", std::to_string(1 + below(8))},
                                          {"batching", batchings[below(3)]},
                                          {"batching_timeout", std::to_string(below(4))}});
        break;
      default: {
        RequestOptions options;
        if (below(3) == 0) options.timeout = milliseconds(1 + below(30));
        options.priority = static_cast<std::int32_t>(below(5)) - 2;
        if (below(8) == 0) options.items = 1 + static_cast<std::uint32_t>(below(6));
        tickets.push_back(bench.pipeline.submit(VirtualBench::request(i), options,
                                                [&](const Ticket&) { ++callbacks; }));
      }
    }
  }
  switch (below(4)) {
    case 0:
      (void)bench.pipeline.shutdown(Shutdown::kCancel, TimePoint{});
      break;
    case 1:
      (void)bench.pipeline.shutdown(Shutdown::kAbort, TimePoint{});
      break;
    case 2:
      (void)bench.pipeline.shutdown(Shutdown::kDrain, TimePoint{});
      break;
    default:
      break;
  }
  bench.run_all();
  RC_ASSERT(bench.pipeline.drain().ok());
  std::array<std::uint64_t, 7> ends{};
  for (const Ticket& ticket : tickets) {
    RC_ASSERT(ticket.done());
    RC_ASSERT(ticket.wait().ok() == (ticket.state() == RequestState::kDone));
    ++ends[static_cast<std::size_t>(ticket.state())];
    const auto values = ticket.take();
    RC_ASSERT(values->contains(kResult) == (ticket.state() == RequestState::kDone));
  }
  const Statistics all = bench.pipeline.statistics();
  RC_ASSERT(all.waiting == 0U);
  RC_ASSERT(all.running == 0U);
  RC_ASSERT(all.waiting_items == 0U);
  RC_ASSERT(all.submitted == tickets.size());
  RC_ASSERT(all.submitted == all.done + all.failed + all.rejected + all.cancelled + all.expired);
  RC_ASSERT(all.done == ends[static_cast<std::size_t>(RequestState::kDone)]);
  RC_ASSERT(all.expired == ends[static_cast<std::size_t>(RequestState::kExpired)]);
  for (const SeenCall& call : bench.script->calls) RC_ASSERT(call.items >= 1U && call.items <= 8U);
  bench.pipeline = {};
  RC_ASSERT(callbacks == tickets.size());
}

RC_GTEST_PROP(NodeProperties, EachRequestEndsExactlyOnceWhateverHappens, ()) {
  interleave(*rc::gen::arbitrary<std::uint64_t>());
}

}  // namespace
}  // namespace corelane::scheduler
