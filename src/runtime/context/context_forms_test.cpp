// Contexts of programs with a batch range: which form runs, and what a user sees of the change.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "corelane/base/log.h"
#include "runtime/program/static_forms.h"
#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using runtime::kRunsBeforeForm;
using testing::floats_of;
using testing::view_of;

/// x [batch, 4] -> y on a device that notes what it prepares, for batches of 1 to 8.
struct Bench {
  explicit Bench(std::size_t constants = 0, const LoadOptions& options = {})
      : setup(config(), description(constants), options) {}
  static testing::FakeConfig config() {
    testing::FakeConfig c = testing::one_in_one_out({Shape::kOpen, 4});
    c.inputs[0].dim_names = c.outputs[0].dim_names = {"batch", ""};
    return c;
  }
  static ProgramDescription description(std::size_t constants) {
    ProgramDescription d = testing::fake_description(config());
    d.batch_range = BatchRange{1, 8};
    d.constant_bytes = constants;
    return d;
  }
  /// Runs a batch of `rows` ones, which gives threes.
  void run(std::int64_t rows, std::uint32_t times = 1) {
    x.assign(static_cast<std::size_t>(rows) * 4, 1);
    ASSERT_TRUE(context.bind_input(0, view_of(x, Shape{rows, 4})).ok());
    for (std::uint32_t i = 0; i < times; ++i) {
      ASSERT_TRUE(context.run().ok());
      const auto y = context.output(0);
      ASSERT_TRUE(y) << y.error().to_string();
      EXPECT_EQ(y->shape, (Shape{rows, 4}));
      EXPECT_EQ(floats_of(*y), std::vector<float>(x.size(), 3));
    }
  }
  /// Shapes of what ran last.
  Shape ran() const { return setup.device->last.executable->inputs()[0].shape; }

  std::vector<float> x;  ///< Stays bound.
  testing::FakeSetup setup;
  Context context = setup.program.new_context().value();
};

const Shape kOpenForm{Shape::kOpen, 4};

TEST(ContextForms, RunsGoOnOnTheOpenFormWhileAnotherIsMade) {
  Bench bench;
  std::latch inside(1);
  std::latch go_on(1);
  bench.setup.device->on_prepare = [&](const device::PrepareOptions&) {
    inside.count_down();
    go_on.wait();
    return Status();
  };
  bench.run(2, kRunsBeforeForm);
  inside.wait();
  bench.run(2, 3);
  EXPECT_EQ(bench.ran(), kOpenForm);
  bench.run(5);
  EXPECT_EQ(bench.setup.program.forms().size(), 1U);
  go_on.count_down();
  ASSERT_TRUE(bench.setup.program.make_batch_form(2).ok());
  EXPECT_EQ(bench.setup.device->prepared.size(), 2U) << "the one that was due is waited for";
  bench.run(5);
  EXPECT_EQ(bench.ran(), kOpenForm);
  bench.run(2);
  EXPECT_EQ(bench.ran(), (Shape{2, 4}));
}

TEST(ContextForms, AContextThatStaysAtItsSizeTakesTheFormAtItsNextRun) {
  Bench bench;
  bench.run(3);
  EXPECT_EQ(bench.ran(), kOpenForm);
  ASSERT_TRUE(bench.setup.program.make_batch_form(3).ok());
  ASSERT_TRUE(bench.context.run().ok());
  EXPECT_EQ(bench.ran(), (Shape{3, 4}));
  auto inference = bench.context.submit();
  ASSERT_TRUE(inference);
  EXPECT_TRUE(inference->wait().ok());
  EXPECT_EQ(bench.setup.device->last.batch, 3U);
}

