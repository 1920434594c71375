// Decoders whose state stays on the device, against the same steps with state that the host hands
// on.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "corelane/runtime/activation.h"
#include "smoke_support.h"

namespace corelane {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 24;
constexpr std::int64_t kIn = 8;
constexpr std::int64_t kOut = 5;
constexpr int kSteps = 1000;

/// Numbers of -1 to 1 that are the same each time.
std::vector<float> numbers(std::size_t count, std::uint32_t seed, float scale = 1) {
  std::vector<float> values(count);
  for (float& v : values) {
    seed = seed * 1664525U + 1013904223U;
    v = (static_cast<float>(seed >> 8) / static_cast<float>(1U << 23) - 1.0F) * scale;
  }
  return values;
}

/// h' = tanh(h W + x U), y = h' V.
std::string decoder() {
  const auto weights = [](std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
    return numbers(static_cast<std::size_t>(rows * columns), seed, 0.4F);
  };
  return OnnxBuilder()
      .input("x", {std::int64_t{1}, kIn})
      .input("h", {std::int64_t{1}, kHidden})
      .output("y", {std::int64_t{1}, kOut})
      .output("next", {std::int64_t{1}, kHidden})
      .constant("W", {kHidden, kHidden}, kOnnxFloat, weights(kHidden, kHidden, 1))
      .constant("U", {kIn, kHidden}, kOnnxFloat, weights(kIn, kHidden, 2))
      .constant("V", {kHidden, kOut}, kOnnxFloat, weights(kHidden, kOut, 3))
      .node("MatMul", {"h", "W"}, {"hw"})
      .node("MatMul", {"x", "U"}, {"xu"})
      .node("Add", {"hw", "xu"}, {"sum"})
      .node("Tanh", {"sum"}, {"next"})
      .node("MatMul", {"next", "V"}, {"y"})
      .build("decoder");
}

Program decoder_on(const std::shared_ptr<device::Device>& device) {
  LoadOptions options = on(device);
  options.import.states = {{"next", "h"}};
  options.time_engines = false;  // Two engines differ in the last bits.
  return load(decoder(), options);
}

std::vector<float> input_of(int step) {
  return numbers(static_cast<std::size_t>(kIn), static_cast<std::uint32_t>(step) * 77U + 5U);
}

MutableByteSpan bytes_of(std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); }

/// The results of each step with state that goes through the host.
std::vector<std::vector<float>> by_the_host(const Program& program, int steps) {
  Context context = program.new_context().value();
  std::vector<std::vector<float>> results;
  std::vector<float> h(kHidden);
  std::vector<float> next(kHidden);
  for (int i = 0; i < steps; ++i) {
    const std::vector<float> x = input_of(i);
    std::vector<float>& y = results.emplace_back(kOut);
    EXPECT_TRUE(context.bind_input(0, in_view(x, Shape{1, kIn})).ok());
    EXPECT_TRUE(context.bind_input(1, in_view(h, Shape{1, kHidden})).ok());
    EXPECT_TRUE(context.bind_output(0, out_view(y, Shape{1, kOut})).ok());
    EXPECT_TRUE(context.bind_output(1, out_view(next, Shape{1, kHidden})).ok());
    EXPECT_TRUE(context.run().ok());
    h = next;
  }
  return results;
}

/// One step; its result.
std::vector<float> step(Context& context, int number, bool submitted = false) {
  const std::vector<float> x = input_of(number);
  std::vector<float> y(kOut);
  EXPECT_TRUE(context.bind_input(0, in_view(x, Shape{1, kIn})).ok());
  EXPECT_TRUE(context.bind_output(0, out_view(y, Shape{1, kOut})).ok());
  const Status status = submitted ? context.submit().value().wait() : context.run();
  EXPECT_TRUE(status.ok()) << status.to_string();
  return y;
}

TEST(SmokeState, AThousandStepsOnTheDeviceAreThoseOfTheHost) {
  const auto device = own_device();
  const Program program = decoder_on(device);
  const auto wanted = by_the_host(program, kSteps);
  Context context = program.new_context().value();
  // The second round begins anew after a reset, submitted each time.
  for (const bool submitted : {false, true}) {
    ASSERT_TRUE(context.reset_states().ok());
    for (int i = 0; i < kSteps; ++i) ASSERT_EQ(step(context, i, submitted), wanted[i]) << i;
  }
  EXPECT_NE(wanted[0], step(context, 0)) << "without a reset it goes on";
}

TEST(SmokeState, TwoActivationsDoNotSeeEachOthers) {
  const auto device = own_device();
  const Program program = decoder_on(device);
  const auto wanted = by_the_host(program, 20);
  const Activation one = Activation::create(program).value();
  const Activation two = Activation::create(program).value();
  std::array first{one.new_context().value(), one.new_context().value()};
  Context second = two.new_context().value();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(step(first[static_cast<std::size_t>(i) % 2], i), wanted[i])
        << "contexts of one activation go on from each other";
    EXPECT_EQ(step(second, i), wanted[i]);
  }
  ASSERT_TRUE(second.reset_states().ok());
  EXPECT_EQ(step(second, 0), wanted[0]);
  EXPECT_EQ(step(first[0], 10), wanted[10]) << "a reset of the one leaves the other's";
  std::vector<float> kept(kHidden);
  ASSERT_TRUE(first[1].copy_state(0, bytes_of(kept)).ok());
  ASSERT_TRUE(second.set_state(0, bytes_of(kept)).ok());
  EXPECT_EQ(step(second, 11), wanted[11]) << "a sequence moves to another activation";
}

