#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

TEST(Node, AnIdleInstanceStartsAtOnce) {
  VirtualBench bench;
  bench.script->time = linear_time(4, 1);
  ASSERT_TRUE(bench.open({{"max", "8"}, {"batching_timeout", "10"}}).ok());
  for (int i = 0; i < 3; ++i) bench.submit_at(10 * i, i);
  bench.run_all();
  for (const SeenCall& call : bench.script->calls)
    EXPECT_EQ(call.end - call.begin, milliseconds(5));
  EXPECT_EQ(bench.sizes(), "1 1 1");
  EXPECT_EQ(bench.now(), 25);
  bench.adds_up();
}

TEST(Node, WhatArrivesDuringACallLeavesInFullBatches) {
  VirtualBench bench;
  bench.script->time = linear_time(4, 1);
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  bench.submit_at(0, 0);
  for (int i = 1; i <= 20; ++i) bench.submit_at(0.1 * i, i);
  bench.run_all();
  EXPECT_EQ(bench.sizes(), "1 8 8 4");
  const Statistics all = bench.pipeline.statistics();
  EXPECT_EQ(all.batches, 4U);
  EXPECT_EQ(all.batch_items, 21U);
  EXPECT_EQ(all.batch_sizes[8], 2U);
  EXPECT_EQ(all.reasons[static_cast<std::size_t>(Reason::kFull)], 2U);
  EXPECT_EQ(all.done, 21U);
}

TEST(Node, TwoClientsDoNotWaitForEachOther) {
  VirtualBench bench;
  bench.script->time = linear_time(4, 1);
  ASSERT_TRUE(bench.open({{"max", "4"}, {"batching_timeout", "10"}}).ok());
  bench.submit_at(0, 0);
  bench.submit_at(20, 1);
  bench.submit_at(20.5, 2);
  bench.run_all();
  EXPECT_EQ(bench.now(), 30) << "the second one of the pair follows the first";
}

TEST(Node, FullBatchingWaitsForTheTimeoutOfTheOldest) {
  VirtualBench bench;
  bench.script->time = linear_time(1, 0);
  ASSERT_TRUE(bench.open({{"max", "4"}, {"batching", "full"}, {"batching_timeout", "2.5"}}).ok());
  bench.submit_at(1, 0);
  bench.submit_at(3, 1);
  bench.submit_at(10, 2);
  for (int i = 0; i < 4; ++i) bench.submit_at(11, 3 + i);
  bench.run_all();
  ASSERT_EQ(bench.script->calls.size(), 3U);
  EXPECT_EQ(bench.script->calls[0].begin, VirtualBench::at(3.5));
  EXPECT_EQ(bench.script->calls[0].items, 2U);
  EXPECT_EQ(bench.script->calls[1].begin, VirtualBench::at(11));
  EXPECT_EQ(bench.script->calls[1].data, (std::vector<int>{2, 3, 4, 5}));
}

TEST(Node, InitAndEveryForwardRunInTheThreadOfTheInstance) {
  VirtualBench bench;
  bench.script->time = linear_time(1, 0);
  ASSERT_TRUE(bench.open({{"instance_num", "3"}}).ok());
  for (int i = 0; i < 30; ++i) bench.submit_at(0.3 * i, i);
  bench.run_all();
  const std::set<std::thread::id> inits(bench.script->inits.begin(), bench.script->inits.end());
  EXPECT_EQ(inits.size(), 3U);
  std::map<std::string, std::vector<SeenCall>> by_index;
  for (const SeenCall& call : bench.script->calls) by_index[call.index].push_back(call);
  EXPECT_EQ(by_index.size(), 3U);
  for (auto& [index, calls] : by_index) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].thread, calls[0].thread);
      EXPECT_TRUE(inits.contains(calls[i].thread));
      if (i > 0) EXPECT_GE(calls[i].begin, calls[i - 1].end);
    }
  }
}

std::size_t threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

TEST(Node, AFailedInitReachesTheCallerAndLeavesNoThread) {
  const std::size_t before = threads();
  VirtualBench bench;
  bench.script->on_init = [](const Config& config) -> Status {
    if (config.at(kThreadIndex) == "1") return error(Code::kNotFound, "no such file");
    return {};
  };
  const Status status = bench.open({{"instance_num", "3"}});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.to_string().find("Scripted"), std::string::npos) << status.to_string();
  EXPECT_EQ(threads(), before);
  bench.script->on_init = [](const Config&) -> Status { throw std::runtime_error("thrown"); };
  EXPECT_EQ(bench.open({}).code(), Code::kEngineFailed);
  EXPECT_EQ(threads(), before);
}

