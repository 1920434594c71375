// Two engines behind one device: what each refuses the other computes, and a program changes its
// engine while many threads run it.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "corelane/program/program_file.h"
#include "corelane/runtime/compile_chain.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using testing::affine_model;
using testing::floats_of;
using testing::in_view;
using testing::load;
using testing::on;
using testing::OnnxBuilder;
using testing::own_device;

/// An operator that no engine has.
std::string strange_model() {
  return OnnxBuilder()
      .input("x", {4})
      .output("y", {4})
      .node("NoSuchThing", {"x"}, {"y"}, "com.microsoft")
      .build("strange");
}

TEST(SmokeEngines, AProgramSaysWhichEngineComputesIt) {
  const auto device = own_device();
  ASSERT_EQ(device->info().engines, (std::vector<std::string>{"openvino", "onnxruntime"}));
  LoadOptions options = on(device);
  EXPECT_TRUE(load(affine_model(8, 2), options).engine().engine.starts_with("OpenVINO "));
  options.engine = "onnxruntime";
  const Program program = load(affine_model(8, 2), options);
  EXPECT_TRUE(program.engine().engine.starts_with("ONNX Runtime "));
  Context context = program.new_context().value();
  const std::vector<float> x(8, 3);
  ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{8})).ok());
  ASSERT_TRUE(context.run().ok());
  EXPECT_EQ(floats_of(*context.output(0)), std::vector<float>(8, 7));
}

TEST(SmokeEngines, WhatNoEngineTakesIsRefusedWithBothReasons) {
  const auto program = Program::load(as_byte_span(strange_model()), on(own_device()));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::kUnsupportedModel);
  EXPECT_NE(program.error().message().find("the other engine"), std::string::npos)
      << program.error().message();
}

/// x takes places in a OneHot, so the import counts it as small; y is x as a float.
std::string ids_model() {
  return OnnxBuilder()
      .input("x", {2}, testing::kOnnxInt64)
      .output("places", {2, 4})
      .output("y", {2})
      .constant<std::int64_t>("depth", {}, testing::kOnnxInt64, {4})
      .constant<float>("values", {2}, testing::kOnnxFloat, {0.0F, 1.0F})
      .node("OneHot", {"x", "depth", "values"}, {"places"})
      .node("Cast", {"x"}, {"y"}, {}, {OnnxBuilder::attribute("to", std::int64_t{1})})
      .build("ids");
}

Status run_ids(Context& context, const std::vector<std::int64_t>& x) {
  CORELANE_TRY(
      context.bind_input(0, {x.data(), x.size() * sizeof(x[0]), DType::kI64, Shape{2}, {}, {}}));
  return context.run();
}

// Issue 17: such values were cut to 32 bits without a word.
TEST(SmokeEngines, ARunWithIntegersBeyond32BitsIsTheOtherEngines) {
  const Program program = load(ids_model(), on(own_device()));
  ASSERT_TRUE(program.engine().engine.starts_with("OpenVINO ")) << program.engine().engine;
  Context context = program.new_context().value();
  constexpr std::int64_t kWide = (std::int64_t{1} << 40) + 1;
  const std::vector<float> none(4, 0);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(run_ids(context, {1, 2}).ok());
    EXPECT_EQ(floats_of(*context.output(0)), (std::vector<float>{0, 1, 0, 0, 0, 0, 1, 0}));
    const std::vector<std::int64_t> wide = {1, kWide};
    const Status ran = run_ids(context, wide);
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    EXPECT_EQ(floats_of(*context.output(0)), (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(floats_of(*context.output(1)), (std::vector<float>{1, static_cast<float>(kWide)}));
  }
}

// OpenVINO gave the integers, 140 for 1, in most sessions with several streams.
TEST(SmokeEngines, AQuantizedConstantIsWhatItStandsFor) {
  const std::string model = OnnxBuilder()
                                .input("x", {2})
                                .output("y", {2})
                                .output("z", {2})
                                .constant<float>("c", {2}, testing::kOnnxFloat, {1.0F, 2.0F})
                                .constant<float>("scale", {}, testing::kOnnxFloat, {0.05F})
                                .constant<std::uint8_t>("zero", {}, testing::kOnnxUint8, {120})
                                .node("QuantizeLinear", {"c", "scale", "zero"}, {"q"})
                                .node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})
                                .node("Relu", {"x"}, {"z"})
                                .build("constant");
  for (int round = 0; round < 4; ++round) {
    const Program program = load(model, on(own_device()));
    Context context = program.new_context().value();
    ASSERT_TRUE(context.run().ok());
    EXPECT_EQ(floats_of(*context.output(0)), (std::vector<float>{1, 2}));
  }
}

