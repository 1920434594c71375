/// What users and stages of their own may do to a node, and what it keeps all the same.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "corelane/scheduler/stage.h"
#include "corelane/tensor/tensor.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

/// One group, whose calls run in start() itself.
class OwnStage final : public Stage {
 public:
  std::vector<Topology::Group> group{{"Own", {1, 8}, 1}};
  std::function<Status(StageCall)> on_start;
  std::function<bool()> on_repeatable = [] { return true; };

  std::vector<Topology::Group> groups() const override { return group; }
  bool repeatable_group(std::uint32_t /*group*/) const override { return on_repeatable(); }
  Status start(StageCall call) override { return on_start(std::move(call)); }
};

/// A bench whose node has this stage in place of Fusion.
struct StageBench : VirtualBench {
  Status open_with(const std::function<void(OwnStage&)>& prepare) {
    (void)registry.add("Own", [prepare](const BackendSurroundings&) {
      auto stage = std::make_unique<OwnStage>();
      prepare(*stage);
      return stage;
    });
    return open({{"backend", "Scripted"}, {"BaselineSchedule::backend", "Own"}});
  }
};

TEST(NodePromises, AnEventThatNobodyTakesFromIsFreed) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  auto event = std::make_shared<Event>();
  const std::weak_ptr<Event> watch = event;
  Dict request = VirtualBench::request(1);
  request[kEvent] = event;
  ASSERT_TRUE(bench.pipeline.run(request).ok());
  ASSERT_TRUE(event->wait().ok());
  event.reset();
  request.clear();
  EXPECT_TRUE(watch.expired()) << "its request holds it, and it holds its request";
}

Tensor rows(std::uint32_t count) { return *Tensor::allocate("x", DType::kF32, Shape{count}); }

TEST(NodePromises, ASplitRequestThatNobodyTakesFromIsFreed) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "2"}}).ok());
  std::weak_ptr<void> watch;
  {
    Tensor data = rows(5);
    watch = data.data;
    const Ticket ticket = bench.pipeline.submit({{kData, std::move(data)}}, {.items = 5});
    ASSERT_TRUE(ticket.wait().ok());
  }
  ASSERT_TRUE(bench.pipeline.shutdown(Shutdown::kDrain).ok());
  bench.pipeline = {};
  EXPECT_TRUE(watch.expired());
}

TEST(NodePromises, TheTimeoutOfASplitRequestIsThatOfTheWhole) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open({{"max", "2"}, {"queue_items", "2"}, {"deadlines", "expire"}}).ok());
  Ticket ticket;
  std::thread caller([&] {
    RequestOptions with;
    with.items = 8;
    with.timeout = milliseconds(15);
    ticket = bench.pipeline.submit({{kData, rows(8)}}, with);
  });
  // The first part runs, the second one waits, the third one has to wait for room until 10 ms, and
  // the fourth one from then on.
  while (bench.pipeline.statistics().submitted != 2) std::this_thread::yield();
  bench.run_to(10);
  while (bench.pipeline.statistics().submitted != 3) std::this_thread::yield();
  bench.run_to(15);
  caller.join();  // Would wait forever if the fourth part had 15 ms of its own.
  EXPECT_TRUE(ticket.done());
  bench.run_all();
  EXPECT_EQ(ticket.wait().code(), Code::kTimeout);
  bench.adds_up();
}

TEST(NodePromises, AFailedSplitRequestGivesItsValuesBack) {
  VirtualBench bench;
  bench.script->body = [](std::span<const RequestPtr>) { return error(Code::kIo, "never"); };
  ASSERT_TRUE(bench.open({{"max", "2"}}).ok());
  Dict request{{kData, rows(5)}, {"mine", 7}};
  EXPECT_EQ(bench.pipeline.run(request, {.items = 5}).code(), Code::kIo);
  EXPECT_TRUE(request.contains("mine"));
  EXPECT_EQ(std::any_cast<Tensor&>(request.at(kData)).shape, Shape{5});
}

