// Who may end a pipeline where, and what is destroyed in which thread.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

/// A bench whose calls wait for release(), and that sees whether its instances are gone.
struct HeldBench : VirtualBench {
  HeldBench() {
    script->body = [held = release_.get_future().share()](std::span<const RequestPtr> batch) {
      held.wait();
      for (const RequestPtr& request : batch) request->values[kResult] = 1;
      return Status();
    };
  }
  void release() { release_.set_value(); }
  void wait_for_the_end() const {
    while (script.use_count() > without_pipeline_) std::this_thread::yield();
  }

 private:
  std::promise<void> release_;
  const long without_pipeline_ = script.use_count();
};

TEST(NodeLifetime, ARequestMayHoldTheLastHandleOfItsPipeline) {
  HeldBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  Pipeline pipeline = std::exchange(bench.pipeline, {});
  (void)pipeline.submit({{kData, 1}, {"owner", pipeline}});
  pipeline = {};
  bench.release();
  bench.wait_for_the_end();
}

TEST(NodeLifetime, TheSameHoldsForASchedulerOfTheUsers) {
  HeldBench bench;
  ASSERT_TRUE(bench.open({{"Interpreter::backend", "InstanceThread"}}).ok());
  Pipeline pipeline = std::exchange(bench.pipeline, {});
  bench.release();
  (void)pipeline.submit({{kData, 1}, {"owner", pipeline}});
  pipeline = {};
  bench.wait_for_the_end();
}

TEST(NodeLifetime, AnExpiredRequestThatHoldsTheLastHandleDoesNotHoldUpTheClock) {
  HeldBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  Pipeline pipeline = std::exchange(bench.pipeline, {});
  (void)pipeline.submit(VirtualBench::request(1));
  (void)pipeline.submit({{kData, 2}, {"owner", pipeline}}, {.timeout = milliseconds(5)});
  pipeline = {};
  bench.script->clock->advance_to(VirtualBench::at(5));  // Would wait for the call that runs.
  bench.release();
  bench.wait_for_the_end();
}

TEST(NodeLifetime, CallbacksOfTwoPipelinesMayDropEachOthersLastHandles) {
  std::unique_ptr<Pipeline> pipelines[2];
  for (auto& each : pipelines)
    each = std::make_unique<Pipeline>(*Pipeline::create({{"backend", "Identity"}}));
  std::promise<void> called[2];
  std::promise<void> dropped[2];
  std::shared_future<void> both[] = {called[0].get_future().share(),
                                     called[1].get_future().share()};
  for (std::size_t i = 0; i < 2; ++i)
    (void)pipelines[i]->submit(VirtualBench::request(1), {}, [&, i](const Ticket&) {
      called[i].set_value();
      both[1 - i].wait();
      pipelines[1 - i].reset();
      dropped[i].set_value();
    });
  for (auto& each : dropped) each.get_future().wait();
}

TEST(NodeLifetime, WhatAFailedBatchLeavesIsDestroyedWithoutTheLock) {
  for (const bool repeatable : {false, true}) {
    VirtualBench bench;
    std::atomic<int> calls{0};
    bench.script->repeatable = repeatable;
    bench.script->time = linear_time(1, 0);
    bench.script->body = [&](std::span<const RequestPtr> batch) {
      const auto look = [&] { calls += bench.pipeline.statistics().submitted != 0 ? 1 : 0; };
      for (const RequestPtr& request : batch)
        request->values[kResult] = std::shared_ptr<void>(nullptr, [look](void*) { look(); });
      return error(Code::kEngineFailed, "failed");
    };
    ASSERT_TRUE(bench.open({{"max", "2"}}).ok());
    for (int i = 0; i < 3; ++i) bench.submit_at(0, i);
    bench.run_all();
    EXPECT_TRUE(bench.pipeline.drain().ok());
    for (const Ticket& ticket : bench.tickets) EXPECT_EQ(ticket.wait().code(), Code::kEngineFailed);
    EXPECT_GT(calls, 0);
  }
}

TEST(NodeLifetime, ARefusedShutdownHasNoEffect) {
  VirtualBench bench;
  Code code = Code::kOk;
  bench.script->body = [&](std::span<const RequestPtr> batch) {
    code = bench.pipeline.shutdown(Shutdown::kCancel).code();
    for (const RequestPtr& request : batch) request->values[kResult] = 1;
    return Status();
  };
  ASSERT_TRUE(bench.open({}).ok());
  for (int i = 0; i < 2; ++i) {
    Dict request = VirtualBench::request(i);
    EXPECT_TRUE(bench.pipeline.run(request).ok()) << i;
    EXPECT_EQ(code, Code::kWrongState);
  }
}

}  // namespace
}  // namespace corelane::scheduler