TEST(Node, AnExceptionFailsItsOwnBatchAlone) {
  VirtualBench bench;
  bench.script->time = linear_time(1, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch) {
      request->values[kResult] = request->values.at(kData);
      if (std::any_cast<int>(request->values.at(kData)) == 3) throw std::runtime_error("three");
    }
    return {};
  };
  ASSERT_TRUE(bench.open({{"max", "2"}}).ok());
  for (int i = 0; i < 6; ++i) bench.submit_at(0.1 * i, i);
  bench.run_all();
  // 0; then 1 and 2; then 3 and 4; then 5.
  for (std::size_t i = 0; i < 6; ++i) {
    const Status status = bench.tickets[i].wait();
    EXPECT_EQ(status.ok(), i != 3 && i != 4) << i;
    EXPECT_EQ((*bench.tickets[i].take()).contains(kResult), status.ok()) << i;
  }
  const Status failed = bench.tickets[3].wait();
  EXPECT_EQ(failed.code(), Code::kEngineFailed);
  EXPECT_NE(failed.to_string().find("Scripted"), std::string::npos);
  EXPECT_NE(failed.to_string().find("three"), std::string::npos);
  bench.adds_up();
}

TEST(Node, AFailureNamesTheNodeAndItsBackend) {
  for (const char* fault : {"fail_every=1", "throw_every=1", "leave_out_every=1"}) {
    const auto made =
        Pipeline::from_toml(std::string("[mine]\nbackend=\"Faulty[Identity]\"\n") + fault + "\n");
    ASSERT_TRUE(made) << made.error().to_string();
    Dict request = VirtualBench::request(1);
    const std::string text = made->run(request).to_string();
    EXPECT_NE(text.find("node 'mine'"), std::string::npos) << text;
    EXPECT_NE(text.find("backend"), std::string::npos) << text;
  }
}

TEST(Node, ABadRequestIsIsolatedWhereTheBackendMayRepeat) {
  VirtualBench bench;
  bench.script->repeatable = true;
  bench.script->time = linear_time(1, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch) {
      request->values[kResult] = 1;
      if (std::any_cast<int>(request->values.at(kData)) == 5)
        return error(Code::kEngineFailed, "five");
    }
    return {};
  };
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  bench.submit_at(0, 0);
  for (int i = 1; i <= 8; ++i) bench.submit_at(0.1, i);
  bench.run_all();
  for (std::size_t i = 0; i <= 8; ++i) EXPECT_EQ(bench.tickets[i].wait().ok(), i != 5) << i;
  EXPECT_EQ(bench.sizes(), "1 8 4 4 2 2 1 1");
  bench.adds_up();
}

TEST(Node, ARequestMayFailByItselfAndAResultMayBeLeftOut) {
  VirtualBench bench;
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch) {
      const int data = std::any_cast<int>(request->values.at(kData));
      if (data == 1) request->fail(error(Code::kMalformed, "a damaged picture"));
      if (data != 2) request->values[kResult] = data;
    }
    return {};
  };
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  std::vector<Dict> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(VirtualBench::request(i));
  requests[0][kResult] = 99;
  requests[2][kResult] = 99;
  const std::vector<Status> answers = bench.pipeline.run(requests);
  EXPECT_TRUE(answers[0].ok());
  EXPECT_EQ(std::any_cast<int>(requests[0].at(kResult)), 0) << "a stale result is erased";
  EXPECT_EQ(answers[1].code(), Code::kMalformed);
  EXPECT_FALSE(requests[1].contains(kResult));
  EXPECT_EQ(answers[2].code(), Code::kBadResult);
  EXPECT_FALSE(requests[2].contains(kResult));
  EXPECT_TRUE(answers[3].ok());
}

