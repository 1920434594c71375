// What one call takes and gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "corelane/device/device.h"
#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::feed_of;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::item;
using testing::kOnnxFloat;
using testing::OnnxBuilder;
using testing::SessionBench;

using Dims = std::vector<OnnxBuilder::Dim>;

TensorView view(const void* data, std::size_t size, DType type, Shape shape) {
  return {data, size, type, std::move(shape), {}, {}};
}

/// a, b -> c (a copy of a), d (a copy of b), on the null device.
std::string two_by_two() {
  const Dims dims = {std::int64_t{1}, std::int64_t{2}};
  return OnnxBuilder()
      .input("a", dims)
      .input("b", dims)
      .output("c", dims)
      .output("d", dims)
      .node("Relu", {"a"}, {"c"})
      .node("Relu", {"b"}, {"d"})
      .build();
}

TEST(SessionRun, OutputsAreFreshTensorsOfTheirOwn) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  const Outputs first = session.run(feed_of({1, 2, 3, 4})).value();
  const Outputs second = session.run(feed_of({5, 6, 7, 8})).value();
  EXPECT_THAT(floats_of(first.at(0)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(floats_of(second.at(0)), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(first[0].name, "y");
  EXPECT_EQ(first[0].dtype, DType::kF32);
  EXPECT_EQ(first[0].shape, (Shape{1, 4}));
  EXPECT_NE(first[0].data, second[0].data);
}

TEST(SessionRun, OutputsAreChosenByNameInAnyOrderWithRepeats) {
  SessionBench bench("null:rk3588");
  Session session = testing::make_session(two_by_two(), bench.options());
  const std::vector<float> a = {1, 2};
  const std::vector<float> b = {3, 4};
  const Feed feed = {item("b", b, Shape{1, 2}), item("a", a, Shape{1, 2})};
  CallOptions options;
  options.outputs = {"d", "c", "d"};
  const Outputs chosen = session.run(feed, options).value();
  ASSERT_EQ(chosen.size(), 3U);
  EXPECT_THAT(floats_of(chosen[0]), ElementsAre(3, 4));
  EXPECT_THAT(floats_of(chosen[1]), ElementsAre(1, 2));
  EXPECT_THAT(floats_of(chosen[2]), ElementsAre(3, 4));
  options.outputs = {"c"};
  EXPECT_EQ(session.run(feed, options)->size(), 1U);
  EXPECT_EQ(session.run(feed)->size(), 2U);  // The one that was left out is bound again.
  options.outputs = {"e"};
  const auto unknown = session.run(feed, options);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_THAT(unknown.error().message(), HasSubstr("'c', 'd'"));
}

TEST(SessionRun, FeedsThatDoNotFitAreRefusedByName) {
  SessionBench bench("null:rk3588");
  Session session = testing::make_session(two_by_two(), bench.options());
  const std::vector<float> v = {1, 2, 3};
  const FeedItem a = item("a", v, Shape{1, 2});
  const FeedItem b = item("b", v, Shape{1, 2});
  const auto refused = [&](const Feed& feed, Code code, const char* text) {
    const auto result = session.run(feed);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code) << result.error().to_string();
    EXPECT_THAT(result.error().message(), HasSubstr(text));
  };
  refused({a}, Code::kInvalidArgument, "missing input 'b'");
  refused({}, Code::kInvalidArgument, "missing input 'a'");
  refused({a, b, item("x", v, Shape{1, 2})}, Code::kNotFound, "'x'");
  refused({a, a}, Code::kInvalidArgument, "twice");
  refused({a, item("", v, Shape{1, 2})}, Code::kInvalidArgument, "by name or all by position");
  refused({item("", v, Shape{1, 2})}, Code::kInvalidArgument, "2 inputs");
  refused({a, item("b", v, Shape{1, 3})}, Code::kShapeMismatch,
          "input 'b' shape mismatch: expected [1, 2], got [1, 3]");
  refused({a, item("b", v, Shape{2})}, Code::kShapeMismatch, "got [2]");
  const Status misfit = session.run({a, item("b", v, Shape{1, 3})}).error();
  EXPECT_EQ(misfit.detail(Detail::kInput), "b");
  EXPECT_EQ(misfit.detail(Detail::kGiven), "[1, 3]");
  EXPECT_EQ(misfit.detail(Detail::kAllowed), "[1, 2]");
  EXPECT_EQ(session.run({a}).error().detail(Detail::kInput), "b");
  FeedItem small = b;
  small.view.size = 4;
  refused({a, small}, Code::kInvalidArgument, "8 bytes");
  const Feed by_position = {item("", v, Shape{1, 2}), item("", v, Shape{1, 2})};
  EXPECT_TRUE(session.run(by_position));
  EXPECT_EQ(session.statistics().accepted, 1U);
}

TEST(SessionRun, StrictTakesItsOwnTypeAndLenientTheDriversList) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  Session strict = bench.session(options);
  options.input_rules = InputRules::kLenient;
  Session lenient = bench.session(options);
  const std::int8_t i8[4] = {1, -2, 3, 4};
  const std::int64_t i64[4] = {1, -2, 3, 4};
  const double f64[4] = {1, 2, 3, 4};
  const Feed bytes = {{"x", view(i8, 4, DType::kI8, Shape{1, 4}), nullptr}};
  const Feed longs = {{"x", view(i64, 32, DType::kI64, Shape{1, 4}), nullptr}};
  const Feed doubles = {{"x", view(f64, 32, DType::kF64, Shape{1, 4}), nullptr}};
  const Feed unsigneds = {{"x", view(i64, 32, DType::kU64, Shape{1, 4}), nullptr}};
  const Status refused = strict.run(bytes).error();
  EXPECT_EQ(refused.code(), Code::kTypeMismatch);
  EXPECT_EQ(refused.detail(Detail::kInput), "x");
  EXPECT_EQ(refused.detail(Detail::kGiven), "i8");
  EXPECT_EQ(refused.detail(Detail::kAllowed), "f32");
  EXPECT_THAT(floats_of(lenient.run(bytes)->front()), ElementsAre(1, -2, 3, 4));
  EXPECT_THAT(floats_of(lenient.submit(longs)->get()->front()), ElementsAre(1, -2, 3, 4));
  EXPECT_EQ(lenient.run(doubles).error().code(), Code::kTypeMismatch);
  EXPECT_EQ(lenient.run(unsigneds).error().code(), Code::kTypeMismatch);
}

