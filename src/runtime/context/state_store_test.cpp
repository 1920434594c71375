// State on the device: what a run leaves for the next one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/testing/program_surgery.h"
#include "runtime/testing/fake_program.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::FakeConfig;
using testing::FakeSetup;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::view_of;

using Floats = std::vector<float>;

/// "h" [1, 2] -> "next" = 2 h + 1, kept as "h", and "y" of the same value.
FakeConfig stepping(const Shape& shape = {1, 2}) {
  FakeConfig config;
  config.inputs = {testing::f32_desc("h", shape)};
  config.outputs = {testing::f32_desc("next", shape), testing::f32_desc("y", shape)};
  return config;
}

ProgramDescription keeping(const FakeConfig& config) {
  ProgramDescription d = testing::fake_description(config);
  d.states = {{"next", "h"}};
  return d;
}

struct Kept {
  explicit Kept(const FakeConfig& config = stepping())
      : setup(config, keeping(config)), context(setup.program.new_context().value()) {}
  Floats state() const { return state_of(context); }
  static Floats state_of(const Context& of) {
    Floats values(2, -1);
    const Status status = of.copy_state(0, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(status.ok()) << status.to_string();
    return values;
  }
  Status set(const Floats& values) {
    return context.set_state(0, std::as_bytes(std::span(values)));
  }
  Floats result() const { return floats_of(context.output(1).value()); }
  FakeSetup setup;
  Context context;
};

TEST(ContextKept, EachRunBeginsWithWhatTheLastOneLeft) {
  Kept kept;
  EXPECT_THAT(kept.state(), ElementsAre(0, 0)) << "zeros at first";
  for (const float wanted : {1.F, 3.F, 7.F, 15.F}) {
    ASSERT_TRUE(kept.context.run().ok());
    EXPECT_THAT(kept.result(), ElementsAre(wanted, wanted));
    EXPECT_THAT(kept.state(), ElementsAre(wanted, wanted));
    EXPECT_THAT(floats_of(kept.context.output(0).value()), ElementsAre(wanted, wanted));
  }
  for (const float wanted : {31.F, 63.F}) {
    ASSERT_TRUE(kept.context.submit().value().wait().ok());
    EXPECT_THAT(kept.state(), ElementsAre(wanted, wanted)) << "submitted as well";
  }
  RunOptions limited;
  limited.timeout = std::chrono::seconds(1);
  ASSERT_TRUE(kept.context.run(limited).ok());
  EXPECT_THAT(kept.state(), ElementsAre(127, 127));
}

TEST(ContextKept, NotByAContextWhoseUserBringsTheValues) {
  const FakeConfig config = stepping({Shape::kOpen, 2});
  const FakeSetup setup(config, keeping(config));
  const Context first = setup.program.new_context({.keep_states = false}).value();
  for (Context context : {first, first.duplicate().value()}) {
    EXPECT_TRUE(context.states().value().empty());
    for (const std::int64_t n : {1, 2, 1}) {
      ASSERT_TRUE(context.set_input_shapes({Shape{n, 2}}).ok());
      const Status ran = context.run();
      EXPECT_TRUE(ran.ok()) << ran.to_string();
    }
  }
}

TEST(ContextKept, ItIsSetAndMadeZeros) {
  Kept kept;
  ASSERT_TRUE(kept.set({5, 6}).ok());
  EXPECT_THAT(kept.state(), ElementsAre(5, 6));
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.result(), ElementsAre(11, 13));
  ASSERT_TRUE(kept.set({1, 2}).ok());
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.result(), ElementsAre(3, 5));
  ASSERT_TRUE(kept.context.reset_state(0).ok());
  EXPECT_THAT(kept.state(), ElementsAre(0, 0));
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.result(), ElementsAre(1, 1));
  ASSERT_TRUE(kept.context.reset_states().ok());
  EXPECT_THAT(kept.state(), ElementsAre(0, 0));
}

TEST(ContextKept, AFailedRunLeavesTheStateBeforeIt) {
  Kept kept;
  ASSERT_TRUE(kept.set({1, 2}).ok());
  for (const bool submitted : {false, true}) {
    kept.setup.device->next_status = error(Code::kEngineFailed, "a fault");
    const Status failed = submitted ? kept.context.submit().value().wait() : kept.context.run();
    EXPECT_EQ(failed.code(), Code::kEngineFailed);
    EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  }
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.result(), ElementsAre(3, 5)) << "run again from the state before it";
}

/// The run has failed as a whole.
TEST(ContextKept, AResultThatDoesNotFitAnotherOutputLeavesItToo) {
  Kept kept(stepping(Shape{Shape::kOpen, 2}));
  ASSERT_TRUE(kept.context.set_input_shapes({Shape{1, 2}}).ok());
  ASSERT_TRUE(kept.set({1, 2}).ok());
  Floats small(1);
  const MutableTensorView view{small.data(), 4, DType::kF32, Shape{Shape::kOpen, 2}, {}, {}};
  ASSERT_TRUE(kept.context.bind_output(1, view).ok());
  EXPECT_EQ(kept.context.run().code(), Code::kShapeMismatch);
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  EXPECT_EQ(kept.context.submit().value().wait().code(), Code::kShapeMismatch);
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
}

TEST(ContextKept, WhatItsUserBindsIsNotKept) {
  Kept kept;
  ASSERT_TRUE(kept.set({1, 1}).ok());
  const Floats given{10, 20};
  ASSERT_TRUE(kept.context.bind_input(0, view_of(given, Shape{1, 2})).ok());
  EXPECT_FALSE(kept.context.states().value()[0].input_kept);
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.state(), ElementsAre(21, 41)) << "in by hand, the output stays";
  Floats taken(2);
  ASSERT_TRUE(kept.context.unbind_input(0).ok());
  ASSERT_TRUE(kept.context.bind_output(0, view_of(taken, Shape{1, 2})).ok());
  EXPECT_FALSE(kept.context.states().value()[0].output_kept);
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(taken, ElementsAre(43, 83)) << "out by hand";
  EXPECT_THAT(kept.state(), ElementsAre(21, 41)) << "and the kept one stays as it was";
  ASSERT_TRUE(kept.context.set_input(0, view_of(given, Shape{1, 2})).ok());
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(taken, ElementsAre(21, 41));
  ASSERT_TRUE(kept.context.unbind_input(0).ok());
  ASSERT_TRUE(kept.context.unbind_output(0).ok());
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.state(), ElementsAre(43, 83)) << "on the device again";
}

TEST(ContextKept, AskingForTheMemoryOfTheInputBringsItsValue) {
  Kept kept;
  ASSERT_TRUE(kept.set({1, 1}).ok());
  const MutableTensorView own = kept.context.input(0).value();
  EXPECT_FALSE(kept.context.states().value()[0].input_kept);
  static_cast<float*>(own.data)[0] = 3;
  static_cast<float*>(own.data)[1] = 4;
  ASSERT_TRUE(kept.context.run().ok());
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.state(), ElementsAre(7, 9));
}

TEST(ContextKept, ContextsWithoutAnActivationHaveTheirOwn) {
  Kept kept;
  Context other = kept.context.duplicate().value();
  Context third = kept.setup.program.new_context().value();
  ASSERT_TRUE(kept.context.run().ok());
  ASSERT_TRUE(kept.context.run().ok());
  ASSERT_TRUE(other.run().ok());
  EXPECT_THAT(kept.state(), ElementsAre(3, 3));
  EXPECT_THAT(Kept::state_of(other), ElementsAre(1, 1));
  EXPECT_THAT(Kept::state_of(third), ElementsAre(0, 0));
}

TEST(ContextKept, WhileARunUsesItCallsGetBusy) {
  FakeConfig config = stepping();
  config.hold = true;
  Kept kept(config);
  Inference inference = kept.context.submit().value();
  EXPECT_EQ(kept.context.run().code(), Code::kBusy);
  EXPECT_EQ(kept.context.reset_states().code(), Code::kBusy);
  EXPECT_EQ(kept.set({1, 1}).code(), Code::kBusy);
  kept.setup.device->finish_next();
  EXPECT_TRUE(inference.wait().ok());
  EXPECT_THAT(kept.state(), ElementsAre(1, 1));
}

/// The engine goes on with the memory that it was given, and what it writes there is nobody's.
TEST(ContextKept, AnAbandonedRunDoesNotReachTheStateAnyMore) {
  FakeConfig config = stepping();
  config.hold = true;
  Kept kept(config);
  ASSERT_TRUE(kept.set({1, 2}).ok());
  Inference inference = kept.context.submit().value();
  const device::Submission job = kept.setup.device->last;
  const auto completion =
      kept.setup.device->finish_next(error(Code::kTimeout, "abandoned"), /*released=*/false);
  EXPECT_EQ(inference.wait().code(), Code::kTimeout);
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  Inference again = kept.context.submit().value();
  ASSERT_TRUE(kept.setup.device->compute(job).ok()) << "late";
  kept.setup.device->finish_next();
  ASSERT_TRUE(again.wait().ok());
  EXPECT_THAT(kept.state(), ElementsAre(3, 5));
  ASSERT_TRUE(kept.setup.device->compute(job).ok()) << "later still";
  EXPECT_THAT(kept.state(), ElementsAre(3, 5));
  completion->release();
}

TEST(ContextKept, ItSurvivesALossOfTheDevice) {
  Kept kept;
  ASSERT_TRUE(kept.context.run().ok());
  ++*kept.setup.device->losses;
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(kept.state(), ElementsAre(3, 3));
}

TEST(ContextKept, AnOpenOutputIsCopiedWhereItFits) {
  Kept kept(stepping(Shape{Shape::kOpen, 2}));
  EXPECT_EQ(kept.set({1, 2}).code(), Code::kWrongState) << "no shape is chosen yet";
  ASSERT_TRUE(kept.context.set_input_shapes({Shape{1, 2}}).ok());
  for (const float wanted : {1.F, 3.F, 7.F}) {
    ASSERT_TRUE(kept.context.run().ok());
    EXPECT_THAT(kept.state(), ElementsAre(wanted, wanted));
  }
  ASSERT_TRUE(kept.context.submit().value().wait().ok());
  EXPECT_THAT(kept.state(), ElementsAre(15, 15));
  // Other shapes begin anew.
  ASSERT_TRUE(kept.context.set_input_shapes({Shape{2, 2}}).ok());
  const Status other = kept.context.run();
  EXPECT_EQ(other.code(), Code::kShapeMismatch);
  EXPECT_THAT(other.message(), HasSubstr("is kept as [1, 2], these shapes make it [2, 2]; reset"));
  ASSERT_TRUE(kept.context.reset_states().ok());
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_THAT(floats_of(kept.context.output(1).value()), ElementsAre(1, 1, 1, 1));
}

TEST(ContextKept, StatesAreListedAndNamedInRefusals) {
  Kept kept;
  const auto states = kept.context.states().value();
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].input, "h");
  EXPECT_EQ(states[0].output, "next");
  EXPECT_EQ(states[0].desc.shape, (Shape{1, 2}));
  EXPECT_TRUE(states[0].input_kept && states[0].output_kept);
  const Status size = kept.set({1});
  EXPECT_EQ(size.code(), Code::kInvalidArgument);
  EXPECT_THAT(size.message(), HasSubstr("the state of input 'h' has 8 bytes, 4 are given"));
  EXPECT_EQ(kept.context.reset_state(1).code(), Code::kOutOfRange);
  FakeSetup without(stepping());
  Context none = without.program.new_context().value();
  EXPECT_TRUE(none.states().value().empty());
  EXPECT_TRUE(none.reset_states().ok());
  const Status missing = none.reset_state(0);
  EXPECT_EQ(missing.code(), Code::kOutOfRange);
  EXPECT_THAT(missing.message(), HasSubstr("compile it with --state OUTPUT=INPUT"));
}

/// Whichever of the two names a bit has flipped in, with right checksums.
TEST(ContextKept, AFileWhoseStateNamesNothingIsRefused) {
  const ByteVector good = testing::fake_file(keeping(stepping()));
  const std::string text(as_string_view(good));
  int refused = 0;
  for (std::size_t at = text.find("next"); at != text.npos; at = text.find("next", at + 1)) {
    ByteVector bytes = good;
    bytes[at + 3] = std::byte{'u'};
    testing::repair_header(bytes);
    LoadOptions options;
    options.on = std::make_shared<testing::FakeDevice>(stepping());
    const auto loaded = Program::load(std::move(bytes), options);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), Code::kMalformed);
    EXPECT_THAT(loaded.error().to_string(), HasSubstr("there is no output 'nex"));
    ++refused;
  }
  EXPECT_EQ(refused, 2);
}

/// Values for the places [0, first], ... of "h".
RunOptions writing(const Floats& values, std::int64_t first) {
  RunOptions options;
  options.state_slices.push_back({0,
                                  {0, first},
                                  Shape{1, static_cast<std::int64_t>(values.size())},
                                  std::as_bytes(std::span(values))});
  return options;
}

TEST(ContextKept, ASliceIsWrittenBeforeTheRunReads) {
  Kept kept;
  ASSERT_TRUE(kept.set({1, 2}).ok());
  const Floats nine{9};
  ASSERT_TRUE(kept.context.run(writing(nine, 1)).ok());
  EXPECT_THAT(kept.result(), ElementsAre(3, 19));
  ASSERT_TRUE(kept.context.submit(writing(nine, 0)).value().wait().ok());
  EXPECT_THAT(kept.state(), ElementsAre(19, 39));
  ASSERT_TRUE(kept.context.reset_states().ok());
  ASSERT_TRUE(kept.context.run(writing(nine, 1)).ok());
  EXPECT_THAT(kept.result(), ElementsAre(1, 19)) << "into zeros";
  Floats taken(2);
  ASSERT_TRUE(kept.context.bind_output(0, view_of(taken, Shape{1, 2})).ok());
  ASSERT_TRUE(kept.context.run(writing(nine, 0)).ok());
  EXPECT_THAT(taken, ElementsAre(19, 39));
  EXPECT_THAT(kept.state(), ElementsAre(9, 19)) << "the new value was taken away, the slice stays";
}

TEST(ContextKept, AFailedRunTakesItsSlicesBack) {
  FakeConfig config = stepping();
  config.hold = true;
  Kept kept(config);
  ASSERT_TRUE(kept.set({1, 2}).ok());
  const Floats both{7, 8};
  const Floats nine{9};
  RunOptions two = writing(both, 0);
  two.state_slices.push_back(writing(nine, 1).state_slices.front());
  Inference inference = kept.context.submit(two).value();
  kept.setup.device->finish_next(error(Code::kEngineFailed, "a fault"));
  EXPECT_EQ(inference.wait().code(), Code::kEngineFailed);
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  // An abandoned job goes on with the memory that it was given.
  inference = kept.context.submit(two).value();
  const auto completion =
      kept.setup.device->finish_next(error(Code::kTimeout, "abandoned"), /*released=*/false);
  EXPECT_EQ(inference.wait().code(), Code::kTimeout);
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  completion->release();
  inference = kept.context.submit(two).value();
  kept.setup.device->finish_next();
  ASSERT_TRUE(inference.wait().ok());
  EXPECT_THAT(kept.state(), ElementsAre(15, 19)) << "again, the later slice over the earlier";
}

TEST(ContextKept, SlicesThatDoNotFitAreRefusedAndChangeNothing) {
  Kept kept;
  ASSERT_TRUE(kept.set({1, 2}).ok());
  const Floats two{3, 4};
  RunOptions options = writing(two, 1);
  Status status = kept.context.run(options);
  EXPECT_EQ(status.code(), Code::kOutOfRange);
  EXPECT_EQ(status.message(), "a slice of state 'h'");
  EXPECT_THAT(status.cause().message(), HasSubstr("dimension 1 begins at 1 with an extent of 2"));
  options.state_slices.front().extent = {1, 1};
  status = kept.context.run(options);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("a slice [1, 1] of state 'h' has 4 bytes, 8 are given"));
  options = writing(two, 0);
  options.state_slices.push_back(options.state_slices.front());
  options.state_slices.back().input = 1;
  EXPECT_EQ(kept.context.run(options).code(), Code::kNotFound);
  options = writing(two, 0);
  ASSERT_TRUE(kept.context.bind_input(0, view_of(two, Shape{1, 2})).ok());
  status = kept.context.run(options);
  EXPECT_EQ(status.code(), Code::kWrongState);
  EXPECT_THAT(status.message(), HasSubstr("whose input is bound"));
  ASSERT_TRUE(kept.context.unbind_input(0).ok());
  EXPECT_THAT(kept.state(), ElementsAre(1, 2));
  FakeSetup without(stepping());
  EXPECT_EQ(without.program.new_context().value().run(options).code(), Code::kNotFound);
}

TEST(ContextKept, ItsBytesAreCounted) {
  Kept kept;
  const std::size_t before = kept.context.memory().buffers;
  ASSERT_TRUE(kept.context.run().ok());
  EXPECT_EQ(kept.context.memory().buffers, before + 16) << "two buffers of 8 bytes";
}

}  // namespace
}  // namespace corelane
