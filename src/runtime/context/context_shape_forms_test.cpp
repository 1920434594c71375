// Contexts of programs with open dimensions: shapes that come back get a static form, and what a
// user sees does not depend on which form runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <optional>
#include <thread>

#include "corelane/base/log.h"
#include "corelane/device/host_operator.h"
#include "runtime/program/static_forms.h"
#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using runtime::kMostShapeForms;
using std::chrono::milliseconds;
using testing::floats_of;
using testing::view_of;

const Shape kOpenColumns{1, Shape::kOpen};
constexpr std::uint64_t kRunsBeforeForm = runtime::kRunsBeforeForm;

/// x [1, n] -> y on a device whose static forms take 6 us, and its open ones 10.
struct ShapeBench {
  explicit ShapeBench(const LoadOptions& options = {}, const testing::FakeConfig& config = plain(),
                      std::size_t constants = 0)
      : setup(prepared(config), description(config, constants), options) {
    setup.device->open_run_time = milliseconds(10);
    setup.device->run_times[""] = milliseconds(6);
  }
  static testing::FakeConfig plain() { return testing::one_in_one_out(kOpenColumns); }
  static testing::FakeConfig prepared(const testing::FakeConfig& config) {
    // The tests' environment switches them off, so that memory and results repeat.
    ::setenv("CORELANE_STATIC_FORMS", "1", 1);
    ::setenv("CORELANE_TIME_ENGINES", "1", 1);
    return config;
  }
  static ProgramDescription description(const testing::FakeConfig& config, std::size_t constants) {
    ProgramDescription d = testing::fake_description(config);
    d.constant_bytes = constants;
    return d;
  }
  /// Runs `size` ones, which gives threes.
  void run(std::int64_t size, std::uint64_t times = 1) {
    x.assign(static_cast<std::size_t>(size), 1);
    ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{1, size})).ok());
    for (std::uint64_t i = 0; i < times; ++i) {
      const Status status = context.run(run_options);
      ASSERT_TRUE(status.ok()) << status.to_string();
      const auto y = context.output(0);
      ASSERT_TRUE(y) << y.error().to_string();
      EXPECT_EQ(y->shape, (Shape{1, size}));
      EXPECT_EQ(floats_of(*y), std::vector<float>(x.size(), 3));
    }
  }
  /// Until the shape has its form, as far as it gets one.
  void settle(std::int64_t size, std::uint64_t times = kRunsBeforeForm) {
    run(size, times);
    setup.program.wait_forms();
  }
  /// Shape of what ran last.
  Shape ran() const { return setup.device->last.executable->inputs()[0].shape; }
  std::size_t forms() const { return setup.program.forms().size(); }

  std::vector<float> x;  ///< Stays bound.
  RunOptions run_options;
  testing::FakeSetup setup;
  Context context = setup.program.new_context().value();
};

TEST(ContextShapeForms, AShapeThatComesBackGetsAStaticForm) {
  ShapeBench bench;
  bench.settle(5, kRunsBeforeForm - 1);
  EXPECT_EQ(bench.forms(), 1U);
  bench.settle(5, 1);
  ASSERT_EQ(bench.forms(), 2U);
  bench.run(5, 3);
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  bench.run(6);
  EXPECT_EQ(bench.ran(), kOpenColumns);
  bench.run(5);
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  const ProgramForm form = bench.setup.program.forms()[1];
  EXPECT_EQ(form.input_shapes, (std::vector<Shape>{{1, 5}}));
  EXPECT_EQ(form.runs, 4U);
  EXPECT_EQ(form.engine, "fake 1");
  EXPECT_EQ(bench.setup.program.memory().weights, 2000U);
}

TEST(ContextShapeForms, OnlyAFasterFormIsKept) {
  ShapeBench bench;
  bench.setup.device->open_run_time = milliseconds(6);
  bench.settle(5, 10 * kRunsBeforeForm);
  EXPECT_EQ(bench.forms(), 1U);
  EXPECT_EQ(bench.setup.device->prepared.size(), 2U) << "it was tried once";
  bench.run(5);
  EXPECT_EQ(bench.ran(), kOpenColumns);
}