TEST(SessionRun, AsynchronousInputsAreCopiedUnlessBorrowed) {
  SessionBench bench("null:rk3588?a=10ms");
  Session session = bench.session(bench.options());
  std::vector<float> x = {1, 2, 3, 4};
  CallOptions borrowed;
  borrowed.borrow = true;
  const Future copied = session.submit(feed_of(x)).value();
  const Future shared = session.submit(feed_of(x), borrowed).value();
  x = {9, 9, 9, 9};
  bench.run_out(session);
  EXPECT_THAT(floats_of(copied.get()->front()), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(floats_of(shared.get()->front()), ElementsAre(9, 9, 9, 9));
}

TEST(SessionRun, NhwcInputsAreShownAndTakenAsSuch) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.layout = InputLayout::kNhwc;
  const std::string model =
      testing::relu_model({std::int64_t{1}, std::int64_t{2}, std::int64_t{1}, std::int64_t{3}});
  Session session = testing::make_session(model, options);
  EXPECT_EQ(session.inputs().front().shape, (Shape{1, 1, 3, 2}));
  EXPECT_EQ(session.inputs().front().layout.kind, LayoutKind::kNHWC);
  EXPECT_EQ(session.outputs().front().shape, (Shape{1, 2, 1, 3}));
  const std::vector<float> pixels = {1, 10, 2, 20, 3, 30};  // Two channels a pixel.
  const Feed feed = {item("x", pixels, Shape{1, 1, 3, 2})};
  EXPECT_THAT(floats_of(session.run(feed)->front()), ElementsAre(1, 2, 3, 10, 20, 30));
  EXPECT_THAT(floats_of(session.submit(feed)->get()->front()), ElementsAre(1, 2, 3, 10, 20, 30));
  const auto refused = session.run({item("x", pixels, Shape{1, 2, 1, 3})});
  EXPECT_THAT(refused.error().message(), HasSubstr("expected [1, 1, 3, 2], got [1, 2, 1, 3]"));
}

