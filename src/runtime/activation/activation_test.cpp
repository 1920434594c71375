#include "corelane/runtime/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "runtime/testing/set_bench.h"

namespace corelane {
namespace {

using device::CoreSet;
using device::Residency;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::SetBench;
using testing::struck_once;

Activation activate(const SetBench& bench, const ActivateOptions& options) {
  auto made = Activation::create(bench.program, options);
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? *made : Activation();
}

std::uint64_t ran_on(Context& context, const RunOptions& options = {}) {
  const Status status = context.run(options);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return context.record().core_bits;
}

TEST(Activation, EachHasCoresOfItsOwnAndRunsThere) {
  SetBench bench("null:generic:8");
  const Activation one = activate(bench, {.cores = CoreSet::any(2)});
  const Activation two = activate(bench, {.cores = CoreSet::any(2)});
  EXPECT_EQ(one.cores().count(), 2U);
  EXPECT_TRUE((one.cores() & two.cores()).empty());
  for (const Activation& each : {one, two}) {
    Context context = each.new_context().value();
    EXPECT_TRUE(each.cores().bits() & ran_on(context));
    Context copy = context.duplicate().value();
    auto inference = copy.submit().value();
    ASSERT_TRUE(inference.wait().ok());
    const CoreSet used = CoreSet::mask(inference.record().core_bits);
    EXPECT_EQ(used.count(), 1U);
    EXPECT_TRUE((used - each.cores()).empty());
  }
}

TEST(Activation, BothOfItsCoresAreUsed) {
  SetBench bench("null:generic:4?a=1ms");
  const Activation activation = activate(bench, {.cores = CoreSet::of({1, 3})});
  Context one = activation.new_context().value();
  Context two = activation.new_context().value();
  auto first = one.submit().value();
  auto second = two.submit().value();
  bench.clock->advance(milliseconds(1));
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_EQ(first.record().core_bits | second.record().core_bits, 0b1010U);
}

TEST(Activation, RunsChooseAmongItsCoresAlone) {
  SetBench bench("null:generic:8");
  const Activation activation = activate(bench, {.cores = CoreSet::of({2, 3, 5})});
  Context context = activation.new_context().value();
  EXPECT_EQ(ran_on(context, {.cores = CoreSet::platform()}), 0b101100U);
  EXPECT_EQ(ran_on(context, {.cores = CoreSet::of({3, 5})}), 0b101000U);
  EXPECT_EQ(ran_on(context, {.cores = CoreSet::any_of(CoreSet::of({5}))}), 0b100000U);
  const auto two = CoreSet::mask(ran_on(context, {.cores = CoreSet::any(2)}));
  EXPECT_EQ(two.count(), 2U);
  EXPECT_TRUE((two - activation.cores()).empty());
  for (const CoreSet& outside : {CoreSet::of({0}), CoreSet::of({2, 4}), CoreSet::any(4),
                                 CoreSet::any_of(CoreSet::of({0, 2}))}) {
    const Status refused = context.run({.cores = outside});
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << outside.to_string();
    EXPECT_THAT(refused.message(), HasSubstr("of the cores '2,3,5' of this activation"));
    EXPECT_EQ(context.submit({.cores = outside}).error().code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(context.run().ok()) << "a refused run leaves nothing behind";
}

TEST(Activation, TheProgramsWishIsMetOnItsCores) {
  SetBench bench("null:generic:8");
  LoadOptions load;
  load.on = bench.device;
  load.cache = false;
  load.import.cores = 3;
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  const Program wide = Program::load(as_byte_span(model), load).value();
  const Activation own = Activation::create(wide).value();
  EXPECT_EQ(own.cores().count(), 3U);
  Context context = own.new_context().value();
  EXPECT_EQ(ran_on(context), own.cores().bits());
  const Activation narrow = Activation::create(wide, {.cores = CoreSet::any(2)}).value();
  Context fewer = narrow.new_context().value();
  EXPECT_EQ(ran_on(fewer), narrow.cores().bits());
}

TEST(Activation, WithoutCoresItSaysWhoHasThem) {
  SetBench bench("null:generic:4");
  const Activation three = activate(bench, {.cores = CoreSet::any(3)});
  const auto refused = Activation::create(bench.program, {.cores = CoreSet::any(2)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
  EXPECT_THAT(refused.error().message(), HasSubstr("1 of 4 cores are free"));
  EXPECT_EQ(bench.device->holdings().size(), 1U) << "a failure holds nothing";
  EXPECT_EQ(Activation::create(bench.program, {.cores = CoreSet::of({9})}).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Activation::create(Program()).error().code(), Code::kWrongState);
  EXPECT_EQ(Activation().new_context().error().code(), Code::kWrongState);
  EXPECT_TRUE(Activation().cores().empty());
}

TEST(Activation, OthersAreKeptOffUnlessItShares) {
  SetBench bench("null:generic:2");
  LoadOptions load;
  load.on = bench.device;
  load.cache = false;
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{8}});
  const Program other = Program::load(as_byte_span(model), load).value();
  Context guest = other.new_context().value();
  for (const Residency residency : {Residency::kExclusive, Residency::kShared}) {
    const Activation held = activate(bench, {.cores = CoreSet::of({0}), .residency = residency});
    const bool refused = guest.run({.cores = CoreSet::of({0})}).code() == Code::kOutOfCores;
    EXPECT_EQ(refused, residency == Residency::kExclusive);
  }
}

TEST(Activation, TheLastReferenceGivesTheCoresBack) {
  SetBench bench("null:generic:2?a=5ms");
  const auto held = [&] { return bench.device->holdings().size(); };
  auto activation = std::make_optional(activate(bench, {}));
  auto context = std::make_optional(activation->new_context().value());
  activation.reset();
  EXPECT_EQ(held(), 1U) << "the context has them";
  auto inference = std::make_optional(context->submit().value());
  context.reset();
  inference.reset();
  EXPECT_EQ(held(), 1U) << "the job has them";
  bench.clock->advance(milliseconds(5));
  EXPECT_EQ(held(), 0U);
}

TEST(Activation, ReleasedItGivesItsCoresBackOnceItsJobsHaveEnded) {
  SetBench bench("null:generic:2?a=1ms");
  Activation idle = activate(bench, {.cores = CoreSet::of({0})});
  Activation busy = activate(bench, {.cores = CoreSet::of({1})});
  Context left = idle.new_context().value();
  Context working = busy.new_context().value();
  auto inference = working.submit().value();
  idle.release();
  busy.release();
  EXPECT_EQ(left.run().code(), Code::kWrongState);
  EXPECT_THAT(left.submit().error().message(), HasSubstr("was released"));
  const auto held = [&] { return bench.device->holdings().size(); };
  EXPECT_EQ(held(), 1U) << "of the job that runs";
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(inference.wait().ok());
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(working.run().code(), Code::kWrongState);
  Activation().release();
}

TEST(Activation, ACallbackMayDropTheLastReference) {
  SetBench bench("null:generic:2?a=5ms");
  auto activation = std::make_shared<Activation>(activate(bench, {}));
  auto context = std::make_shared<Context>(activation->new_context().value());
  auto inference = context->submit().value();
  inference.on_done([activation, context](const Status&) mutable {
    activation.reset();
    context.reset();
    throw std::runtime_error("and more");
  });
  activation.reset();
  context.reset();
  bench.clock->advance(milliseconds(5));
  inference = {};
  EXPECT_TRUE(bench.device->holdings().empty());
}

TEST(Activation, FormsForOtherShapesJoinIt) {
  SetBench bench("null:generic:2");
  LoadOptions load;
  load.on = bench.device;
  load.cache = false;
  load.import.shape_sets = {{Shape{1, 4}}, {Shape{6, 4}}};
  const std::string model = testing::relu_model({std::string("n"), std::int64_t{4}});
  const Program shapes = Program::load(as_byte_span(model), load).value();
  const Activation activation = Activation::create(shapes, {.cores = CoreSet::of({1})}).value();
  EXPECT_EQ(activation.figures().executables, 1U);
  Context context = activation.new_context().value();
  EXPECT_EQ(ran_on(context), 2U);
  ASSERT_TRUE(context.set_input_shapes({Shape{6, 4}}).ok());
  EXPECT_EQ(ran_on(context), 2U) << "the core is the other form's, too";
  EXPECT_EQ(activation.figures().executables, 2U);
  // One that is made with both holds both at once.
  const Activation both = Activation::create(shapes, {.cores = CoreSet::of({0})}).value();
  EXPECT_EQ(both.figures().executables, 2U);
  const auto holdings = bench.device->holdings();
  ASSERT_EQ(holdings.size(), 2U);
  EXPECT_EQ(holdings[1].executables, (std::vector<std::string>{"relu", "relu"}));
}

TEST(Activation, AfterALossItHoldsItsCoresAgain) {
  for (const bool in_turn : {false, true}) {
    SetBench bench("null:generic:2", true, struck_once());
    ActivateOptions options;
    options.cores = CoreSet::of({1});
    if (in_turn) options.turns = TurnGroup::create(bench.device).value();
    const Activation activation = activate(bench, options);
    Context context = activation.new_context().value();
    Context idle = activation.new_context().value();
    EXPECT_EQ(context.run().code(), Code::kDeviceLost);
    EXPECT_TRUE(bench.device->holdings().empty());
    EXPECT_EQ(context.run().code(), Code::kDeviceLost);
    Context made_meanwhile = activation.new_context().value();
    bench.clock->run_all();
    ASSERT_EQ(bench.device->health(), device::Health::kGood);
    for (Context* each : {&context, &idle, &made_meanwhile}) EXPECT_EQ(ran_on(*each), 2U);
    ASSERT_EQ(bench.device->holdings().size(), 1U);
    EXPECT_EQ(bench.device->holdings()[0].cores, CoreSet::of({1}));
    EXPECT_EQ(activate(bench, {.cores = CoreSet::of({0})}).cores(), CoreSet::of({0}));
  }
}

TEST(Activation, AfterALossOtherCoresServeWhereItsOwnAreTakenAndNobodyNamedThem) {
  for (const bool named : {false, true}) {
    SetBench bench("null:generic:3", true, struck_once());
    const CoreSet wish = named ? CoreSet::of({0, 1}) : CoreSet::any(2);
    const Activation activation = activate(bench, {.cores = wish});
    ASSERT_EQ(activation.cores(), CoreSet::of({0, 1}));
    Context context = activation.new_context().value();
    EXPECT_EQ(context.run().code(), Code::kDeviceLost);
    bench.clock->run_all();
    const Activation other = activate(bench, {.cores = CoreSet::of({0})});
    const Status status = context.run();
    if (named) {
      EXPECT_EQ(status.code(), Code::kOutOfCores) << status.to_string();
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(activation.cores(), CoreSet::of({1, 2}));
    EXPECT_EQ(context.record().core_bits & ~activation.cores().bits(), 0U);
    EXPECT_EQ(bench.device->holdings().size(), 2U);
  }
}

TEST(Activation, ThreadsComeBackFromALossTogether) {
  SetBench bench("null:generic:2?threads=1", false, struck_once());
  const Activation activation = activate(bench, {.cores = CoreSet::platform()});
  std::atomic<int> ran = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      Context context = activation.new_context().value();
      for (int done = 0; done < 20;) {
        const Status status = context.run();
        if (status.ok()) ++done, ++ran;
        if (!status.ok()) ASSERT_EQ(status.code(), Code::kDeviceLost) << status.to_string();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 80);
  EXPECT_EQ(bench.device->holdings().size(), 1U);
}

TEST(Activation, ProgramsOfALostDeviceAreActivatedOnceItIsBack) {
  SetBench bench("null:generic:2", true, struck_once());
  Context context = bench.program.new_context().value();
  EXPECT_EQ(context.run().code(), Code::kDeviceLost);
  EXPECT_EQ(Activation::create(bench.program).error().code(), Code::kDeviceLost);
  bench.clock->run_all();
  Context held = activate(bench, {}).new_context().value();
  EXPECT_TRUE(held.run().ok());
}

TEST(Activation, ASetMayHoldCoresForEachOfItsActivations) {
  SetBench bench("null:generic:16?a=1ms");
  InferenceSet set = bench.set(
      {.size = 2, .activations = 4, .activate = ActivateOptions{.cores = CoreSet::any(4)}});
  const auto holdings = bench.device->holdings();
  ASSERT_EQ(holdings.size(), 4U);
  std::vector<SetHandle> handles;
  for (std::uint64_t id = 0; id < 8; ++id) {
    handles.push_back(set.acquire().value());
    ASSERT_TRUE(set.submit(handles.back(), id).ok());
  }
  bench.clock->advance(milliseconds(1));
  for (std::uint64_t id = 0; id < 8; ++id) {
    const SetHandle done = set.collect_id(id).value();
    ASSERT_TRUE(done.status().ok()) << done.status().to_string();
    const auto used = CoreSet::mask(done.context().record().core_bits);
    EXPECT_TRUE((used - holdings[id % 4].cores).empty()) << id;
  }
  const auto refused = InferenceSet::create(
      bench.program, {.size = 1, .activate = ActivateOptions{.cores = CoreSet::any(1)}});
  EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
  handles.clear();
  set = {};
  EXPECT_TRUE(bench.device->holdings().empty());
}

}  // namespace
}  // namespace corelane
