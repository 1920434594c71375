#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheduler/backends/batch_parts.h"
#include "scheduler/backends/testing/backend_bench.h"

namespace corelane::scheduler {
namespace {

using ::testing::AllOf;
using testing::BackendBench;
using testing::Batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kMost;
using testing::requests_of;
using testing::results_of;

std::vector<std::size_t> sizes(const std::vector<RequestPtr>& batch, Range range) {
  std::vector<std::size_t> found;
  for (const BatchPart part : split_batch(batch, range)) found.push_back(items_of(part));
  return found;
}

std::vector<RequestPtr> batch_of(const std::vector<std::uint32_t>& items) {
  std::vector<RequestPtr> batch;
  for (const std::uint32_t one : items) batch.push_back(testing::request_of("x", one));
  return batch;
}

TEST(SplitBatch, PartsAreLargeAndTheLastOnesLargeEnough) {
  EXPECT_THAT(sizes(batch_of(std::vector<std::uint32_t>(10, 1)), {2, 9}), ElementsAre(8, 2));
  EXPECT_THAT(sizes(batch_of(std::vector<std::uint32_t>(9, 1)), {2, 9}), ElementsAre(9));
  EXPECT_THAT(sizes(batch_of(std::vector<std::uint32_t>(3, 1)), {1, 1}), ElementsAre(1, 1, 1));
  EXPECT_TRUE(sizes(batch_of(std::vector<std::uint32_t>(10, 1)), {8, 8}).empty());
  EXPECT_TRUE(sizes({}, {1, 8}).empty());
}

TEST(SplitBatch, RequestsStayWhole) {
  EXPECT_THAT(sizes(batch_of({3, 3, 3}), {1, 4}), ElementsAre(3, 3, 3));
  EXPECT_TRUE(sizes(batch_of({1, 3, 2}), {3, 4}).empty());
  EXPECT_THAT(sizes(batch_of({1, 3, 3}), {3, 4}), ElementsAre(4, 3));
  EXPECT_TRUE(sizes(batch_of({5, 1}), {1, 4}).empty());
}

TEST(FirstGap, AgreesWithEverySumCounted) {
  for (std::uint32_t min = 1; min <= 9; ++min) {
    for (std::uint32_t max = min; max <= 9; ++max) {
      std::set<std::uint64_t> sums = {0};
      for (std::uint64_t n = 1; n <= 60; ++n)
        for (std::uint64_t k = min; k <= max && k <= n; ++k)
          if (sums.contains(n - k)) sums.insert(n);
      for (std::uint32_t lo = 1; lo <= 60; ++lo) {
        std::optional<std::uint64_t> gap;
        for (std::uint64_t n = lo; n <= 60 && !gap; ++n)
          if (!sums.contains(n)) gap = n;
        ASSERT_EQ(first_gap({lo, 60}, {min, max}), gap) << min << ' ' << max << ' ' << lo;
        // What first_gap() promises, split_batch() does.
        ASSERT_EQ(!split_batch(batch_of(std::vector<std::uint32_t>(lo, 1)), {min, max}).empty(),
                  sums.contains(lo));
      }
    }
  }
}

TEST(FirstGap, LargestNumbersEnd) {
  EXPECT_EQ(first_gap({1, kMost}, {1, 1}), std::nullopt);
  EXPECT_EQ(first_gap({1, kMost}, {kMost, kMost}), 1u);
  EXPECT_EQ(first_gap({kMost, kMost}, {kMost, kMost}), std::nullopt);
  EXPECT_EQ(first_gap({65536, kMost}, {65535, 65536}), 65537u);
  EXPECT_EQ(first_gap({kMost - 1, kMost}, {2, 2}), kMost);
}

TEST(RangeBackend, TenIsEightAndTwo) {
  BackendBench bench;
  bench.add("X", {.range = {2, 9}});
  const auto range = bench.open("Range[X]", {{"range", "10,10"}}).value();
  EXPECT_EQ(range->range(), (Range{10, 10}));
  const auto batch = requests_of({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  ASSERT_TRUE(range->forward(batch).ok());
  EXPECT_THAT(bench.calls, ElementsAre("X:0,1,2,3,4,5,6,7", "X:8,9"));
  EXPECT_EQ(results_of(batch)[9], "9X");
}

TEST(RangeBackend, SizeThatIsNoSumIsRefused) {
  BackendBench bench;
  bench.add("X", {.range = {8, 8}});
  EXPECT_EQ(bench.refusal_code("Range[X]", {{"range", "10,10"}}), Code::kInvalidArgument);
  EXPECT_THAT(bench.refusal("Range[X]", {{"range", "8,16"}}),
              AllOf(HasSubstr("'8,16'"), HasSubstr("9 items"), HasSubstr("8 to 8")));
  EXPECT_EQ(bench.refusal("Range[X]", {{"range", "16,16"}}), "ok");
}

TEST(RangeBackend, ReportsItsOwnRangeAndSplitsEachSizeOfIt) {
  BackendBench bench;
  bool fits = true;
  bench.add("X", {.range = {2, 9}, .repeatable = true, .forward = [&](Batch batch) {
                    fits = fits && batch.size() >= 2 && batch.size() <= 9;
                    for (const RequestPtr& one : batch) one->values[kResult] = one->values[kData];
                    return Status();
                  }});
  const auto range = bench.open("Range[X]", {{"range", "8,19"}}).value();
  EXPECT_EQ(range->range(), (Range{8, 19}));
  EXPECT_TRUE(range->repeatable());
  for (std::size_t n = 8; n <= 19; ++n) {
    std::vector<std::string> data;
    for (std::size_t i = 0; i < n; ++i) data.push_back(fmt::format("{}", i));
    const auto batch = requests_of(data);
    bench.calls.clear();
    ASSERT_TRUE(range->forward(batch).ok()) << n;
    EXPECT_EQ(results_of(batch), data);
    EXPECT_EQ(bench.calls.size(), n <= 9 ? 1u : n <= 18 ? 2u : 3u);
  }
  EXPECT_TRUE(fits);
  EXPECT_EQ(range->forward(requests_of({"x"})).code(), Code::kOutOfRange);
}

TEST(RangeBackend, WrongRangeIsRefused) {
  BackendBench bench;
  bench.add("X", {.range = {1, 4}});
  EXPECT_EQ(bench.refusal_code("Range[X]"), Code::kInvalidArgument);
  for (const char* wrong :
       {"", "8", "0,4", "5,4", "a,b", "1,2,3", "-1,4", "1,4294967296", "1.5,2"}) {
    EXPECT_EQ(bench.refusal_code("Range[X]", {{"range", wrong}}), Code::kInvalidArgument) << wrong;
    EXPECT_THAT(bench.refusal("Range[X]", {{"range", wrong}}), HasSubstr("'range'"));
  }
  EXPECT_EQ(bench.refusal("Range[X]", {{"range", " 1 , 4 "}}), "ok");
}

TEST(RangeBackend, LargeRequestsThatCannotBeDividedAreRefused) {
  BackendBench bench;
  bench.add("X", {.range = {1, 4}});
  const auto range = bench.open("Range[X]", {{"range", "1,8"}}).value();
  EXPECT_EQ(range->forward(batch_of({5})).code(), Code::kOutOfRange);
  EXPECT_TRUE(range->forward(batch_of({3, 3, 2})).ok());
  EXPECT_EQ(bench.calls.size(), 3u);  // 3 + 3 and 3 + 2 are both too many.
}

testing::Script failing_on(const std::string& bad, bool repeatable) {
  return {.range = {1, 2}, .repeatable = repeatable, .forward = [bad](Batch batch) -> Status {
            for (const RequestPtr& one : batch) {
              if (testing::text_at(*one, kData) == bad) throw std::runtime_error("bad item");
              one->values[kResult] = one->values[kData];
            }
            return {};
          }};
}

TEST(RangeBackend, FailureOfOneCallStaysWithItsRequests) {
  BackendBench bench;
  bench.add("Once", failing_on("b", false));
  const auto range = bench.open("Range[Once]", {{"range", "1,8"}}).value();
  const auto batch = requests_of({"a", "b", "c", "d", "e"});
  ASSERT_TRUE(range->forward(batch).ok());
  EXPECT_EQ(batch[0]->failure().code(), Code::kEngineFailed);
  EXPECT_THAT(batch[1]->failure().to_string(), HasSubstr("'Once' threw"));
  for (int i = 2; i < 5; ++i) EXPECT_TRUE(batch[i]->failure().ok());
  EXPECT_EQ(range->forward(requests_of({"b"})).code(), Code::kEngineFailed);
}

TEST(RangeBackend, FailureOfARepeatableBackendIsLeftToTheScheduler) {
  BackendBench bench;
  bench.add("Again", failing_on("b", true));
  const auto range = bench.open("Range[Again]", {{"range", "1,8"}}).value();
  EXPECT_EQ(range->forward(requests_of({"a", "b", "c", "d"})).code(), Code::kEngineFailed);
  const auto last = requests_of({"a", "c", "b"});  // A call of one: nothing is left to find out.
  ASSERT_TRUE(range->forward(last).ok());
  EXPECT_EQ(last[2]->failure().code(), Code::kEngineFailed);
  EXPECT_TRUE(last[0]->failure().ok());
}

}  // namespace
}  // namespace corelane::scheduler