TEST(SessionRun, OpenShapesFollowTheInputs) {
  SessionBench bench("null:rk3588");
  Session session = testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}),
                                          bench.options());
  EXPECT_EQ(session.inputs().front().shape, (Shape{Shape::kOpen, 2}));
  EXPECT_THAT(session.inputs().front().dim_names, ElementsAre("N", ""));
  for (const std::int64_t n : {3, 1, 5, 5, 2}) {
    std::vector<float> v(static_cast<std::size_t>(2 * n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
    const Outputs outputs = session.run({item("x", v, Shape{n, 2})}).value();
    EXPECT_EQ(outputs.front().shape, (Shape{n, 2}));
    EXPECT_EQ(floats_of(outputs.front()), v);
    EXPECT_EQ(floats_of(session.submit({item("x", v, Shape{n, 2})})->get()->front()), v);
  }
  const std::vector<float> v(6);
  EXPECT_EQ(session.run({item("x", v, Shape{2, 3})}).error().code(), Code::kShapeMismatch);
}

TEST(SessionRun, AStateIsAnOrdinaryInputAndOutput) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.load.import.states = {{"y", "x"}};
  Session session =
      testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}), options);
  for (const std::int64_t n : {1, 2, 1}) {
    const std::vector<float> v(static_cast<std::size_t>(2 * n), static_cast<float>(n));
    const auto outputs = session.run({item("x", v, Shape{n, 2})});
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_EQ(floats_of(outputs->front()), v);
  }
}

TEST(SessionRun, ListedShapesRunAndOthersAreToldTheList) {
  SessionBench bench("null:rk3588");
  SessionOptions options = bench.options();
  options.load.import.shape_sets = {{Shape{1, 2}}, {Shape{3, 2}}};
  Session session =
      testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}), options);
  const std::vector<float> v = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(session.run({item("x", v, Shape{1, 2})})->front().shape, (Shape{1, 2}));
  EXPECT_EQ(session.run({item("x", v, Shape{3, 2})})->front().shape, (Shape{3, 2}));
  const auto third = session.run({item("x", v, Shape{2, 2})});
  EXPECT_EQ(third.error().code(), Code::kShapeMismatch);
  EXPECT_THAT(third.error().message(), HasSubstr("[1, 2]"));
  EXPECT_THAT(third.error().message(), HasSubstr("[3, 2]"));
}

TEST(SessionRun, AFailedTaskIsToldAndTheNextOneRuns) {
  SessionBench bench("null:rk3588?fail=2");
  Session session = bench.session(bench.options());
  EXPECT_TRUE(session.run(feed_of(bench.x)));
  EXPECT_EQ(session.run(feed_of(bench.x)).error().code(), Code::kEngineFailed);
  EXPECT_TRUE(session.run(feed_of(bench.x)));
  const SessionStatistics s = session.statistics();
  EXPECT_EQ(s.completed, 3U);
  EXPECT_EQ(s.failed, 1U);
}

TEST(SessionRun, TagsAndTaskNumbersAreInTheTrace) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  ASSERT_TRUE(session.set_trace(8).ok());
  CallOptions tagged;
  tagged.tag = 77;
  ASSERT_TRUE(session.run(feed_of(bench.x)));
  ASSERT_TRUE(session.run(feed_of(bench.x), tagged));
  ASSERT_TRUE(session.submit(feed_of(bench.x))->get());
  std::vector<std::uint64_t> tags;
  const auto trace = session.read_trace().value();
  for (const auto& record : trace) tags.push_back(record.tag);
  EXPECT_THAT(tags, ::testing::UnorderedElementsAre(0, 77, 2));
}

TEST(SessionRun, ASessionThatWasNeverMadeSaysSo) {
  Session none;
  EXPECT_EQ(none.run({}).error().code(), Code::kWrongState);
  EXPECT_EQ(none.submit({}).error().code(), Code::kWrongState);
  EXPECT_EQ(none.io_binding().error().code(), Code::kWrongState);
  EXPECT_TRUE(none.closed());
  EXPECT_TRUE(none.inputs().empty());
  EXPECT_EQ(Session::create(ByteSpan()).error().code(), Code::kInvalidArgument);
}

