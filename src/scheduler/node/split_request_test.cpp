#include "scheduler/node/split_request.h"

#include <gtest/gtest.h>

#include <string>

#include "corelane/tensor/tensor.h"
#include "scheduler/testing/virtual_bench.h"

namespace corelane::scheduler {
namespace {

Tensor table_of(std::int64_t rows) {
  Tensor made = *Tensor::allocate("t", DType::kF32, Shape{rows, 2});
  auto* const values = static_cast<float*>(made.data.get());
  for (std::int64_t i = 0; i < rows * 2; ++i) values[i] = static_cast<float>(i);
  return made;
}

std::string split_refusal(const Tensor& data, std::uint32_t items) {
  const Status status = check_split({{kData, data}}, items);
  EXPECT_EQ(status.code(), Code::kOutOfRange) << status.to_string();
  return status.message();
}

TEST(SplitRequest, DataThatCannotBeCutIsRefusedWithTheReason) {
  EXPECT_TRUE(check_split({{kData, table_of(8)}}, 8).ok());
  EXPECT_NE(split_refusal(table_of(8), 7).find("another dimension 0"), std::string::npos);
  Tensor none = table_of(8);
  none.data = nullptr;
  EXPECT_NE(split_refusal(none, 8).find("no memory"), std::string::npos);
  Tensor large = table_of(8);
  large.shape = Shape{4'000'000'000, 2};
  const std::string why = split_refusal(large, 4'000'000'000);
  EXPECT_NE(why.find("it has 64 bytes"), std::string::npos) << why;
  Tensor scaled = table_of(8);
  scaled.quant = Quant::affine(0.5F, 1);
  EXPECT_TRUE(check_split({{kData, scaled}}, 8).ok());
  scaled.quant.axis = 0;
  EXPECT_NE(split_refusal(scaled, 8).find("quantization"), std::string::npos);
}

TEST(SplitRequest, ATensorWithoutMemoryEndsBeforeAnyWork) {
  VirtualBench bench;
  ASSERT_TRUE(bench.open({{"max", "4"}}).ok());
  Tensor none = table_of(8);
  none.data = nullptr;
  Dict request{{kData, none}};
  EXPECT_EQ(bench.pipeline.run(request, {.items = 8}).code(), Code::kOutOfRange);
  EXPECT_EQ(bench.sizes(), "");
}

TEST(SplitRequest, AJoinedResultKeepsItsQuantization) {
  VirtualBench bench;
  bool same = true;
  bench.script->body = [&](std::span<const RequestPtr> batch) {
    for (const RequestPtr& request : batch) {
      Tensor result = std::any_cast<Tensor>(request->values.at(kData));
      result.quant = Quant::affine(same || result.shape[0] == 4 ? 0.5F : 0.25F, 3);
      request->values[kResult] = result;
    }
    return Status();
  };
  ASSERT_TRUE(bench.open({{"max", "4"}}).ok());
  Dict request{{kData, table_of(10)}};
  ASSERT_TRUE(bench.pipeline.run(request, {.items = 10}).ok());
  const Tensor& result = std::any_cast<Tensor&>(request.at(kResult));
  EXPECT_EQ(result.quant, Quant::affine(0.5F, 3));
  EXPECT_EQ(result.shape, (Shape{10, 2}));
  EXPECT_EQ(static_cast<const float*>(result.data.get())[19], 19.0F);
  same = false;
  const Status status = bench.pipeline.run(request, {.items = 10});
  EXPECT_EQ(status.code(), Code::kBadResult);
  EXPECT_NE(status.to_string().find("quantization"), std::string::npos) << status.to_string();
}

TEST(SplitRequest, PaddingIsOneItemOfTheLastRequest) {
  VirtualBench bench;
  std::vector<std::pair<std::uint32_t, std::int64_t>> seen;
  bench.script->body = [&](std::span<const RequestPtr> batch) {
    for (const RequestPtr& request : batch) {
      const Tensor data = std::any_cast<Tensor>(request->values.at(kData));
      seen.emplace_back(request->options.items, data.shape[0]);
      request->values[kResult] = data;
    }
    return Status();
  };
  ASSERT_TRUE(bench.open({{"min", "4"}, {"max", "4"}, {"padding", "true"}}).ok());
  Dict request{{kData, table_of(3)}};
  ASSERT_TRUE(bench.pipeline.run(request, {.items = 3}).ok());
  EXPECT_EQ(seen, (std::vector<std::pair<std::uint32_t, std::int64_t>>{{3, 3}, {1, 1}}));
}

/// Where one item runs, and `limit` items may wait, by this policy.
Config full_line(const std::string& policy, const std::string& limit) {
  return {{"max", "4"}, {"queue_policy", policy}, {"queue_items", limit}, {"deadlines", "expire"}};
}

TEST(SplitRequest, ItsPartsEnterTogetherOrNotAtAll) {
  for (const std::string policy : {"reject", "drop_oldest"}) {
    VirtualBench bench;
    bench.script->time = linear_time(10, 0);
    ASSERT_TRUE(bench.open(full_line(policy, "4")).ok());
    const Ticket ticket = bench.pipeline.submit({{kData, table_of(12)}}, {.items = 12});
    EXPECT_EQ(ticket.wait().code(), Code::kBusy) << policy;
    EXPECT_EQ(ticket.state(), RequestState::kRejected);
    bench.run_all();
    EXPECT_EQ(bench.sizes(), "") << "no backend saw a part of it";
    EXPECT_TRUE(ticket.take()->contains(kData));
    bench.adds_up();
  }
}

TEST(SplitRequest, ItDropsOlderRequestsAndNoPartOfItself) {
  VirtualBench bench;
  bench.script->time = linear_time(10, 0);
  ASSERT_TRUE(bench.open(full_line("drop_oldest", "12")).ok());
  for (int i = 0; i < 4; ++i) bench.submit_at(0.1 * i, i);  // One runs, three wait.
  bench.run_to(1);
  const Ticket ticket = bench.pipeline.submit({{kData, table_of(12)}}, {.items = 12});
  bench.run_all();
  EXPECT_TRUE(ticket.wait().ok()) << ticket.wait().to_string();
  EXPECT_EQ(bench.sizes(), "1 4 4 4");
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(bench.tickets[i].state(), RequestState::kRejected);
  bench.adds_up();
}

TEST(SplitRequest, OneWhosePartsRanIsNotRejected) {
  const auto ended = [](RequestState first, Code why) {
    SplitRequest split(std::make_shared<TicketState>(), 2);
    const Status ran = first == RequestState::kDone ? Status() : Status(error(why, "no room"));
    EXPECT_FALSE(split.ended(0, 1, first, ran, {}));
    return split.ended(1, 2, RequestState::kRejected, error(why, "no room"), {})->how;
  };
  EXPECT_EQ(ended(RequestState::kDone, Code::kTimeout), RequestState::kExpired);
  EXPECT_EQ(ended(RequestState::kDone, Code::kBusy), RequestState::kFailed);
  EXPECT_EQ(ended(RequestState::kRejected, Code::kBusy), RequestState::kRejected);
}

}  // namespace
}  // namespace corelane::scheduler