TEST(ContextForms, OwnInputsStayWhereTheyAre) {
  Bench bench;
  ASSERT_TRUE(bench.context.set_input_shapes({Shape{8, 4}}).ok());
  auto* const at = static_cast<float*>(bench.context.input(0)->data);
  for (const std::int64_t rows : {2, 5, 2}) {
    ASSERT_TRUE(bench.context.set_input_shapes({Shape{rows, 4}}).ok());
    const auto x = bench.context.input(0).value();
    EXPECT_EQ(x.data, at);
    EXPECT_EQ(x.size, static_cast<std::size_t>(rows) * 16);
    std::fill_n(at, rows * 4, 4.0F);
    ASSERT_TRUE(bench.setup.program.make_batch_form(2).ok());
    ASSERT_TRUE(bench.context.run().ok());
    EXPECT_EQ(floats_of(*bench.context.output(0)),
              std::vector<float>(static_cast<std::size_t>(rows) * 4, 9));
    EXPECT_EQ(bench.context.input(0)->data, at);
  }
  EXPECT_EQ(bench.context.memory().buffers % 16, 0U);
}

TEST(ContextForms, AReturnToASizeMakesNoNewBindings) {
  Bench bench;
  for (const std::uint32_t batch : {1, 2})
    ASSERT_TRUE(bench.setup.program.make_batch_form(batch).ok());
  bench.run(1);
  const auto one = bench.setup.device->last.bindings;
  bench.run(2);
  const auto two = bench.setup.device->last.bindings;
  EXPECT_NE(one, two);
  for (int i = 0; i < 3; ++i) {
    bench.run(1);
    EXPECT_EQ(bench.setup.device->last.bindings, one);
    bench.run(2);
    EXPECT_EQ(bench.setup.device->last.bindings, two);
  }
}

TEST(ContextForms, ABufferThatTheContextLeftIsNotHeld) {
  Bench bench;
  for (const std::uint32_t batch : {1, 2})
    ASSERT_TRUE(bench.setup.program.make_batch_form(batch).ok());
  auto buffer = bench.setup.device->create_buffer(64, {}).value();
  ASSERT_TRUE(bench.context.set_input_shapes({Shape{1, 4}}).ok());
  ASSERT_TRUE(bench.context.bind_input(0, buffer).ok());
  ASSERT_TRUE(bench.context.bind_output(0, buffer, 16).ok());
  ASSERT_TRUE(bench.context.run().ok());
  EXPECT_GT(buffer.use_count(), 1);
  bench.run(2);
  EXPECT_EQ(buffer.use_count(), 1);
}

TEST(ContextForms, OutputsHaveTheBatchWhicheverFormRuns) {
  Bench bench;
  EXPECT_EQ(bench.context.outputs()[0].shape, kOpenForm);
  for (const bool single : {false, true}) {
    if (single) ASSERT_TRUE(bench.setup.program.make_batch_form(4).ok());
    ASSERT_TRUE(bench.context.set_input_shapes({Shape{4, 4}}).ok());
    EXPECT_EQ(bench.context.outputs()[0].shape, (Shape{4, 4}));
    std::vector<float> y(16);
    EXPECT_TRUE(bench.context.bind_output(0, view_of(y, Shape{4, 4})).ok());
    EXPECT_EQ(bench.context.bind_output(0, view_of(y, Shape{3, 4})).code(), Code::kShapeMismatch);
    // Memory for another size is dropped, and the result lies in the context's own.
    bench.run(3);
    EXPECT_EQ(y, std::vector<float>(16));
  }
}

TEST(ContextForms, SizesOutsideTheRangeAreRefused) {
  Bench bench;
  const Status status = bench.context.set_input_shapes({Shape{9, 4}});
  EXPECT_EQ(status.code(), Code::kShapeMismatch);
  EXPECT_NE(status.message().find("x [?, 4] with ? from 1 to 8"), std::string::npos)
      << status.to_string();
  const std::vector<float> x(36);
  EXPECT_EQ(bench.context.bind_input(0, view_of(x, Shape{9, 4})).code(), Code::kShapeMismatch);
}