TEST(Node, WhatNoLineCouldTakeIsRefusedBeforeAnyWork) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "4"}}).ok());
  Dict empty;
  EXPECT_EQ(bench.pipeline.run(empty).code(), Code::kOutOfRange);
  Dict request = VirtualBench::request(1);
  EXPECT_EQ(bench.pipeline.run(request, {.items = 0}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(request.contains(kData)) << "nothing is lost";
  EXPECT_EQ(bench.pipeline.run(request, {.timeout = milliseconds(-1)}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(bench.pipeline.run(request, {.priority = 128}).code(), Code::kInvalidArgument);
  EXPECT_EQ(bench.pipeline.run(request, {.items = 5}).code(), Code::kOutOfRange)
      << "an int cannot be split";
  EXPECT_EQ(bench.sizes(), "");
  EXPECT_EQ(bench.pipeline.statistics().rejected, 5U);
  bench.adds_up();
}

TEST(Node, ListsKeepTheirOrderAndEndOnce) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "4"}, {"instance_num", "2"}}).ok());
  for (int count = 1; count <= 50; ++count) {
    std::vector<Dict> requests;
    for (int i = 0; i < count; ++i) requests.push_back(VirtualBench::request(i));
    for (const Status& status : bench.pipeline.run(requests)) EXPECT_TRUE(status.ok());
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(std::any_cast<int>(requests[static_cast<std::size_t>(i)].at(kResult)), i);
  }
  for (const SeenCall& call : bench.script->calls) EXPECT_TRUE(std::ranges::is_sorted(call.data));
  EXPECT_EQ(bench.pipeline.statistics().done, 50U * 51 / 2);
}

TEST(Node, AnEventReturnsAtOnceAndIsForOneRequest) {
  VirtualBench bench;
  bench.script->time = linear_time(50, 0);
  ASSERT_TRUE(bench.open({}).ok());
  const auto event = std::make_shared<Event>();
  EXPECT_EQ(event->wait().code(), Code::kWrongState);
  Dict request = VirtualBench::request(7);
  request[kEvent] = event;
  EXPECT_TRUE(bench.pipeline.run(request).ok());
  EXPECT_FALSE(event->done());
  bench.run_all();
  EXPECT_TRUE(event->wait().ok());
  EXPECT_EQ(std::any_cast<int>(event->take()->at(kResult)), 7);
  Dict again = VirtualBench::request(8);
  again[kEvent] = event;
  EXPECT_EQ(bench.pipeline.run(again).code(), Code::kWrongState);
  again[kEvent] = 1;
  EXPECT_EQ(bench.pipeline.run(again).code(), Code::kTypeMismatch);
}

TEST(Node, ARequestIsAnsweredAtItsDeadlineWhileTheInstanceRuns) {
  VirtualBench bench;
  bench.script->time = linear_time(90'000, 0);
  ASSERT_TRUE(bench.open({}).ok());
  bench.submit_at(0, 0, {.timeout = milliseconds(100)});
  bench.submit_at(1, 1, {.timeout = milliseconds(20)});
  bench.run_to(21);
  EXPECT_EQ(bench.tickets[1].state(), RequestState::kExpired);
  EXPECT_EQ(bench.tickets[1].wait().code(), Code::kTimeout);
  EXPECT_TRUE(bench.tickets[1].take()->contains(kData)) << "it never left the line";
  EXPECT_EQ(bench.tickets[0].state(), RequestState::kRunning);
  bench.run_to(100);
  EXPECT_EQ(bench.tickets[0].state(), RequestState::kExpired);
  EXPECT_EQ(bench.pipeline.statistics().late, 1U);
  bench.run_all();
  EXPECT_EQ(bench.sizes(), "1") << "the expired one never reached the backend";
  EXPECT_EQ(bench.pipeline.statistics().expired, 2U);
  bench.adds_up();
}

TEST(Node, TheLineHasLimitsByPolicy) {
  for (const std::string policy : {"reject", "drop_oldest"}) {
    VirtualBench bench;
    bench.script->time = linear_time(10, 0);
    ASSERT_TRUE(bench.open({{"queue_items", "2"}, {"queue_policy", policy}}).ok());
    for (int i = 0; i < 5; ++i) bench.submit_at(0.1 * i, i);
    bench.run_all();
    const std::vector<bool> done = policy == "reject"
                                       ? std::vector<bool>{true, true, true, false, false}
                                       : std::vector<bool>{true, false, false, true, true};
    for (std::size_t i = 0; i < 5; ++i) {
      const Status status = bench.tickets[i].wait();
      EXPECT_EQ(status.ok(), done[i]) << policy << i;
      if (done[i]) continue;
      EXPECT_EQ(status.code(), Code::kBusy);
      EXPECT_EQ(bench.tickets[i].state(), RequestState::kRejected);
    }
    EXPECT_EQ(bench.pipeline.statistics().rejected, 2U);
    bench.adds_up();
  }
}

TEST(Node, ABlockedSubmissionEntersWhenThereIsRoom) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open({{"queue_items", "1"}}).ok());
  const Ticket first = bench.submit(0), second = bench.submit(1);
  std::thread third([&] { EXPECT_TRUE(bench.submit(2).wait().ok()); });
  while (bench.pipeline.statistics().submitted < 3) {
    bench.settle();
    if (bench.script->clock->next_timer() != kNever)
      bench.script->clock->advance_to(bench.script->clock->next_timer());
  }
  bench.run_all();
  third.join();
  EXPECT_TRUE(first.wait().ok());
  EXPECT_TRUE(second.wait().ok());
}

TEST(Node, CancelTakesFromTheLineAndAsksWhatRuns) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch)
      if (!request->cancelled()) request->values[kResult] = 1;
    return {};
  };
  ASSERT_TRUE(bench.open({}).ok());
  const Ticket running = bench.submit(0), waiting = bench.submit(1);
  bench.settle();
  EXPECT_TRUE(waiting.cancel());
  EXPECT_EQ(waiting.wait().code(), Code::kCancelled);
  EXPECT_FALSE(waiting.cancel());
  EXPECT_FALSE(running.cancel());
  bench.run_all();
  EXPECT_EQ(running.wait().code(), Code::kCancelled);
  EXPECT_EQ(bench.pipeline.statistics().cancelled, 2U);
  bench.adds_up();
}

TEST(Node, ShutdownWakesEveryCaller) {
  for (const Shutdown how : {Shutdown::kDrain, Shutdown::kCancel, Shutdown::kAbort}) {
    VirtualBench bench;
    bench.script->time = linear_time(1, 0);
    ASSERT_TRUE(bench.open({{"max", "8"}, {"instance_num", "2"}}).ok());
    std::atomic<int> callbacks{0};
    std::vector<Ticket> tickets;
    for (int i = 0; i < 1000; ++i)
      tickets.push_back(
          bench.pipeline.submit(VirtualBench::request(i), {}, [&](const Ticket&) { ++callbacks; }));
    const Status late = bench.pipeline.shutdown(how, TimePoint{});
    EXPECT_EQ(late.code(), Code::kTimeout) << "two calls run";
    EXPECT_NE(late.to_string().find("2 calls have not ended"), std::string::npos);
    if (how == Shutdown::kAbort)
      for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.done());
    bench.run_all();
    EXPECT_TRUE(bench.pipeline.shutdown(how).ok());
    std::size_t done = 0;
    for (const Ticket& ticket : tickets) done += ticket.wait().ok() ? 1 : 0;
    EXPECT_EQ(done, how == Shutdown::kDrain ? 1000U : how == Shutdown::kCancel ? 2U : 0U);
    EXPECT_EQ(bench.submit(1).wait().code(), Code::kCancelled);
    bench.adds_up();
    bench.pipeline = {};
    EXPECT_EQ(callbacks, 1000);
  }
}

TEST(Node, ACallbackThatThrowsStopsNothing) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i)
    (void)bench.pipeline.submit(VirtualBench::request(i), {}, [&](const Ticket& ticket) {
      EXPECT_TRUE(ticket.wait().ok());
      ++calls;
      throw std::runtime_error("on purpose");
    });
  EXPECT_TRUE(bench.pipeline.drain().ok());
  bench.pipeline = {};
  EXPECT_EQ(calls, 3);
}

