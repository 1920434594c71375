#include "scheduler/node/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "corelane/scheduler/stage.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

/// A scheduler that answers 42 by itself.
class Own final : public Backend {
 public:
  Status forward(std::span<const RequestPtr> batch) override {
    for (const RequestPtr& request : batch) request->values[kResult] = 42;
    return {};
  }
  std::uint32_t max() const noexcept override { return 7; }
};

Status add_own(VirtualBench& bench) {
  return bench.registry.add("Own",
                            [](const BackendSurroundings&) { return std::make_unique<Own>(); });
}

/// Breaks one promise of the interface.
class Broken final : public Backend {
 public:
  explicit Broken(std::string how) : how_(std::move(how)) {}
  Status init(const Config& /*config*/, const SharedDict& /*shared*/) override {
    if (how_ == "init throws") throw 42;
    return {};
  }
  Status forward(std::span<const RequestPtr> batch) override {
    if (how_ == "forward throws") throw 42;
    if (how_ == "drops the values")
      for (const RequestPtr& request : batch) request->values.clear();
    if (how_ == "keeps the request") kept_.assign(batch.begin(), batch.end());
    return {};
  }
  std::uint32_t min() const noexcept override { return how_ == "min above max" ? 5 : 1; }
  std::uint32_t max() const noexcept override { return how_ == "max of 0" ? 0 : 4; }

 private:
  const std::string how_;
  std::vector<RequestPtr> kept_;
};

/// A value that cannot be copied once `armed`.
struct Uncopyable {
  static inline bool armed = false;
  Uncopyable() = default;
  Uncopyable(const Uncopyable&) {
    if (armed) throw std::runtime_error("no copy");
  }
};

TEST(Chain, ASchedulerOfTheUsersHasNoFiguresAndMayGetAnyValue) {
  VirtualBench bench;
  ASSERT_TRUE(add_own(bench).ok());
  ASSERT_TRUE(bench.open({{"Interpreter::backend", "Own"}}).ok());
  EXPECT_EQ(bench.pipeline.prometheus_text(), "");
  Dict request = VirtualBench::request(1);
  request["mine"] = Uncopyable();
  Uncopyable::armed = true;
  const Status failed = bench.pipeline.run(request);
  Uncopyable::armed = false;
  EXPECT_EQ(failed.code(), Code::kEngineFailed);
  EXPECT_THAT(failed.to_string(), ::testing::HasSubstr("no copy"));
}

TEST(Chain, EachPartCanBeReplaced) {
  for (const std::string key :
       {"Interpreter::backend", "PipelineV3::backend", "BaselineSchedule::backend",
        "Fusion::backend", "ContrastInstances::backend", "backend"}) {
    VirtualBench bench;
    ASSERT_TRUE(add_own(bench).ok());
    ASSERT_TRUE(bench.open({{key, "Own"}}).ok()) << key;
    Dict request = VirtualBench::request(1);
    EXPECT_TRUE(bench.pipeline.run(request).ok()) << key;
    EXPECT_EQ(std::any_cast<int>(request.at(kResult)), 42) << key;
    const bool whole = key == "Interpreter::backend" || key == "PipelineV3::backend";
    EXPECT_EQ(bench.pipeline.max(), whole ? 7U : UINT32_MAX) << key;
    if (whole) EXPECT_EQ(bench.pipeline.drain().code(), Code::kUnsupported);
  }
}

TEST(Chain, AWholeChainMayBeWrittenOut) {
  VirtualBench bench;
  ASSERT_TRUE(bench
                  .open({{"Interpreter::backend",
                          "BaselineSchedule[Fusion[ContrastInstances[InstanceThread]]]"},
                         {"max", "4"},
                         {"instance_num", "2"}})
                  .ok());
  EXPECT_EQ(bench.pipeline.topology().groups[0].instances, 2U);
  Dict request = VirtualBench::request(3);
  EXPECT_TRUE(bench.pipeline.run(request).ok());
}

TEST(Chain, ASchedulerOfItsOwnNeedsDataToo) {
  VirtualBench bench;
  ASSERT_TRUE(add_own(bench).ok());
  ASSERT_TRUE(bench.open({{"Interpreter::backend", "Own"}}).ok());
  Dict empty;
  EXPECT_EQ(bench.pipeline.run(empty).code(), Code::kOutOfRange);
  int calls = 0;
  const Ticket ticket = bench.pipeline.submit(VirtualBench::request(1), {},
                                              [&](const Ticket& done) { calls += done.done(); });
  EXPECT_TRUE(ticket.wait().ok());
  EXPECT_EQ(calls, 1);
}