TEST(NodePromises, WhySaysWhatBecameOfTheParts) {
  VirtualBench bench;
  bench.script->time = linear_time(1, 1);
  ASSERT_TRUE(bench.open({{"max", "4"}}).ok());
  const Ticket ticket = bench.pipeline.submit({{kData, rows(10)}}, {.items = 10});
  bench.run_all();
  ASSERT_TRUE(ticket.wait().ok());
  const std::string text = *bench.pipeline.why(ticket.id());
  EXPECT_NE(text.find("request 1 done 13.000 ms after its submission; it was split into 3 parts; "
                      "request 2 done 5.000 ms after its submission; waited 0.000 ms, left in "
                      "batch 1 (4 items"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("; request 4 done 13.000 ms after its submission; waited 10.000 ms"),
            std::string::npos)
      << text;
  const Ticket large = bench.pipeline.submit({{kData, rows(80)}}, {.items = 80});
  bench.run_all();
  ASSERT_TRUE(large.wait().ok());
  const auto why = bench.pipeline.why(large.id());
  ASSERT_TRUE(why) << why.error().to_string();
  EXPECT_NE(why->find("; and 4 more"), std::string::npos);
}

/// A backend that runs its requests in a scheduler of its own.
class Nests final : public Backend {
 public:
  explicit Nests(const BackendSurroundings& surroundings)
      : inner_(*surroundings.names->make("BaselineSchedule", surroundings)) {}
  Status init(const Config&, const SharedDict& shared) override {
    return inner_->init({{"backend", "Scripted"}}, shared);
  }
  Status forward(std::span<const RequestPtr> batch) override { return inner_->forward(batch); }
  std::uint32_t max() const noexcept override { return 8; }

 private:
  const std::unique_ptr<Backend> inner_;
};

TEST(NodePromises, ANestedSchedulerSeesThatARequestIsCancelled) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    for (const RequestPtr& request : batch)
      if (!request->cancelled()) request->values[kResult] = 1;
    return {};
  };
  ASSERT_TRUE(
      bench.registry.add("Nests", std::make_unique<Nests, const BackendSurroundings&>).ok());
  ASSERT_TRUE(bench.open({{"backend", "Nests"}}).ok());
  bench.submit_at(0, 0);
  for (int i = 1; i < 4; ++i) bench.submit_at(1, i);
  bench.run_to(15);
  EXPECT_FALSE(bench.tickets[1].cancel()) << "the inner backend runs it";
  EXPECT_FALSE(bench.tickets[2].cancel()) << "it waits in the inner line";
  bench.run_all();
  EXPECT_EQ(bench.sizes(), "1 1 1") << "the one that waited has not run";
  EXPECT_EQ(bench.now(), 30);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(bench.tickets[i].state(),
              i == 0 || i == 3 ? RequestState::kDone : RequestState::kCancelled)
        << i;
  bench.adds_up();
}

TEST(NodePromises, ACancelledRequestOfAFailedBatchDoesNotRunAgain) {
  VirtualBench bench;
  bench.script->repeatable = true;
  bench.script->time = linear_time(4, 0);
  bench.script->body = [](std::span<const RequestPtr> batch) -> Status {
    if (batch.size() > 1) return error(Code::kEngineFailed, "too many");
    batch[0]->values[kResult] = 1;
    return {};
  };
  ASSERT_TRUE(bench.open({{"max", "2"}}).ok());
  for (int i = 0; i < 3; ++i) bench.submit_at(i, i);  // 0, then 1 and 2.
  bench.run_to(5);
  EXPECT_FALSE(bench.tickets[1].cancel()) << "it runs";
  bench.run_all();
  EXPECT_EQ(bench.sizes(), "1 2 1");
  EXPECT_EQ(bench.tickets[1].state(), RequestState::kCancelled);
  EXPECT_TRUE(bench.tickets[2].wait().ok());
  bench.adds_up();
}

/// A value that std::any takes, and that cannot be copied.
struct Uncopyable {
  Uncopyable() = default;
  Uncopyable(const Uncopyable&) { throw std::runtime_error("no copy"); }
};

TEST(NodePromises, AValueThatCannotBeCopiedFailsThePaddedCall) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"min", "4"}, {"max", "4"}, {"padding", "true"}}).ok());
  Dict request = VirtualBench::request(1);
  request.emplace("mine", std::any(std::in_place_type<Uncopyable>));
  const Status status = bench.pipeline.run(request);
  EXPECT_NE(status.to_string().find("no copy"), std::string::npos) << status.to_string();
  EXPECT_TRUE(request.contains("mine"));
  Dict other = VirtualBench::request(2);
  EXPECT_TRUE(bench.pipeline.run(other).ok()) << "the instance goes on";
  bench.adds_up();
}

TEST(NodePromises, AStageThatThrowsInStartFailsItsCall) {
  StageBench bench;
  const auto throws = [](StageCall) -> Status { throw std::runtime_error("thrown"); };
  ASSERT_TRUE(bench.open_with([&](OwnStage& stage) { stage.on_start = throws; }).ok());
  Dict request = VirtualBench::request(1);
  const Status status = bench.pipeline.run(request);
  EXPECT_EQ(status.code(), Code::kEngineFailed);
  EXPECT_NE(status.to_string().find("thrown"), std::string::npos) << status.to_string();
  bench.adds_up();
}

TEST(NodePromises, AStageMayAskThePipelineWhetherItsGroupRepeats) {
  StageBench bench;
  const auto fails = [](StageCall call) -> Status {
    call.done(error(Code::kIo, "failed"));
    return {};
  };
  ASSERT_TRUE(bench
                  .open_with([&](OwnStage& stage) {
                    stage.on_start = fails;
                    stage.on_repeatable = [&] {
                      return bench.pipeline.statistics().submitted != 0;
                    };
                  })
                  .ok());
  Dict request = VirtualBench::request(1);
  EXPECT_EQ(bench.pipeline.run(request).code(), Code::kIo);
}