// OpenVINO read the input where the output was to be written, and wrote over the caller's input.
TEST(SmokeEngines, AnOutputThatIsAnInputIsRightAndTheInputStays) {
  const std::string model = OnnxBuilder()
                                .input("x", {4})
                                .output("z", {4})
                                .output("x", {4})
                                .output("y", {4})
                                .node("Identity", {"x"}, {"z"})
                                .node("Abs", {"x"}, {"y"})
                                .build("passed");
  const Program program = load(model, on(own_device()));
  Context context = program.new_context().value();
  const std::vector<float> given = {-1, 2, -3, 4};
  const std::vector<float> x = {-1, 2, -3, 4};  // Its own memory, which is written over or not.
  ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{4})).ok());
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(context.run().ok());
    EXPECT_EQ(floats_of(*context.output(0)), given);
    EXPECT_EQ(floats_of(*context.output(1)), given);
    EXPECT_EQ(floats_of(*context.output(2)), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(x, given);
  }
  LoadOptions options = on(own_device());
  options.engine = "openvino";
  const auto refused = Program::load(as_byte_span(model), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("output x"), std::string::npos)
      << refused.error().message();
}

TEST(SmokeEngines, TheFirstEngineAloneRefusesIntegersBeyond32Bits) {
  LoadOptions options = on(own_device());
  options.engine = "openvino";
  const Program program = load(ids_model(), options);
  Context context = program.new_context().value();
  ASSERT_TRUE(run_ids(context, {1, 2}).ok());
  const Status ran = run_ids(context, {0, -(std::int64_t{1} << 31) - 1});
  EXPECT_EQ(ran.code(), Code::kOutOfRange);
  EXPECT_EQ(ran.detail(Detail::kInput), "x");
  EXPECT_NE(ran.message().find("has -2147483649 at element 1"), std::string::npos) << ran.message();
  EXPECT_TRUE(run_ids(context, {1, 2}).ok());
}

/// y: the first column of x, by a Gather that ended the process where `rows` was fixed at 0.
std::string first_column_model(const OnnxBuilder::Dim& rows) {
  return OnnxBuilder()
      .input("x", {rows, 4})
      .output("y", {rows, 1})
      .constant<std::int64_t>("first", {1}, testing::kOnnxInt64, {0})
      .node("Relu", {"x"}, {"r"})
      .node("Gather", {"r", "first"}, {"y"}, {}, {OnnxBuilder::attribute("axis", std::int64_t{1})})
      .build("first_column");
}

Shape shape_of_run(const Program& program, std::int64_t rows) {
  Context context = program.new_context().value();
  const std::vector<float> x(static_cast<std::size_t>(rows) * 4 + 1);
  EXPECT_TRUE(
      context
          .bind_input(
              0,
              {x.data(), static_cast<std::size_t>(rows) * 16, DType::kF32, Shape{rows, 4}, {}, {}})
          .ok());
  const Status run = context.run();
  EXPECT_TRUE(run.ok()) << run.to_string();
  return run.ok() ? context.output(0)->shape : Shape();
}

TEST(SmokeEngines, FixedSizesOfNothingAreForTheSecondEngine) {
  for (const char* const timed : {"0", "1"}) {
    ::setenv("CORELANE_TIME_ENGINES", timed, 1);
    const Program program = load(first_column_model(std::int64_t{0}), on(own_device()));
    for (int run = 0; run < 12; ++run) EXPECT_EQ(shape_of_run(program, 0), (Shape{0, 1}));
    program.wait_engines();
    EXPECT_TRUE(program.engine().engine.starts_with("ONNX Runtime ")) << program.engine().engine;
  }
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
  LoadOptions options = on(own_device());
  options.engine = "openvino";
  const auto refused = Program::load(as_byte_span(first_column_model(std::int64_t{0})), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnsupportedModel);
}

TEST(SmokeEngines, ASetOfShapesWithoutElementsRunsOnTheSecondEngine) {
  CompileOptions options;
  options.import.shape_sets = {{Shape{2, 4}}, {Shape{0, 4}}};
  const auto file = compile_bytes(as_byte_span(first_column_model("n")), options);
  ASSERT_TRUE(file) << file.error().to_string();
  const Program program = Program::load(*file, on(own_device())).value();
  for (const std::int64_t rows : {2, 0, 2})
    EXPECT_EQ(shape_of_run(program, rows), (Shape{rows, 1}));
}