TEST(Node, SettingsChangeWhileItRuns) {
  VirtualBench bench;
  bench.script->time = linear_time(4, 1);
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  for (int i = 0; i < 40; ++i) bench.submit_at(0.1 * i, i);
  bench.run_to(6);
  ASSERT_TRUE(bench.pipeline.reconfigure({{"max_batch", "2"}, {"instance_num", "3"}}).ok());
  bench.run_to(12);
  ASSERT_TRUE(bench.pipeline.reconfigure({{"batching", "full"}, {"batching_timeout", "1"}}).ok());
  bench.run_all();
  for (const Ticket& ticket : bench.tickets) EXPECT_TRUE(ticket.wait().ok());
  EXPECT_EQ(bench.pipeline.topology().groups[0].instances, 3U);
  EXPECT_EQ(bench.script->calls.back().items, 2U);
  ASSERT_TRUE(bench.pipeline.reconfigure({{"instance_num", "1"}}).ok());
  EXPECT_EQ(bench.pipeline.topology().groups[0].instances, 1U);
  EXPECT_EQ(bench.pipeline.reconfigure({{"backend", "Identity"}}).code(), Code::kInvalidArgument);
  bench.adds_up();
}

TEST(Node, CallsOfAPipelineInItsOwnBackendAreRefused) {
  VirtualBench bench;
  std::vector<Code> codes;
  bench.script->body = [&](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch) request->values[kResult] = 1;
    if (std::any_cast<int>(batch[0]->values.at(kData)) != 0) return {};
    Dict nested = VirtualBench::request(1);
    codes.push_back(bench.pipeline.run(nested).code());
    codes.push_back(bench.pipeline.drain().code());
    codes.push_back(bench.pipeline.reconfigure({{"max_batch", "1"}}).code());
    codes.push_back(bench.submit(5).wait().code());
    return {};
  };
  ASSERT_TRUE(bench.open({}).ok());
  Dict request = VirtualBench::request(0);
  EXPECT_TRUE(bench.pipeline.run(request).ok());
  ASSERT_TRUE(bench.pipeline.drain().ok()) << "what was submitted in forward() runs, too";
  ASSERT_EQ(codes.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(codes[i], Code::kWrongState) << i;
}

TEST(Node, ThePipelineMayEndInForwardAndInACallback) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  auto held = std::make_shared<Pipeline>(std::move(bench.pipeline));
  bench.pipeline = {};
  bench.script->body = [&](std::span<const RequestPtr> batch) -> Status {
    held.reset();
    for (const RequestPtr& request : batch) request->values[kResult] = 1;
    return {};
  };
  Ticket ticket;
  {
    const Pipeline pipeline = *held;
    ticket = pipeline.submit(VirtualBench::request(0));
  }
  EXPECT_TRUE(ticket.wait().ok());
  ASSERT_TRUE(bench.open({}).ok());
  held = std::make_shared<Pipeline>(std::move(bench.pipeline));
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch) request->values[kResult] = 1;
    return {};
  };
  const std::shared_ptr<Pipeline> last = std::exchange(held, nullptr);
  (void)last->submit(VirtualBench::request(0), {}, [pipeline = *last](const Ticket&) {});
}

TEST(Node, WhySaysHowARequestCameBy) {
  VirtualBench bench;
  bench.script->time = linear_time(4, 1);
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  for (int i = 0; i < 3; ++i) bench.submit_at(i, i);
  bench.run_all();
  const std::string text = *bench.pipeline.why(3);
  EXPECT_NE(
      text.find("request 3 done 9.000 ms after its submission; waited 3.000 ms, left in batch "
                "2 (2 items, 0 of padding; idle) for group 0, instance 0, which took 6.000 ms"),
      std::string::npos)
      << text;
  EXPECT_EQ(bench.pipeline.why(4).error().code(), Code::kNotFound);
  const std::string trace = bench.pipeline.chrome_trace();
  EXPECT_NE(trace.find("Scripted 0/0"), std::string::npos) << trace;
  EXPECT_NE(trace.find("2 items, idle"), std::string::npos) << trace;
  const std::vector<BatchRecord> records = bench.pipeline.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].requests, (std::vector<std::uint64_t>{2, 3}));
  const std::string metrics = bench.pipeline.prometheus_text();
  EXPECT_NE(metrics.find("corelane_scheduler_requests_total{node=\"model\",outcome=\"done\"} 3"),
            std::string::npos)
      << metrics;
}

TEST(Node, AnEmptyPipelineRefuses) {
  const Pipeline none;
  Dict request = VirtualBench::request(0);
  EXPECT_EQ(none.run(request).code(), Code::kWrongState);
  EXPECT_EQ(none.submit(VirtualBench::request(0)).wait().code(), Code::kWrongState);
  EXPECT_FALSE(none.drain().ok());
}

}  // namespace
}  // namespace corelane::scheduler