TEST(ContextShapeForms, TheFirstFormHasToWinByLessThanTheOthers) {
  ShapeBench bench;
  bench.setup.device->run_times[""] = milliseconds(95);
  bench.setup.device->open_run_time = milliseconds(100);
  bench.settle(5);
  EXPECT_EQ(bench.forms(), 2U);
  bench.settle(6);
  EXPECT_EQ(bench.forms(), 2U);
  bench.setup.device->open_run_time = milliseconds(110);
  bench.settle(7);
  EXPECT_EQ(bench.forms(), 3U);
}

TEST(ContextShapeForms, TheOptionAndTheEnvironmentSwitchThemOff) {
  LoadOptions options;
  options.static_forms = false;
  ShapeBench off(options);
  off.settle(5, 3 * kRunsBeforeForm);
  EXPECT_EQ(off.forms(), 1U);
  const testing::FakeConfig config = ShapeBench::prepared(ShapeBench::plain());
  ::setenv("CORELANE_STATIC_FORMS", "0", 1);
  testing::FakeSetup setup(config);
  ::setenv("CORELANE_STATIC_FORMS", "1", 1);
  Context context = setup.program.new_context().value();
  ASSERT_TRUE(context.set_input_shapes({Shape{1, 5}}).ok());
  for (std::uint64_t i = 0; i < 3 * kRunsBeforeForm; ++i) ASSERT_TRUE(context.run().ok());
  setup.program.wait_forms();
  EXPECT_EQ(setup.program.forms().size(), 1U);
}

TEST(ContextShapeForms, AFormThatTheDeviceRefusesLeavesTheOpenOne) {
  ShapeBench bench;
  bench.setup.device->on_prepare = [](const device::PrepareOptions&) -> Status {
    return error(Code::kEngineFailed, "no");
  };
  bench.settle(5);
  bench.run(5, 3 * kRunsBeforeForm);
  EXPECT_EQ(bench.ran(), kOpenColumns);
}

TEST(ContextShapeForms, ConstantsStayWithinTheBudget) {
  LoadOptions options;
  options.replicate_limit = 150;
  testing::FakeConfig config = ShapeBench::plain();
  config.figures = {100, 0, 0};
  ShapeBench bench(options, config, 100);
  bench.settle(5);
  bench.settle(6);
  EXPECT_EQ(bench.forms(), 2U) << "a second one has no room";
  options.replicate_limit = 0;
  ShapeBench none(options, ShapeBench::plain(), 100);
  none.settle(5, 5 * kRunsBeforeForm);
  EXPECT_EQ(none.forms(), 1U);
}

TEST(ContextShapeForms, AFormCountsWithAllThatItTakesBesideTheImage) {
  LoadOptions options;
  options.replicate_limit = 2000;
  // Constants packed once more, and activations: 950 bytes a form.
  testing::FakeConfig config = ShapeBench::plain();
  config.figures = {750, 300, 0};
  ShapeBench bench(options, config, 100);
  for (std::int64_t size = 5; size <= 8; ++size) bench.settle(size);
  EXPECT_EQ(bench.forms(), 3U) << "a third one has no room";
  EXPECT_EQ(bench.setup.device->prepared.size(), 3U) << "nor is it prepared to see that";

  options.replicate_limit = 949;
  ShapeBench small(options, config, 100);
  small.settle(5, 10 * kRunsBeforeForm);
  EXPECT_EQ(small.forms(), 1U);
  EXPECT_EQ(small.setup.device->prepared.size(), 2U) << "it was measured once";
}

TEST(ContextShapeForms, TheDeviceKeepsAQuarterOfItsMemoryForUsers) {
  ShapeBench bench;
  bench.setup.device->set_memory_limit(1000, 751);
  bench.settle(5);
  EXPECT_EQ(bench.forms(), 1U);
  bench.setup.device->set_memory_limit(1000, 750);
  bench.settle(5);
  EXPECT_EQ(bench.forms(), 2U);
}

TEST(ContextShapeForms, FormsAreBoundedAndTheLeastUsedLeaves) {
  ShapeBench bench;
  for (std::int64_t size = 1; size <= 9; ++size) bench.settle(size, 20);
  EXPECT_EQ(bench.forms(), 1 + kMostShapeForms);
  bench.run(9);
  EXPECT_EQ(bench.ran(), kOpenColumns);
  for (int i = 0; i < 100; ++i) bench.settle(9, 20);
  EXPECT_EQ(bench.forms(), 1 + kMostShapeForms);
  bench.run(9);
  EXPECT_EQ(bench.ran(), (Shape{1, 9}));
  // Nothing holds the one that has left: neither the program nor the context.
  std::size_t gone = 0;
  for (const auto& executable : bench.setup.device->made) gone += executable.expired() ? 1 : 0;
  EXPECT_EQ(gone, 1U);
}