// OpenVINO gave the numbers of the run before, or bytes that nobody wrote.
TEST(SmokeEngines, ARunWithoutElementsOfAnOpenDimensionIsTheOtherEngines) {
  const std::string model = OnnxBuilder()
                                .input("x", {"n"})
                                .output("y", {"m"})
                                .constant<std::int64_t>("edges", {2}, testing::kOnnxInt64, {1, 2})
                                .constant<float>("seven", {}, testing::kOnnxFloat, {7.0F})
                                .node("Pad", {"x", "edges", "seven"}, {"y"})
                                .build("edges");
  const Program program = load(model, on(own_device()));
  ASSERT_TRUE(program.engine().engine.starts_with("OpenVINO ")) << program.engine().engine;
  Context context = program.new_context().value();
  const std::vector<float> x = {1, 3};
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t size : {2, 0}) {
      ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{size})).ok());
      const Status ran = context.run();
      ASSERT_TRUE(ran.ok()) << ran.to_string();
      EXPECT_EQ(floats_of(*context.output(0)),
                size == 2 ? (std::vector<float>{7, 1, 3, 7, 7}) : (std::vector<float>{7, 7, 7}));
    }
  }
  LoadOptions options = on(own_device());
  options.engine = "openvino";
  const Program alone = Program::load(as_byte_span(model), options).value();
  Context refuses = alone.new_context().value();
  ASSERT_TRUE(refuses.bind_input(0, in_view(x, Shape{0})).ok());
  const Status refused = refuses.run();
  EXPECT_EQ(refused.code(), Code::kOutOfRange);
  EXPECT_EQ(refused.detail(Detail::kInput), "x");
}

/// Its parts are prepared for the shapes of the run.
TEST(SmokeEngines, ANetworkInPartsRunsWithoutElements) {
  const std::vector<CutNames> cuts = {{"r"}};
  const auto file = compile_chain(as_byte_span(first_column_model("n")), cuts);
  ASSERT_TRUE(file) << file.error().to_string();
  const Program program = Program::load(*file, on(own_device())).value();
  for (const std::int64_t rows : {2, 0, 2})
    EXPECT_EQ(shape_of_run(program, rows), (Shape{rows, 1}));
}

TEST(SmokeEngines, AProgramThatIsTimedBeginsOnTheEngineThatNeedsNoCompilation) {
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  const std::string model = affine_model(8, 2);
  const Program plain = load(model, on(own_device()));
  EXPECT_TRUE(plain.engine().engine.starts_with("ONNX Runtime ")) << plain.engine().engine;
  EXPECT_EQ(plain.engine().why, "it is prepared sooner; not timed yet");
  CompileOptions options;
  options.precompile = true;
  options.time_engines = false;
  const ByteVector file = compile_bytes(as_byte_span(model), options).value();
  const Program compiled = Program::load(file, on(own_device())).value();
  EXPECT_TRUE(compiled.engine().engine.starts_with("OpenVINO ")) << compiled.engine().engine;
  EXPECT_TRUE(compiled.precompiled());
  EXPECT_EQ(compiled.engine().why, "");
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
}

/// The text of the only trial that a file keeps; "" where it keeps none.
std::string trial_in(const ByteVector& bytes) {
  const auto file = ProgramFile::from_bytes(bytes).value();
  for (std::size_t i = 0; i < file->segments().size(); ++i)
    if (file->segments()[i].kind == SegmentKind::kTrial)
      return std::string(as_string_view(file->segment(i).value()));
  return {};
}