TEST(ContextForms, FormsBeyondTheBudgetAreRefusedAndTheOpenOneServes) {
  LoadOptions options;
  options.replicate_limit = 250;
  Bench bench(100, options);
  EXPECT_TRUE(bench.setup.program.make_batch_form(1).ok());
  EXPECT_TRUE(bench.setup.program.make_batch_form(2).ok());
  EXPECT_EQ(bench.setup.program.make_batch_form(3).code(), Code::kOutOfMemory);
  const auto& prepared = bench.setup.device->prepared;
  ASSERT_EQ(prepared.size(), 3U);
  EXPECT_EQ(prepared[1].replicate_limit, 0U) << "no room for a copy for each of three cores";
  EXPECT_EQ(prepared[2].replicate_limit, 0U);
  bench.run(3, kRunsBeforeForm + 1);
  EXPECT_EQ(bench.ran(), kOpenForm);
  const auto forms = bench.setup.program.forms();
  ASSERT_EQ(forms.size(), 3U);
  EXPECT_EQ(forms[0].input_shapes, std::vector<Shape>{kOpenForm});
  EXPECT_EQ(forms[1].input_shapes, (std::vector<Shape>{{1, 4}}));
  EXPECT_EQ(forms[2].memory.weights, 1000U);
}

TEST(ContextForms, ABudgetOfNothingKeepsTheConstantsOnce) {
  LoadOptions options;
  options.replicate_limit = 0;
  Bench bench(100, options);
  bench.run(4, kRunsBeforeForm * 2);
  EXPECT_EQ(bench.setup.program.make_batch_form(4).code(), Code::kOutOfMemory);
  EXPECT_EQ(bench.setup.program.forms().size(), 1U);
}

TEST(ContextForms, AFormThatFailsIsReportedOnceAndTheOpenOneServes) {
  std::atomic<int> lines{0};
  std::latch reported(1);
  log::set_callback([&](log::Level level, std::string_view, std::string_view text) {
    if (level != log::Level::kWarn) return;
    EXPECT_NE(text.find("[2, 4] gets no form of its own"), std::string_view::npos) << text;
    if (++lines == 1) reported.count_down();
  });
  {
    Bench bench;
    bench.setup.device->on_prepare = [](const device::PrepareOptions&) -> Status {
      return error(Code::kEngineFailed, "no");
    };
    bench.run(2, kRunsBeforeForm);
    reported.wait();
    bench.run(2, kRunsBeforeForm * 3);
    EXPECT_EQ(bench.ran(), kOpenForm);
    EXPECT_EQ(bench.setup.program.make_batch_form(2).code(), Code::kEngineFailed);
  }
  log::set_callback({});
  EXPECT_EQ(lines, 1);
}

TEST(ContextForms, AfterALossTheOpenFormComesFirst) {
  Bench bench;
  ASSERT_TRUE(bench.setup.program.make_batch_form(2).ok());
  bench.run(2);
  EXPECT_EQ(bench.ran(), (Shape{2, 4}));
  ++*bench.setup.device->losses;
  bench.run(2);
  EXPECT_EQ(bench.ran(), kOpenForm);
  EXPECT_EQ(bench.setup.program.forms().size(), 1U);
  ASSERT_TRUE(bench.setup.program.make_batch_form(2).ok());
  bench.run(2);
  EXPECT_EQ(bench.ran(), (Shape{2, 4}));
}

TEST(ContextForms, AnOpenProgramGetsARangeWhenItIsLoaded) {
  ProgramDescription open = Bench::description(0);
  open.batch_range.reset();
  LoadOptions options;
  EXPECT_EQ(testing::FakeSetup(Bench::config(), open).program.make_batch_form(2).code(),
            Code::kUnsupported);
  options.batch_range = BatchRange{1, 4};
  const testing::FakeSetup setup(Bench::config(), open, options);
  EXPECT_EQ(setup.program.description().batch_range, (BatchRange{1, 4}));
  EXPECT_TRUE(setup.program.make_batch_form(4).ok());
  EXPECT_EQ(setup.program.make_batch_form(5).code(), Code::kOutOfRange);
}

TEST(ContextForms, ARangeThatDoesNotFitTheProgramIsRefusedAtLoad) {
  LoadOptions options;
  options.batch_range = BatchRange{1, 9};
  options.on = std::make_shared<testing::FakeDevice>(Bench::config());
  EXPECT_EQ(Program::load(testing::fake_file(Bench::description(0)), options).error().code(),
            Code::kInvalidArgument);
  const testing::FakeConfig fixed = testing::one_in_one_out({2, 4});
  options.on = std::make_shared<testing::FakeDevice>(fixed);
  EXPECT_EQ(
      Program::load(testing::fake_file(testing::fake_description(fixed)), options).error().code(),
      Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane
