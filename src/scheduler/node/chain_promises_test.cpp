// What settings of the chain and schedulers of the user's may not break.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "corelane/scheduler/stage.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

using std::chrono::milliseconds;

/// Answers 42, and holds a range.
class Answers final : public Backend {
 public:
  explicit Answers(Range range) : range_(range) {}
  Status forward(std::span<const RequestPtr> batch) override {
    for (const RequestPtr& request : batch) {
      if (std::any_cast<int>(request->values.at(kData)) == 13) throw std::runtime_error("boom");
      if (std::any_cast<int>(request->values.at(kData)) == 14) return error(Code::kIo, "broken");
      request->values[kResult] = 42;
    }
    return {};
  }
  std::uint32_t min() const noexcept override { return range_.min; }
  std::uint32_t max() const noexcept override { return range_.max; }

 private:
  const Range range_;
};

struct AnswersBench : VirtualBench {
  explicit AnswersBench(Range range = {1, 4}) {
    (void)registry.add("Answers", [range](const BackendSurroundings&) {
      return std::make_unique<Answers>(range);
    });
  }
};

TEST(ChainPromises, AStageThatWouldRunItselfIsRefused) {
  const std::pair<const char*, const char*> wrong[] = {
      {"backend", "BaselineSchedule"},
      {"backend", "Fusion"},
      {"backend", "ContrastInstances"},
      {"backend", "InstanceThread"},
      {"backend", "SyncTensor[InstanceThread]"},
      {"BaselineSchedule::backend", "BaselineSchedule"},
      {"Fusion::backend", "BaselineSchedule"},
      {"Fusion::backend", "Fusion"},
      {"ContrastInstances::backend", "SyncTensor[Fusion]"},
      {"InstanceThread::backend", "InstanceThread"},
      {"InstanceThread::backend", "BaselineSchedule"}};
  for (const auto& [key, value] : wrong) {
    VirtualBench bench;
    (void)bench.registry.add("SyncTensor", [](const BackendSurroundings&) {
      return std::make_unique<Answers>(Range{});
    });
    const Status status = bench.open({{key, value}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << key << "=" << value;
    EXPECT_NE(status.to_string().find("key '" + std::string(key) + "'"), std::string::npos)
        << status.to_string();
  }
}

TEST(ChainPromises, ABackendThatHoldsASchedulerMayHandItsSettingsDown) {
  class Holds final : public Backend {
   public:
    explicit Holds(const BackendSurroundings& surroundings)
        : inner_(*surroundings.names->make("BaselineSchedule", surroundings)) {}
    Status init(const Config& config, const SharedDict& shared) override {
      Config own = config;
      own["backend"] = "Scripted";
      return inner_->init(own, shared);
    }
    Status forward(std::span<const RequestPtr> batch) override { return inner_->forward(batch); }

   private:
    const std::unique_ptr<Backend> inner_;
  };
  VirtualBench bench;
  ASSERT_TRUE(
      bench.registry
          .add("Holds", [](const BackendSurroundings& s) { return std::make_unique<Holds>(s); })
          .ok());
  const Status status = bench.open({{"backend", "Holds"}});
  ASSERT_TRUE(status.ok()) << status.to_string();
  Dict request = VirtualBench::request(1);
  EXPECT_TRUE(bench.pipeline.run(request).ok());
}

TEST(ChainPromises, TheBackendOfAnInstanceThreadIsItsKeysElseTheNodes) {
  for (const Config& config : std::vector<Config>{
           {{"InstanceThread::backend", "Answers"}},
           {{"ContrastInstances::backend", "InstanceThread[Answers]"}},
           {{"Interpreter::backend",
             "BaselineSchedule[Fusion[ContrastInstances[InstanceThread[Answers]]]]"}}}) {
    AnswersBench bench;
    ASSERT_TRUE(bench.open(config).ok());
    Dict request = VirtualBench::request(7);
    EXPECT_TRUE(bench.pipeline.run(request).ok());
    EXPECT_EQ(std::any_cast<int>(request.at(kResult)), 42) << config.rbegin()->second;
    EXPECT_EQ(bench.pipeline.topology().groups[0].backend, "Answers");
  }
}

TEST(ChainPromises, AStageOfOneInstanceRefusesMoreOfThem) {
  for (const char* number : {"1&2", "1&1", "5"}) {
    VirtualBench bench;
    const Status status =
        bench.open({{"BaselineSchedule::backend", "InstanceThread"}, {"instance_num", number}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << number << status.to_string();
  }
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"BaselineSchedule::backend", "InstanceThread"}}).ok());
  EXPECT_TRUE(bench.pipeline.reconfigure({{"batching_timeout", "3"}}).ok());
  EXPECT_EQ(bench.pipeline.reconfigure({{"instance_num", "2"}}).code(), Code::kUnsupported);
  EXPECT_EQ(bench.pipeline.reconfigure({{"instance_num", "1&1"}}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(bench.pipeline.reconfigure({{"batching_timeout", "4"}}).ok());
}

TEST(ChainPromises, AShortListOfAChangeRepeatsItsLastPart) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"instance_num", "1&2"}}).ok());
  const auto instances = [&] {
    const Topology topology = bench.pipeline.topology();
    return std::pair(topology.groups[0].instances, topology.groups[1].instances);
  };
  EXPECT_TRUE(bench.pipeline.reconfigure({{"instance_num", "3"}}).ok());
  EXPECT_EQ(instances(), std::pair(3U, 3U));
  EXPECT_TRUE(bench.pipeline.reconfigure({{"max_batch", "1"}}).ok());
  EXPECT_TRUE(bench.pipeline.reconfigure({{"instance_num", "2&1"}}).ok());
  EXPECT_EQ(instances(), std::pair(2U, 1U));
  EXPECT_EQ(bench.pipeline.reconfigure({{"instance_num", "1&1&1"}}).code(), Code::kInvalidArgument);
}

TEST(ChainPromises, AMaxBatchBelowTheMinThatABackendReportsIsRefused) {
  VirtualBench bench;
  const Config config{{"Scripted::min", "4"}, {"Scripted::max", "8"}, {"padding", "true"}};
  Config low = config;
  low["max_batch"] = "3";
  const Status status = bench.open(low);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.to_string();
  ASSERT_TRUE(bench.open(config).ok());
  EXPECT_EQ(bench.pipeline.reconfigure({{"max_batch", "3"}}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(bench.pipeline.reconfigure({{"max_batch", "4"}}).ok());
}

TEST(ChainPromises, ASchedulerOfTheUsersIsHeldToItsRangeAndGetsRequestsThatArePossible) {
  for (const char* key : {"PipelineV3::backend", "Interpreter::backend"}) {
    AnswersBench bench({2, 4});
    ASSERT_TRUE(bench.open({{key, "Answers"}}).ok());
    const auto code = [&](int data, const RequestOptions& with) {
      Dict request = VirtualBench::request(data);
      return bench.pipeline.run(request, with).code();
    };
    EXPECT_EQ(code(1, {.items = 2}), Code::kOk);
    EXPECT_EQ(code(1, {.items = 1}), Code::kOutOfRange);
    EXPECT_EQ(code(1, {.items = 5}), Code::kOutOfRange);
    EXPECT_EQ(code(1, {.items = 0}), Code::kInvalidArgument);
    EXPECT_EQ(code(1, {.items = 2, .timeout = milliseconds(-1)}), Code::kInvalidArgument);
    EXPECT_EQ(code(1, {.items = 2, .priority = 128}), Code::kInvalidArgument);
    for (const int bad : {13, 14}) {
      Dict request = VirtualBench::request(bad);
      const std::string text = bench.pipeline.run(request, {.items = 2}).to_string();
      EXPECT_NE(text.find("backend 'Answers'"), std::string::npos) << text;
    }
    for (const Range range : {Range{0, 0}, Range{5, 2}}) {
      AnswersBench broken(range);
      EXPECT_EQ(broken.open({{key, "Answers"}}).code(), Code::kEngineFailed);
    }
  }
}

TEST(ChainPromises, InstancesOfAGroupAreNumberedAndShareADictionary) {
  using Seen = std::map<std::string, std::vector<std::pair<std::string, void*>>>;
  class Numbered final : public Backend {
   public:
    explicit Numbered(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
    Status init(const Config& config, const SharedDict& shared) override {
      (*seen_)[config.at("model")].emplace_back(config.at(kThreadIndex), shared.get());
      return {};
    }
    Status forward(std::span<const RequestPtr>) override { return {}; }

   private:
    const std::shared_ptr<Seen> seen_;
  };
  VirtualBench bench;
  const auto seen = std::make_shared<Seen>();
  ASSERT_TRUE(
      bench.registry
          .add("Numbered",
               [seen](const BackendSurroundings&) { return std::make_unique<Numbered>(seen); },
               {"model"})
          .ok());
  ASSERT_TRUE(
      bench.open({{"backend", "Numbered"}, {"model", "a&b"}, {"instance_num", "2&3"}}).ok());
  ASSERT_EQ(seen->size(), 2U);
  for (const auto& [model, instances] : *seen) {
    ASSERT_EQ(instances.size(), model == "a" ? 2U : 3U);
    for (std::size_t i = 0; i < instances.size(); ++i) {
      EXPECT_EQ(instances[i].first, std::to_string(i)) << model;
      EXPECT_EQ(instances[i].second, instances[0].second) << model;
    }
  }
  EXPECT_NE(seen->at("a")[0].second, seen->at("b")[0].second);
}

TEST(ChainPromises, AListMayMixEventsWithRequestsThatAreWaitedFor) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "4"}}).ok());
  std::vector<Dict> requests;
  std::vector<std::shared_ptr<Event>> events;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(VirtualBench::request(i));
    if (i % 2 == 0) continue;
    events.push_back(std::make_shared<Event>());
    requests.back()[kEvent] = events.back();
  }
  for (const Status& status : bench.pipeline.run(requests)) EXPECT_TRUE(status.ok());
  for (std::size_t i = 0; i < 6; ++i) {
    Dict values = i % 2 == 0 ? requests[i] : Dict();
    if (i % 2 == 1) {
      ASSERT_TRUE(events[i / 2]->wait().ok());
      values = *events[i / 2]->take();
    }
    EXPECT_EQ(std::any_cast<int>(values.at(kResult)), static_cast<int>(i));
  }
}