/// Each third job fails before it computes.
class EachThird final : public device::FaultPoint {
 public:
  device::Fault at_run(std::uint64_t, std::uint64_t) override {
    return ++runs_ % 3 == 0 ? device::Fault::kCrash : device::Fault::kNone;
  }
  Duration slow_by() const override { return {}; }

 private:
  std::atomic<int> runs_{0};
};

TEST(SmokeState, AFailedStepIsRunAgainFromTheStateBeforeIt) {
  const auto wanted = by_the_host(decoder_on(own_device()), 60);
  const auto device = own_device(std::make_shared<EachThird>());
  const Program program = decoder_on(device);
  Context context = program.new_context().value();
  int failed = 0;
  for (int i = 0; i < 60; ++i) {
    const std::vector<float> x = input_of(i);
    std::vector<float> y(kOut);
    ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{1, kIn})).ok());
    ASSERT_TRUE(context.bind_output(0, out_view(y, Shape{1, kOut})).ok());
    for (Status status = context.run(); !status.ok(); status = context.run()) ++failed;
    ASSERT_EQ(y, wanted[i]) << i;
  }
  EXPECT_GE(failed, 20);
}

TEST(SmokeState, BadDeclarationsAreRefusedByName) {
  LoadOptions options = on(own_device());
  const auto message = [&](std::vector<StateDecl> states) {
    options.import.states = std::move(states);
    const auto loaded = Program::load(as_byte_span(decoder()), options);
    EXPECT_FALSE(loaded);
    if (loaded) return std::string();
    EXPECT_EQ(loaded.error().code(), Code::kInvalidArgument);
    return loaded.error().message();
  };
  EXPECT_THAT(message({{"gone", "h"}}), HasSubstr("there is no output 'gone'; the outputs are"));
  EXPECT_THAT(message({{"next", "gone"}}), HasSubstr("there is no input 'gone'; the inputs are"));
  EXPECT_THAT(message({{"y", "h"}}), HasSubstr("both need the same dimensions"));
  EXPECT_THAT(message({{"next", "h"}, {"next", "h"}}), HasSubstr("is in a state already"));
}

TEST(SmokeState, AVoiceDetectorHearsTheSame) {
  std::error_code ec;
  std::optional<fs::path> model;
  for (const auto& python : fs::directory_iterator(fs::path(SMOKE_VENV) / "lib", ec)) {
    const fs::path path = python.path() / "site-packages/silero_vad/data/silero_vad_16k_op15.onnx";
    if (fs::exists(path, ec)) model = path;
  }
  if (!model) {
    std::puts("skipped: silero-vad is not in " SMOKE_VENV "; run ./dev setup test");
    GTEST_SKIP() << "no silero-vad package";
  }
  LoadOptions options = on(own_device());
  options.import.input_shapes = {{"input", Shape{1, 576}}, {"state", Shape{2, 1, 128}}};
  options.import.states = {{"stateN", "state"}};
  options.time_engines = false;
  const auto loaded = Program::load(*model, options);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  Context host = loaded->new_context().value();
  Context kept = loaded->new_context().value();
  const std::int64_t rate = 16000;
  const TensorView rate_view{&rate, sizeof rate, DType::kI64, Shape{}, {}, {}};
  const std::size_t sound = host.input_index("input").value();
  const std::size_t state = host.input_index("state").value();
  const std::size_t next = host.output_index("stateN").value();
  const std::size_t speech = host.output_index("output").value();
  for (Context* context : {&host, &kept})
    ASSERT_TRUE(context->bind_input(host.input_index("sr").value(), rate_view).ok());
  std::vector<float> h(256);
  std::vector<float> h_next(256);
  float changed = 0;
  for (int i = 0; i < kSteps; ++i) {
    const std::vector<float> wave = numbers(576, static_cast<std::uint32_t>(i) + 9U, 0.3F);
    for (Context* context : {&host, &kept})
      ASSERT_TRUE(context->bind_input(sound, in_view(wave, Shape{1, 576})).ok());
    ASSERT_TRUE(host.bind_input(state, in_view(h, Shape{2, 1, 128})).ok());
    ASSERT_TRUE(host.bind_output(next, out_view(h_next, Shape{2, 1, 128})).ok());
    ASSERT_TRUE(host.run().ok());
    const Status status = kept.run();
    ASSERT_TRUE(status.ok()) << status.to_string();
    const auto heard = [&](Context& c) {
      return *static_cast<const float*>(c.output(speech).value().data);
    };
    ASSERT_EQ(heard(kept), heard(host)) << i;
    for (std::size_t k = 0; k < h.size(); ++k) changed += std::abs(h[k] - h_next[k]);
    h = h_next;
  }
  EXPECT_GT(changed, 1) << "the state moves";
  std::vector<float> left(256);
  ASSERT_TRUE(kept.copy_state(0, bytes_of(left)).ok());
  EXPECT_EQ(left, h);
}

}  // namespace
}  // namespace corelane