TEST(SessionIoBinding, BoundMemoryIsReadAndWrittenEachTime) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  IoBinding binding = session.io_binding().value();
  std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(4);
  EXPECT_EQ(session.run(binding).code(), Code::kInvalidArgument);  // Nothing is bound.
  ASSERT_TRUE(binding.bind_input("x", view(x.data(), 16, DType::kF32, Shape{1, 4})).ok());
  ASSERT_TRUE(
      binding.bind_output("y", MutableTensorView{y.data(), 16, DType::kF32, Shape{1, 4}, {}, {}})
          .ok());
  for (const float first : {1.0F, 5.0F}) {
    x[0] = first;
    ASSERT_TRUE(session.run(binding).ok());
    EXPECT_EQ(y[0], first);
    EXPECT_EQ(binding.outputs().front().data.get(), y.data());
  }
  ASSERT_TRUE(binding.copy_input("x", view(x.data(), 16, DType::kF32, Shape{1, 4})).ok());
  x[0] = 99;
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_EQ(y[0], 5);
  binding.clear_outputs();
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_THAT(floats_of(binding.outputs().front()), ElementsAre(5, 2, 3, 4));
  EXPECT_EQ(binding.bind_output("z").code(), Code::kNotFound);
  const Status misfit =
      binding.bind_output("y", MutableTensorView{y.data(), 16, DType::kF32, Shape{4}, {}, {}});
  EXPECT_EQ(misfit.code(), Code::kShapeMismatch);
  EXPECT_EQ(misfit.detail(Detail::kOutput), "y");
  EXPECT_EQ(misfit.detail(Detail::kGiven), "[4]");
  EXPECT_EQ(misfit.detail(Detail::kAllowed), "[1, 4]");
  Session other = bench.session(bench.options());
  EXPECT_EQ(other.run(binding).code(), Code::kInvalidArgument);
}

TEST(SessionIoBinding, BoundMemoryOfASmallerShapeThanAnOpenResultIsRefused) {
  const SessionBench bench("null:rk3588");
  Session session = testing::make_session(testing::relu_model({std::string("N"), std::int64_t{2}}),
                                          bench.options());
  IoBinding binding = session.io_binding().value();
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(16, -1);
  const auto bind = [&](const Shape& in, const Shape& out) {
    EXPECT_TRUE(binding.bind_input("x", {x.data(), x.size() * 4, DType::kF32, in, {}, {}}).ok());
    EXPECT_TRUE(binding.bind_output("y", {y.data(), 64, DType::kF32, out, {}, {}}).ok());
    return session.run(binding);
  };
  EXPECT_TRUE(bind(Shape{2, 2}, Shape{2, 2}).ok());
  const Status refused = bind(Shape{3, 2}, Shape{2, 2});
  EXPECT_EQ(refused.code(), Code::kShapeMismatch);
  EXPECT_THAT(refused.message(), HasSubstr("output 'y' is [3, 2], the bound memory is [2, 2]"));
  EXPECT_EQ(refused.detail(Detail::kOutput), "y");
  EXPECT_EQ(refused.detail(Detail::kGiven), "[2, 2]");
  EXPECT_EQ(refused.detail(Detail::kAllowed), "[3, 2]");
  for (const Shape& room : {Shape{Shape::kOpen, 2}, Shape{4, 2}}) {
    ASSERT_TRUE(bind(Shape{2, 2}, room).ok());
    EXPECT_EQ(binding.outputs().front().shape, (Shape{2, 2}));
  }
}

