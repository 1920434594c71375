// What a session refuses or remarks when it is made: weights of another, custom operators, one
// core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "corelane/base/log.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::feed_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::item;
using testing::kOnnxFloat;
using testing::OnnxBuilder;
using testing::SessionBench;

/// Takes the lines of the log while it lives.
class LogLines {
 public:
  LogLines() {
    log::set_callback([this](log::Level level, std::string_view part, std::string_view text) {
      const std::lock_guard lock(mutex_);
      if (level == log::Level::kWarn && part == "session") lines_.emplace_back(text);
    });
  }
  ~LogLines() { log::set_callback({}); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// x [1, 2048] times a constant that is large enough to lie apart from the graph.
std::string scaled(float weight) {
  return OnnxBuilder()
      .input("x", {1, 2048})
      .output("y", {1, 2048})
      .constant<float>("w", {2048}, kOnnxFloat, std::vector<float>(2048, weight))
      .node("Mul", {"x", "w"}, {"y"})
      .build("scaled");
}

ByteVector compiled(float weight, bool remove_weights) {
  const std::string model = scaled(weight);
  CompileOptions options;
  options.remove_weights = remove_weights;
  auto bytes = compile_bytes(as_byte_span(model), options);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return bytes.value_or(ByteVector());
}

Feed long_feed(const std::vector<float>& v) { return {item("x", v, Shape{1, 2048})}; }

TEST(SessionWeights, AProgramWithoutItsOwnTakesThoseOfASessionThatMayGoFirst) {
  SessionBench bench("null:rk3588");
  const ByteVector whole = compiled(3, false);
  const ByteVector bare = compiled(3, true);
  EXPECT_LT(bare.size() + 4096, whole.size());
  Session first = Session::create(whole, bench.options()).value();
  auto second = Session::create(bare, bench.options(), &first);
  ASSERT_TRUE(second) << second.error().to_string();
  first = Session();
  auto third = Session::create(bare, bench.options(), &*second);
  ASSERT_TRUE(third) << third.error().to_string();
  ASSERT_TRUE(second->close().ok());
  const std::vector<float> x(2048, 1);
  EXPECT_TRUE(third->run(long_feed(x)));
}

TEST(SessionWeights, ASourceThatCannotGiveThemIsRefusedAndLeavesNothing) {
  SessionBench bench("null:rk3588");
  const ByteVector bare = compiled(3, true);
  const auto refused = [&](const Session* from) {
    const auto session = Session::create(bare, bench.options(), from);
    EXPECT_FALSE(session);
    return session ? Status() : session.error();
  };
  EXPECT_EQ(refused(nullptr).code(), Code::kWrongState);
  const Session none;
  EXPECT_EQ(refused(&none).code(), Code::kWrongState);
  Session closed = Session::create(compiled(3, false), bench.options()).value();
  ASSERT_TRUE(closed.close().ok());
  const Status late = refused(&closed);
  EXPECT_EQ(late.code(), Code::kWrongState);
  EXPECT_THAT(late.message(), HasSubstr("closed"));
  Session other = Session::create(compiled(4, false), bench.options()).value();
  EXPECT_EQ(refused(&other).code(), Code::kMalformed);
  other = Session();
  EXPECT_EQ(bench.device->memory().total(), 0U);
}

TEST(SessionWeights, SharingThemForcesIndependentContextsAndSaysSo) {
  SessionBench bench("null:rk3588");
  LogLines log;
  Session first = Session::create(compiled(3, false), bench.options()).value();
  EXPECT_THAT(first.warnings(), IsEmpty());
  SessionOptions options = bench.options();
  options.schedule = {0, 1, 2};
  const Session second = Session::create(compiled(3, true), options, &first).value();
  EXPECT_EQ(second.statistics().contexts, 3U);
  EXPECT_EQ(second.statistics().duplicated, 0U);
  EXPECT_TRUE(second.options().disable_dup_context);
  EXPECT_THAT(second.warnings(), ElementsAre(HasSubstr("each of the 3 contexts")));
  EXPECT_EQ(log.warnings(), second.warnings());
}

TEST(SessionWeights, OneContextOrAnExplicitWishIsNoMatterForARemark) {
  SessionBench bench("null:rk3588");
  LogLines log;
  Session first = Session::create(compiled(3, false), bench.options()).value();
  const ByteVector bare = compiled(3, true);
  EXPECT_THAT(Session::create(bare, bench.options(), &first)->warnings(), IsEmpty());
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  options.disable_dup_context = true;
  EXPECT_THAT(Session::create(bare, options, &first)->warnings(), IsEmpty());
  EXPECT_THAT(log.warnings(), IsEmpty());
}

TEST(SessionWarnings, AHandlerGetsThemAndNothingIsPrinted) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.schedule = {0, 1};
  Session first = Session::create(compiled(3, false), options).value();
  const ByteVector bare = compiled(3, true);
  const auto printed = [&](bool handled) {
    std::optional<LogLines> log;
    if (handled) log.emplace();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(Session::create(bare, options, &first));
    std::string err = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    return err;
  };
  EXPECT_EQ(printed(true), "");
  EXPECT_THAT(printed(false), HasSubstr("the weights are another session's"));
}

TEST(SessionOneCore, TakesTheAutomaticMaskAndThatOfCoreZeroOnly) {
  SessionBench bench("null:rk3566");
  const std::string model = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  for (const TpMode mode : {TpMode::kAuto, TpMode::kCore0}) {
    SessionOptions options = bench.options();
    options.tp_mode = mode;
    EXPECT_TRUE(bench.session(options).run(feed_of(bench.x))) << tp_mode_name(mode);
  }
  for (const std::vector<std::size_t>& schedule : {std::vector<std::size_t>{0}, {0, 0}}) {
    SessionOptions options = bench.options();
    options.schedule = schedule;
    EXPECT_TRUE(bench.session(options).run(feed_of(bench.x)));
  }
  for (const TpMode mode :
       {TpMode::kAll, TpMode::kCore1, TpMode::kCore2, TpMode::kCores01, TpMode::kCores012}) {
    SessionOptions options = bench.options();
    options.tp_mode = mode;
    const auto refused = Session::create(as_byte_span(model), options);
    ASSERT_FALSE(refused) << tp_mode_name(mode);
    EXPECT_EQ(refused.error().code(), Code::kOutOfCores);
    EXPECT_THAT(refused.error().message(), HasSubstr(tp_mode_name(mode)));
    EXPECT_THAT(refused.error().message(), HasSubstr("1 core"));
  }
  EXPECT_EQ(bench.device->memory().total(), 0U);
}

TEST(SessionOneCore, EveryTaskOfEveryMaskRunsThere) {
  SessionBench bench("null:rk3566?a=1ms");
  Session session = bench.session(bench.options());
  ASSERT_TRUE(session.set_trace(16).ok());
  testing::CallbackLog log;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(session.run_async(feed_of(bench.x), log.callback(bench)));
  bench.run_out(session);
  std::set<std::uint64_t> cores;
  const auto trace = session.read_trace().value();
  for (const auto& record : trace) cores.insert(record.core_bits);
  EXPECT_EQ(trace.size(), 4U);
  EXPECT_THAT(cores, ElementsAre(1U));
}

/// x -> Q -> DQ -> y: f32 at both ends, with int8 and scale 0.5, zero point 3 inside.
std::string quantized_ends() {
  const std::vector<OnnxBuilder::Dim> dims = {std::int64_t{1}, std::int64_t{4}};
  return OnnxBuilder()
      .input("x", dims)
      .output("y", dims)
      .constant<float>("s", {}, kOnnxFloat, {0.5F})
      .constant<std::int8_t>("z", {}, testing::kOnnxInt8, {3})
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"y"})
      .build("quantized");
}