TEST(ContextShapeForms, OutputsAreDescribedAlikeByEveryForm) {
  ShapeBench bench;
  bench.settle(5);
  bench.run(5);
  ASSERT_EQ(bench.ran(), (Shape{1, 5}));
  EXPECT_EQ(bench.context.outputs()[0].shape, kOpenColumns);
  EXPECT_EQ(bench.context.inputs()[0].shape, (Shape{1, 5}));
}

TEST(ContextShapeForms, MemoryThatIsBoundStaysBoundWhileFormsChange) {
  ShapeBench bench;
  ASSERT_TRUE(bench.context.set_input_shapes({Shape{1, 5}}).ok());
  const auto x = bench.context.input(0);
  ASSERT_TRUE(x);
  auto* const own = static_cast<float*>(x->data);
  std::vector<float> y(5);
  ASSERT_TRUE(bench.context.bind_output(0, view_of(y, Shape{1, 5})).ok());
  for (std::uint64_t i = 0; i < 2 * kRunsBeforeForm; ++i) {
    std::fill_n(own, 5, static_cast<float>(i));
    ASSERT_TRUE(bench.context.run().ok());
    EXPECT_EQ(y, std::vector<float>(5, 2 * static_cast<float>(i) + 1));
    if (i + 1 == kRunsBeforeForm) bench.setup.program.wait_forms();
  }
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  EXPECT_EQ(bench.context.input(0)->data, own);
}

TEST(ContextShapeForms, OutputMemoryOfAnotherShapeRunsOnTheOpenForm) {
  ShapeBench bench;
  bench.settle(5);
  bench.run(5);
  ASSERT_EQ(bench.ran(), (Shape{1, 5}));
  // Larger than the result, as the open form takes it.
  std::vector<float> y(8, -1);
  ASSERT_TRUE(bench.context.bind_output(0, view_of(y, Shape{1, 8})).ok());
  ASSERT_TRUE(bench.context.run().ok());
  EXPECT_EQ(bench.ran(), kOpenColumns);
  EXPECT_EQ(y[4], 3);
  // A change of the shape finds the form again, and leaves it for what is bound.
  bench.run(6);
  bench.run(5);
  EXPECT_EQ(bench.ran(), kOpenColumns);
  std::vector<float> fitting(5, -1);
  ASSERT_TRUE(bench.context.bind_output(0, view_of(fitting, Shape{1, 5})).ok());
  ASSERT_TRUE(bench.context.run().ok());
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  EXPECT_EQ(fitting, std::vector<float>(5, 3));
}

TEST(ContextShapeForms, AnOutputOfAnyShapeIsWrittenByEitherForm) {
  ShapeBench bench;
  std::vector<float> y(8, -1);
  ASSERT_TRUE(bench.context.bind_output(0, view_of(y, kOpenColumns)).ok());
  bench.settle(5);
  std::ranges::fill(y, -1);
  ASSERT_TRUE(bench.context.run().ok());
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  EXPECT_EQ(y, (std::vector<float>{3, 3, 3, 3, 3, -1, -1, -1}));
}

TEST(ContextShapeForms, AfterALossTheOpenFormComesFirst) {
  ShapeBench bench;
  bench.settle(5);
  bench.run(5);
  ASSERT_EQ(bench.ran(), (Shape{1, 5}));
  ++*bench.setup.device->losses;
  bench.run(5);
  EXPECT_EQ(bench.ran(), kOpenColumns);
  EXPECT_EQ(bench.forms(), 1U);
  bench.settle(5);
  bench.run(5);
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
}

TEST(ContextShapeForms, TheyWaitForTheChoiceOfTheEngineAndCompareWithIt) {
  testing::FakeConfig config = ShapeBench::plain();
  config.engines = {"a", "b"};
  ShapeBench bench({}, config);
  bench.setup.device->open_run_times = {{"", milliseconds(10)}, {"b", milliseconds(7)}};
  bench.settle(5);
  bench.setup.program.wait_engines();
  EXPECT_EQ(bench.setup.program.engine().engine, "b");
  EXPECT_EQ(bench.forms(), 1U);
  // Of the device's own engine, since fixed shapes may change which one is the faster.
  bench.settle(5);
  ASSERT_EQ(bench.forms(), 2U);
  EXPECT_EQ(bench.setup.program.forms()[1].engine, "fake 1");
  bench.setup.device->open_run_times["b"] = milliseconds(6);
  bench.settle(6);
  EXPECT_EQ(bench.forms(), 2U) << "no faster than the other engine's open form";
}

TEST(ContextShapeForms, ARefusedShapeIsTimedAgainOnceRunsTakeOtherCores) {
  testing::FakeConfig config = ShapeBench::plain();
  config.engines = {"a", "b"};
  ShapeBench bench({}, config);
  bench.setup.device->open_run_times["b"] = milliseconds(20);
  // Jobs on several cores take as long on the static form as on the open one.
  bench.setup.device->wide_run_times = {{"", milliseconds(5)}, {"b", milliseconds(9)}};
  bench.run_options.cores = device::CoreSet::platform();
  bench.settle(5);
  bench.setup.program.wait_engines();
  bench.settle(5, 2 * kRunsBeforeForm);
  EXPECT_EQ(bench.forms(), 1U);
  bench.run_options.cores = device::CoreSet::any(1);
  bench.run(5, runtime::kRunsBeforeAnother);
  bench.setup.program.wait_engines();
  EXPECT_EQ(bench.forms(), 1U);
  bench.settle(5);
  bench.run(5);
  EXPECT_EQ(bench.ran(), (Shape{1, 5}));
  EXPECT_EQ(bench.setup.program.engine().engine, "fake 1");
}

TEST(ContextShapeForms, AProgramThatEndsDoesNotWaitForTheComparison) {
  auto bench = std::make_unique<ShapeBench>();
  bench->setup.device->open_run_time = milliseconds(0);  // It would take thousands of runs.
  bench->run(5, kRunsBeforeForm);
  bench.reset();
}

TEST(ContextShapeForms, ThreadsRunOnWhileFormsComeAndGo) {
  ShapeBench bench;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Context context = bench.setup.program.new_context().value();
      std::vector<float> x(64, static_cast<float>(t));
      std::vector<float> y(64);
      for (int i = 0; i < 3000; ++i) {
        // The shapes in use move on, so that forms leave again.
        const std::int64_t size = 1 + (i / 500) * 4 + (i + t) % 4;
        const Shape shape{1, size};
        y.assign(64, -1);
        std::vector<float> expected(64, -1);
        std::fill_n(expected.begin(), size, 2 * static_cast<float>(t) + 1);
        const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
        if (!context.bind_input(0, {x.data(), bytes, DType::kF32, shape, {}, {}}).ok()) ++wrong;
        if (!context.bind_output(0, {y.data(), bytes, DType::kF32, shape, {}, {}}).ok()) ++wrong;
        if (!context.run().ok() || y != expected) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  bench.setup.program.wait_forms();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(bench.setup.device->prepared.size(), kMostShapeForms);
  EXPECT_LE(bench.forms(), 1 + kMostShapeForms);
}

/// The callback is called by the thread that makes forms, which uses the program again afterwards.
TEST(ContextShapeForms, AProgramThatACallbackOfTheLogDropsEndsWhenItsThreadIsDone) {
  const log::Level level = log::level();
  for (const char* line : {"takes 0.60 of the time", "has a form of its own"}) {
    std::latch idle(1);
    std::latch ended(1);
    LoadOptions options;
    options.host_operators = std::shared_ptr<device::HostOperatorTable>(
        new device::HostOperatorTable, [&](device::HostOperatorTable* table) {
          delete table;
          ended.count_down();
        });
    std::optional<ShapeBench> bench(options);
    options.host_operators.reset();
    log::set_level(log::Level::kDebug);
    log::set_callback([&](log::Level, std::string_view, std::string_view text) {
      if (text.find(line) == std::string_view::npos) return;
      idle.wait();
      bench.reset();
      EXPECT_FALSE(ended.try_wait()) << line;
    });
    bench->run(5, kRunsBeforeForm);
    idle.count_down();
    ended.wait();
    log::set_callback({});
    log::set_level(level);
  }
}

}  // namespace
}  // namespace corelane
