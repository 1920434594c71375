// Mean and std of the program, applied once on every way into a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/testing/session_bench.h"

namespace corelane {
namespace {

using ::testing::ElementsAre;
using testing::floats_of;
using testing::item;
using testing::OnnxBuilder;
using testing::SessionBench;

const std::vector<float> kPixels = {7, 9, 23, 33};  // Channel 0: 7, 9; channel 1: 23, 33.
const Shape kShape = {1, 2, 1, 2};

/// y is a copy of x, which has mean 5, 3 and std 2, 10 for its two channels.
Session normalizing_session(const SessionBench& bench) {
  const std::vector<OnnxBuilder::Dim> dims(kShape.dims().begin(), kShape.dims().end());
  SessionOptions options = bench.options();
  options.load.import.mean[""] = {5, 3};
  options.load.import.std[""] = {2, 10};
  options.input_rules = InputRules::kLenient;
  options.normalize = true;
  return testing::make_session(
      OnnxBuilder().input("x", dims).output("y", dims).node("Relu", {"x"}, {"y"}).build(), options);
}

TEST(SessionNormalize, RunNormalisesOnceWhetherItCopiesOrNot) {
  const SessionBench bench("null:rk3588");
  Session session = normalizing_session(bench);
  CallOptions copying;
  copying.interrupted = [] { return false; };
  CallOptions borrowing;
  borrowing.borrow = true;
  for (const CallOptions& options : {CallOptions{}, copying, borrowing}) {
    const Outputs outputs = session.run({item("x", kPixels, kShape)}, options).value();
    EXPECT_THAT(floats_of(outputs.at(0)), ElementsAre(1, 2, 2, 3));
  }
}

TEST(SessionNormalize, SubmittedAndBatchedCallsNormaliseOnce) {
  const SessionBench bench("null:rk3588");
  Session session = normalizing_session(bench);
  const Feed feed = {item("x", kPixels, kShape)};
  EXPECT_THAT(floats_of(session.submit(feed).value().get().value().at(0)), ElementsAre(1, 2, 2, 3));
  std::vector<float> two = kPixels;
  two.insert(two.end(), kPixels.begin(), kPixels.end());
  const Outputs both = session.run_batch({item("x", two, {2, 2, 1, 2})}).value();
  EXPECT_THAT(floats_of(both.at(0)), ElementsAre(1, 2, 2, 3, 1, 2, 2, 3));
}

TEST(SessionNormalize, BoundAndCopiedInputsOfABindingNormaliseOnce) {
  const SessionBench bench("null:rk3588");
  Session session = normalizing_session(bench);
  const TensorView view = item("x", kPixels, kShape).view;
  for (const bool copied : {false, true}) {
    IoBinding binding = session.io_binding().value();
    ASSERT_TRUE((copied ? binding.copy_input("x", view) : binding.bind_input("x", view)).ok());
    ASSERT_TRUE(binding.bind_output("y").ok());
    for (int again = 0; again < 2; ++again) {
      ASSERT_TRUE(session.run(binding).ok());
      EXPECT_THAT(floats_of(binding.outputs().at(0)), ElementsAre(1, 2, 2, 3)) << copied;
    }
  }
}

}  // namespace
}  // namespace corelane