TEST(Chain, ABackendThatBreaksItsPromisesIsATypedError) {
  const std::pair<const char*, Code> inits[] = {{"init throws", Code::kEngineFailed},
                                                {"min above max", Code::kEngineFailed},
                                                {"max of 0", Code::kEngineFailed}};
  const std::pair<const char*, Code> runs[] = {{"forward throws", Code::kEngineFailed},
                                               {"drops the values", Code::kBadResult},
                                               {"keeps the request", Code::kBadResult}};
  const auto open = [](VirtualBench& bench, const std::string& how) {
    (void)bench.registry.add(
        "Broken", [how](const BackendSurroundings&) { return std::make_unique<Broken>(how); });
    return bench.open({{"backend", "Broken"}, {"isolate", "false"}});
  };
  for (const auto& [how, code] : inits) {
    VirtualBench bench;
    EXPECT_EQ(open(bench, how).code(), code) << how;
  }
  for (const auto& [how, code] : runs) {
    VirtualBench bench;
    ASSERT_TRUE(open(bench, how).ok()) << how;
    for (int i = 0; i < 3; ++i) {
      Dict request = VirtualBench::request(i);
      const Status status = bench.pipeline.run(request);
      EXPECT_EQ(status.code(), code) << how;
      EXPECT_FALSE(request.contains(kResult));
    }
    EXPECT_TRUE(bench.pipeline.drain().ok());
  }
}

/// A stage that ends each call before start() returns, twice, or refuses all of them.
class AtOnce final : public Stage {
 public:
  explicit AtOnce(bool refuses) : refuses_(refuses) {}
  std::vector<Topology::Group> groups() const override { return {{"AtOnce", {1, 1}, 1}}; }
  bool repeatable_group(std::uint32_t) const override { throw 42; }
  Status start(StageCall call) override {
    if (refuses_) return error(Code::kIo, "no");
    for (const RequestPtr& request : call.batch) request->values[kResult] = 1;
    call.done(Status());
    call.done(error(Code::kIo, "again"));
    return {};
  }

 private:
  const bool refuses_;
};

TEST(Chain, AStageThatEndsCallsInStartServesALongLine) {
  for (const bool refuses : {false, true}) {
    VirtualBench bench;
    (void)bench.registry.add("AtOnce", [refuses](const BackendSurroundings&) {
      return std::make_unique<AtOnce>(refuses);
    });
    ASSERT_TRUE(bench.open({{"BaselineSchedule::backend", "AtOnce"}, {"records", "10"}}).ok());
    std::vector<Dict> requests(20'000);
    for (Dict& request : requests) request = VirtualBench::request(1);
    const std::vector<Status> answers = bench.pipeline.run(requests);
    const auto ok = std::ranges::count_if(answers, [](const Status& s) { return s.ok(); });
    EXPECT_EQ(ok, refuses ? 0 : 20'000);
    EXPECT_EQ(bench.pipeline.statistics().failed, refuses ? 20'000U : 0U);
    bench.adds_up();
  }
}

TEST(Chain, AStageAloneRunsOnWhatIsIdle) {
  VirtualBench bench;
  BackendSurroundings surroundings{bench.script->clock, &bench.registry};
  for (const char* name : {"InstanceThread", "ContrastInstances", "Fusion"}) {
    auto stage = bench.registry.make(name, surroundings);
    ASSERT_TRUE(stage);
    ASSERT_TRUE(
        (*stage)->init({{"backend", "Scripted"}, {"max", "2"}}, std::make_shared<Dict>()).ok())
        << name;
    EXPECT_EQ((*stage)->max(), 2U);
    std::vector<RequestPtr> batch;
    for (int i = 0; i < 3; ++i)
      batch.push_back(std::make_shared<Request>(VirtualBench::request(i), RequestOptions{}));
    EXPECT_EQ((*stage)->forward(batch).code(), Code::kOutOfRange) << name;
    EXPECT_TRUE((*stage)->forward(std::span(batch).first(2)).ok()) << name;
    EXPECT_TRUE(batch[1]->values.contains(kResult));
  }
}

}  // namespace
}  // namespace corelane::scheduler