TEST(SessionOutputForm, RawOutputsAreIntegersWithScaleAndZeroPoint) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.output_form = OutputForm::kRaw;
  options.schedule = {0, 1};
  Session session = testing::make_session(quantized_ends(), options);
  const TensorDesc shown = session.outputs().front();
  EXPECT_EQ(shown.dtype, DType::kI8);
  EXPECT_EQ(shown.quant, Quant::affine(0.5F, 3));
  EXPECT_EQ(session.inputs().front().dtype, DType::kF32);
  const std::vector<float> x = {0, 1.5F, -2, 1000};
  const auto expect_raw = [&](const Tensor& y) {
    EXPECT_EQ(y.dtype, DType::kI8);
    EXPECT_EQ(y.size, 4U);
    EXPECT_EQ(y.quant, Quant::affine(0.5F, 3));
    const auto* q = static_cast<const std::int8_t*>(y.data.get());
    EXPECT_THAT(std::vector<int>(q, q + 4), ElementsAre(3, 6, -1, 127));
  };
  expect_raw(session.run(feed_of(x))->front());
  expect_raw(session.submit(feed_of(x))->get()->front());
  const Outputs batch = session.run_batch({item("x", x, Shape{1, 4})}).value();
  expect_raw(batch.front());
}

TEST(SessionOutputForm, DeclaredAndFloatAreWhatTheModelSays) {
  SessionBench bench("null:rk3588");
  for (const OutputForm form : {OutputForm::kDeclared, OutputForm::kFloat}) {
    SessionOptions options = bench.options();
    options.output_form = form;
    Session session = testing::make_session(quantized_ends(), options);
    EXPECT_EQ(session.outputs().front().dtype, DType::kF32);
    EXPECT_EQ(session.outputs().front().quant.kind, QuantKind::kNone);
    const Tensor y = session.run(feed_of({0, 1.5F, -2, 4}))->front();
    EXPECT_THAT(testing::floats_of(y), ElementsAre(0, 1.5F, -2, 4));
    EXPECT_EQ(y.quant.kind, QuantKind::kNone);
  }
}

TEST(SessionOutputForm, RawLeavesOutputsThatAreNotQuantizedAsTheyAre) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.output_form = OutputForm::kRaw;
  Session session = bench.session(options);
  EXPECT_EQ(session.outputs().front().dtype, DType::kF32);
  EXPECT_THAT(testing::floats_of(session.run(feed_of(bench.x))->front()), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace corelane