/// The call of a binding is kept from run to run: what a run gives must not stay with it.
TEST(SessionIoBinding, ResultsAreOfTheLastRunAndOfWhatIsBoundThen) {
  SessionBench bench("null:rk3588");
  Session session = testing::make_session(two_by_two(), bench.options());
  IoBinding binding = session.io_binding().value();
  std::vector<float> a = {1, 2};
  std::vector<float> b = {3, 4};
  std::vector<float> c(2);
  std::vector<float> other(2);
  const auto bind_c = [&](std::vector<float>& to) {
    return binding.bind_output("c", {to.data(), 8, DType::kF32, Shape{1, 2}, {}, {}});
  };
  ASSERT_TRUE(binding.bind_input("a", view(a.data(), 8, DType::kF32, Shape{1, 2})).ok());
  ASSERT_TRUE(binding.bind_input("b", view(b.data(), 8, DType::kF32, Shape{1, 2})).ok());
  ASSERT_TRUE(bind_c(c).ok());
  for (const bool with_own : {false, true}) {
    if (with_own) ASSERT_TRUE(binding.bind_output("d").ok());
    b[0] = 3;
    ASSERT_TRUE(session.run(binding).ok());
    ASSERT_EQ(binding.outputs().size(), with_own ? 2 : 1);
    const Outputs kept = binding.outputs();
    b[0] = 30;
    a[0] += 1;
    ASSERT_TRUE(session.run(binding).ok());
    EXPECT_EQ(binding.outputs()[0].data.get(), c.data());
    EXPECT_EQ(c[0], a[0]);
    EXPECT_EQ(binding.outputs()[0].shape, (Shape{1, 2}));
    EXPECT_EQ(binding.outputs()[0].name, "c");
    if (!with_own) continue;
    EXPECT_THAT(floats_of(kept[1]), ElementsAre(3, 4));
    EXPECT_THAT(floats_of(binding.outputs()[1]), ElementsAre(30, 4));
  }
  CallOptions call;
  call.control.emplace().terminate();
  EXPECT_EQ(session.run(binding, call).code(), Code::kCancelled);
  EXPECT_TRUE(binding.outputs().empty());
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_EQ(binding.outputs().at(0).data.get(), c.data());
  ASSERT_TRUE(bind_c(other).ok());
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_EQ(binding.outputs().at(0).data.get(), other.data());
  EXPECT_EQ(other[0], a[0]);
  binding.clear_inputs();
  EXPECT_EQ(session.run(binding).code(), Code::kInvalidArgument);
  EXPECT_TRUE(binding.outputs().empty());
}

TEST(SessionIoBinding, AResultWhoseShapeTheRunTellsChangesNoBinding) {
  SessionBench bench("null:rk3588");
  constexpr int kOnnxBool = 9;
  const std::string model = OnnxBuilder()
                                .input("x", Dims{std::int64_t{1}, std::int64_t{2}})
                                .input("k", Dims{std::int64_t{1}}, kOnnxBool)
                                .output("y", Dims{std::string("N"), std::int64_t{2}})
                                .node("Compress", {"x", "k"}, {"y"}, {},
                                      {OnnxBuilder::attribute("axis", std::int64_t{0})})
                                .build();
  Session session = testing::make_session(model, bench.options());
  IoBinding binding = session.io_binding().value();
  const std::vector<float> x = {1, 2};
  const bool keep = true;
  std::vector<float> y(6, -7);
  ASSERT_TRUE(binding.bind_input("x", view(x.data(), 8, DType::kF32, Shape{1, 2})).ok());
  ASSERT_TRUE(binding.bind_input("k", view(&keep, 1, DType::kBool, Shape{1})).ok());
  ASSERT_TRUE(binding.bind_output("y", {y.data(), 24, DType::kF32, Shape{3, 2}, {}, {}}).ok());
  for (int i = 0; i < 2; ++i) {
    const Status status = session.run(binding);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(binding.outputs().at(0).shape, (Shape{1, 2}));
    EXPECT_EQ(binding.outputs().at(0).size, 24);
    EXPECT_THAT(y, ElementsAre(1, 2, -7, -7, -7, -7));
  }
}

TEST(SessionIoBinding, DeviceBuffersAreUsedInPlace) {
  SessionBench bench("null:rk3588");
  Session session = bench.session(bench.options());
  IoBinding binding = session.io_binding().value();
  const auto in = bench.device->create_buffer(64, {}).value();
  const auto out = bench.device->create_buffer(64, {}).value();
  ASSERT_TRUE(binding.bind_input("x", in, 16).ok());
  ASSERT_TRUE(binding.bind_output("y", out).ok());
  static_cast<float*>(in->data())[4] = 42;
  ASSERT_TRUE(session.run(binding).ok());
  EXPECT_EQ(static_cast<float*>(out->data())[0], 42);
  EXPECT_EQ(binding.bind_input("x", in, 65).code(), Code::kOutOfRange);
  EXPECT_EQ(binding.bind_input("x", in, 60).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace corelane
