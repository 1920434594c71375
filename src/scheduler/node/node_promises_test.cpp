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

/// A value that std::any takes, and that cannot be copied.
struct Uncopyable {
  Uncopyable() = default;
  Uncopyable(const Uncopyable&) { throw std::runtime_error("no copy"); }
};

}  // namespace
}  // namespace corelane::scheduler