TEST(NodePromises, AStageWithoutInstancesOrWithARangeOfNothingIsRefused) {
  const std::vector<std::vector<Topology::Group>> wrong{
      {}, {{"Own", {1, 0}, 1}}, {{"Own", {0, 4}, 1}}, {{"Own", {1, 4}, 0}}};
  for (const auto& groups : wrong) {
    StageBench bench;
    const Status status = bench.open_with([&](OwnStage& stage) { stage.group = groups; });
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.to_string();
  }
}

TEST(NodePromises, AChangeThatFailsChangesNothing) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"model", "a&b"}, {"min", "1&4"}, {"max", "1&4"}}).ok());
  bench.script->on_init = [](const Config& config) -> Status {
    if (config.at("model") == "b") return error(Code::kNotFound, "no such file");
    return {};
  };
  EXPECT_EQ(bench.pipeline.reconfigure({{"instance_num", "3"}}).code(), Code::kNotFound);
  const Topology topology = bench.pipeline.topology();
  EXPECT_EQ(topology.groups[0].instances, 1U);
  EXPECT_EQ(topology.groups[1].instances, 1U);
  for (int i = 0; i < 5; ++i) bench.submit_at(i, i);
  bench.run_all();
  for (const Ticket& ticket : bench.tickets) EXPECT_TRUE(ticket.wait().ok());
}

TEST(NodePromises, ChangesFromSeveralThreadsFollowEachOther) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(
            bench.pipeline.reconfigure({{"instance_num", std::to_string(1 + (t + i) % 4)}}).ok());
    });
  for (int i = 0; i < 500; ++i) {
    Dict request = VirtualBench::request(i);
    const Status status = bench.pipeline.run(request);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(bench.pipeline.reconfigure({{"instance_num", "2"}}).ok());
  EXPECT_EQ(bench.pipeline.topology().groups[0].instances, 2U);
}

TEST(NodePromises, ASchedulerOfTheUsersGetsADictionaryToShare) {
  class Shares final : public Backend {
   public:
    Status init(const Config&, const SharedDict& shared) override {
      return shared != nullptr ? Status() : error(Code::kInternal, "nothing to share");
    }
    Status forward(std::span<const RequestPtr>) override { return {}; }
  };
  VirtualBench bench;
  ASSERT_TRUE(
      bench.registry
          .add("Shares", [](const BackendSurroundings&) { return std::make_unique<Shares>(); })
          .ok());
  EXPECT_TRUE(bench.open({{"backend", "Shares"}, {"Interpreter::backend", "Shares"}}).ok());
  EXPECT_TRUE(bench.open({{"backend", "Shares"}, {"Interpreter::backend", "InstanceThread"}}).ok());
  EXPECT_TRUE(bench.open({{"backend", "Shares"}}).ok());
}

TEST(NodePromises, AStageOfTheChainThatWasNotInitialisedRefuses) {
  VirtualBench bench;
  BackendSurroundings surroundings;
  surroundings.clock = bench.script->clock;
  surroundings.names = &bench.registry;
  const RequestPtr request = std::make_shared<Request>(VirtualBench::request(1), RequestOptions());
  for (const char* name : {"BaselineSchedule", "Fusion", "ContrastInstances", "InstanceThread"}) {
    auto made = bench.registry.make(name, surroundings);
    ASSERT_TRUE(made) << name;
    EXPECT_FALSE((*made)->forward(std::span(&request, 1)).ok()) << name;
    const Config config{{"backend", "Scripted"}};
    ASSERT_TRUE((*made)->init(config, std::make_shared<Dict>()).ok()) << name;
    EXPECT_TRUE((*made)->forward(std::span(&request, 1)).ok()) << name;
    EXPECT_EQ((*made)->init(config, std::make_shared<Dict>()).code(), Code::kWrongState) << name;
    EXPECT_TRUE((*made)->forward(std::span(&request, 1)).ok()) << name;
  }
}

TEST(NodePromises, ALowerMaxBatchLeavesSingleRequestsWhole) {
  VirtualBench bench;
  bench.script->time = linear_time(1, 0);
  ASSERT_TRUE(bench.open({{"max", "8"}, {"max_batch", "2"}}).ok());
  bench.submit_at(0, 0, {.items = 5});
  for (int i = 1; i < 4; ++i) bench.submit_at(0.5, i);
  bench.run_all();
  EXPECT_EQ(bench.sizes(), "5 2 1");
}

TEST(NodePromises, TheLargestRequestIsThatOfACallWhereNothingIsSplit) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "8"}}).ok());
  EXPECT_EQ(bench.pipeline.max(), UINT32_MAX);
  ASSERT_TRUE(bench.open({{"max", "8"}, {"oversize", "refuse"}}).ok());
  EXPECT_EQ(bench.pipeline.max(), 8U);
}

}  // namespace
}  // namespace corelane::scheduler