TEST(ChainPromises, AnEmptyPipelineAndAnEventOfSubmitSaySo) {
  const Pipeline none;
  int calls = 0;
  const Ticket ticket = none.submit(VirtualBench::request(1), {},
                                    [&](const Ticket& ended) { calls += ended.done(); });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(ticket.done());
  EXPECT_EQ(ticket.state(), RequestState::kRejected);
  for (const Status& status : {ticket.wait(), none.drain(), Status(none.why(1).error())}) {
    EXPECT_EQ(status.code(), Code::kWrongState);
    EXPECT_NE(status.message().find("an empty pipeline"), std::string::npos) << status.to_string();
  }
  VirtualBench bench;
  ASSERT_TRUE(bench.open({}).ok());
  const Ticket refused = bench.pipeline.submit({{kData, 1}, {kEvent, std::make_shared<Event>()}});
  EXPECT_EQ(refused.wait().code(), Code::kInvalidArgument);
}

TEST(ChainPromises, ATraceKeepsTheTracksOfInstancesThatAreGone) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open({{"model", "a&b"}, {"max", "1&4"}, {"instance_num", "2&1"}}).ok());
  for (int i = 0; i < 3; ++i) bench.submit_at(0, i);
  bench.run_all();
  ASSERT_TRUE(bench.pipeline.reconfigure({{"instance_num", "1&1"}}).ok());
  const std::string trace = bench.pipeline.chrome_trace();
  for (const char* track : {"Scripted 0/0", "Scripted 0/1", "Scripted 1/0"})
    EXPECT_NE(trace.find(track), std::string::npos) << track;
}

}  // namespace
}  // namespace corelane::scheduler
