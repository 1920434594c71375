#include <thread>

#include "corelane/scheduler/scheduler.h"
#include "failing_new.h"
#include "round.h"

namespace corelane::allocation {
namespace {

using scheduler::Dict;
using scheduler::Pipeline;
using scheduler::Ticket;

constexpr int kThreads = 4;
constexpr int kCalls = 200;

/// What a backend throws, std::bad_alloc among it, is its own failure.
void note(const Status& status, Tally& tally) {
  ++tally.taken;
  ++tally.answered;
  tally.expect(
      status.ok() || status.code() == Code::kOutOfMemory || status.code() == Code::kEngineFailed,
      "a request ends well or for want of memory");
}

void submit_all(const Pipeline& pipeline, int thread, Tally& tally) {
  const Shielded test;
  for (int i = 0; i < kCalls; ++i) {
    Dict request;
    request[scheduler::kData] = std::string(40, static_cast<char>('a' + i % 26));
    scheduler::RequestOptions options;
    options.items = 1 + static_cast<std::uint32_t>((thread + i) % 3);
    if (i % 4 == 3) options.timeout = std::chrono::seconds(20);
    if (i % 2 == 0) {
      note(exposed([&] { return pipeline.run(request, options); }), tally);
    } else {
      const Ticket ticket = exposed([&] { return pipeline.submit(std::move(request), options); });
      note(exposed([&] { return ticket.wait(); }), tally);
    }
  }
}

}  // namespace

void scheduler_round(const Plan& plan, Tally& tally) {
  const scheduler::Config config{{"backend", "Identity"},
                                 {"max", "4"},
                                 {"batching_timeout", "1"},
                                 {"instance_num", plan.seed % 2 == 0 ? "1" : "3"}};
  const auto pipeline = Pipeline::create(config);
  if (!pipeline) {
    std::fprintf(stderr, "%s\n", pipeline.error().to_string().c_str());
    ++tally.wrong;
    return;
  }
  begin_failing(plan.share, plan.seed);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { submit_all(*pipeline, t, tally); });
  for (std::thread& thread : threads) thread.join();
  end_failing();
  Dict request;
  request[scheduler::kData] = std::string("after");
  tally.wrong += !pipeline->run(request).ok();
  tally.wrong += !pipeline->shutdown(scheduler::Shutdown::kDrain).ok();
}

}  // namespace corelane::allocation