TEST(SmokeEngines, PrecompilingTimesTheEnginesAndTheProgramBeginsOnTheFaster) {
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  CompileOptions options;
  options.precompile = true;
  const ByteVector file = compile_bytes(as_byte_span(affine_model(100'000, 2)), options).value();
  const std::string trial = trial_in(file);
  ASSERT_TRUE(trial.ends_with(" one")) << trial;
  const Program program = Program::load(file, on(own_device())).value();
  EXPECT_TRUE(program.engine().why.starts_with("measured: ")) << program.engine().why;
  EXPECT_TRUE(program.engine().engine.starts_with(trial.starts_with("openvino ") ? "OpenVINO "
                                                                                 : "ONNX Runtime "))
      << program.engine().engine << ", " << trial;
  // Who compiles does not know the sizes that come.
  const ByteVector open = compile_bytes(as_byte_span(first_column_model("n")), options).value();
  EXPECT_EQ(trial_in(open), "");
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
}

TEST(SmokeEngines, ThreadsRunOnWhileTheEnginesAreTimed) {
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  for (const std::int64_t size : {8, 100'000}) {
    const Program program = load(affine_model(size, 2), on(own_device()));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        Context context = program.new_context().value();
        const auto value = static_cast<float>(t);
        const std::vector<float> x(static_cast<std::size_t>(size), value);
        if (!context.bind_input(0, in_view(x, Shape{size})).ok()) ++wrong;
        for (int i = 0; i < 100; ++i) {
          if (!context.run().ok()) ++wrong;
          const std::vector<float> y = floats_of(*context.output(0));
          if (y.front() != 2 * value + 1 || y.back() != 2 * value + 1) ++wrong;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    program.wait_engines();
    EXPECT_EQ(wrong, 0);
    // Whichever won: the program goes on.
    Context context = program.new_context().value();
    EXPECT_TRUE(context.run().ok());
  }
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
}

/// Element-wise operators over 256 K values: OpenVINO computes them in one pass, ONNX Runtime in
/// one each, so that a program that begins on ONNX Runtime changes to OpenVINO. y = x * 1.5^12,
/// nearly.
std::string passes_model() {
  OnnxBuilder model;
  model.input("x", {1 << 18}).output("y", {1 << 18});
  model.constant<float>("c", {}, testing::kOnnxFloat, {1.5F});
  std::string last = "x";
  for (int i = 0; i < 12; ++i) {
    const std::string product = "p" + std::to_string(i);
    const std::string next = i == 11 ? "y" : "a" + std::to_string(i);
    model.node("Mul", {last, "c"}, {product}).node("Abs", {product}, {next});
    last = next;
  }
  return model.build("passes");
}

/// Runs of one thread in turn, waited for and submitted, until `over` and 20 times after that.
/// Returns how many were not right, or not called back exactly once.
int run_until(const Program& program, float value, const std::atomic<bool>& over,
              std::atomic<int>& runs) {
  Context context = program.new_context().value();
  const std::vector<float> x(1 << 18, value);
  const float expected = value * std::pow(1.5F, 12.0F);
  int wrong = context.bind_input(0, in_view(x, Shape{1 << 18})).ok() ? 0 : 1;
  for (int i = 0, after = 0; after < 20; ++i) {
    if (over) ++after;
    std::atomic<int> called{0};
    Status status;
    if (i % 2 == 0) {
      status = context.run();
      ++called;
    } else if (auto inference = context.submit()) {
      inference->on_done([&called](const Status&) { ++called; });
      status = inference->wait();
      while (called == 0) std::this_thread::yield();
    }
    ++runs;
    if (!status.ok() || called != 1) {
      ++wrong;
      continue;
    }
    const std::vector<float> y = floats_of(*context.output(0));
    for (const float each : {y.front(), y[y.size() / 2], y.back()})
      if (std::abs(each - expected) > 1e-4F * expected) ++wrong;
  }
  return wrong;
}

/// Eight threads run until the engines have been compared, and after that. True where the engine
/// has changed: while all CPUs are busy a comparison may come out otherwise.
bool change_while_threads_run(const Program& program, std::atomic<int>& wrong) {
  constexpr int kRunsUntilItHasBegun = 100;
  std::atomic<bool> over{false};
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 8; ++t)
    threads.emplace_back(
        [&, t] { wrong += run_until(program, static_cast<float>(t), over, runs); });
  while (runs < kRunsUntilItHasBegun) std::this_thread::yield();
  program.wait_engines();
  over = true;
  for (auto& thread : threads) thread.join();
  return program.engine().engine.starts_with("OpenVINO ");
}

TEST(SmokeEngines, SubmittedRunsAreRightAndEndOnceWhileTheEngineChanges) {
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  const std::string model = passes_model();
  std::atomic<int> wrong{0};
  bool changed = false;
  for (int attempt = 0; attempt < 10 && !changed; ++attempt) {
    const Program program = load(model, on(own_device()));
    ASSERT_TRUE(program.engine().engine.starts_with("ONNX Runtime ")) << program.engine().engine;
    changed = change_while_threads_run(program, wrong);
  }
  ::setenv("CORELANE_TIME_ENGINES", "0", 1);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(changed);
}

/// OpenVINO, which is loaded for a comparison, has just begun to load; a user's thread loads it for
/// a program that names it.
[[noreturn]] void exit_while_an_engine_is_loaded(bool in_a_thread) {
  ::alarm(60);
  ::setenv("CORELANE_TIME_ENGINES", "1", 1);
  const auto device = own_device();
  const std::string model = affine_model(8, 2);
  const Program program = load(model, on(device));
  Context context = program.new_context().value();
  const std::vector<float> x(8, 3);
  static_cast<void>(context.bind_input(0, in_view(x, Shape{8})));
  for (int i = 0; i < (in_a_thread ? 1 : 12); ++i) static_cast<void>(context.run());
  if (in_a_thread) {
    std::atomic<bool> begun{false};
    std::thread([&] {
      LoadOptions options = on(device);
      options.engine = "openvino";
      begun = true;
      static_cast<void>(Program::load(as_byte_span(model), options));
    }).detach();
    while (!begun) std::this_thread::yield();
  }
  std::exit(0);
}

TEST(SmokeEnginesDeathTest, AProcessMayExitWhileAnEngineIsLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 6; ++i)
    EXPECT_EXIT(exit_while_an_engine_is_loaded(i % 2 == 0), ::testing::ExitedWithCode(0), "") << i;
}

}  // namespace
}  // namespace corelane
