// Limits that a device's text sets: memory, and jobs that wait.
#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Limits : public Conformance {
 protected:
  void open_limited(const std::string& option) {
    const char separator = device_text().find('?') == std::string::npos ? '?' : '&';
    open({}, device_text() + separator + option);
  }
};

TEST_F(Limits, MemoryIsRefusedWithTheFiguresAndFitsAgainWhenItIsFree) {
  constexpr std::size_t kLimit = std::size_t{256} << 20;
  open_limited("memory=256M");
  EXPECT_EQ(device_->info().memory_limit, kLimit);
  ASSERT_TRUE(queue_->run(job()).ok());
  constexpr std::size_t kHalf = kLimit / 2;
  auto first = device_->create_buffer(kHalf, {});
  ASSERT_TRUE(first.has_value()) << first.error().to_string();
  const auto refused = device_->create_buffer(kHalf + 1, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
  for (const std::size_t figure : {kLimit, kHalf + 1})
    EXPECT_NE(refused.error().message().find(std::to_string(figure)), std::string::npos)
        << refused.error().message();
  EXPECT_GE(device_->memory().total(), kHalf);
  first->reset();
  EXPECT_TRUE(device_->create_buffer(kHalf + 1, {}).has_value());
}

TEST_F(Limits, AnExecutableThatDoesNotFitIsRefused) {
  open_limited("memory=256M");
  const auto rest =
      device_->create_buffer((std::size_t{256} << 20) - device_->memory().total(), {});
  ASSERT_TRUE(rest.has_value()) << rest.error().to_string();
  const std::size_t before = device_->memory().total();
  const auto refused = device_->prepare(driver().image_slow(), {});
  // An image may take nothing by the figures; what is measured then fits.
  if (!refused) {
    EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
    EXPECT_EQ(device_->memory().total(), before);
  } else {
    EXPECT_EQ((*refused)->memory().total(), 0U);
  }
}

TEST_F(Limits, JobsBeyondTheDepthAreRefusedAndNothingOfThemStays) {
  open_limited("depth=1");
  EXPECT_EQ(device_->info().depth_limit, 1U);
  Submission waits = job(CoreSet::of({0}));
  auto gate = std::make_shared<Fence>();
  waits.wait = {gate};
  const auto waiting = submit(waits);
  Submission more = job(CoreSet::of({0}));
  auto signal = std::make_shared<Fence>();
  more.wait = {gate};
  more.signal = {signal};
  const auto refused = queue_->submit(more);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kBusy);
  EXPECT_NE(refused.error().message().find("1 of the 1 jobs"), std::string::npos);
  EXPECT_FALSE(signal->signalled());
  EXPECT_EQ(queue_->depth(), 1U);
  // What starts at once needs no place in the line.
  EXPECT_TRUE(queue_->run(job(CoreSet::of({0}))).ok());
  gate->signal();
  ASSERT_TRUE(waiting->wait());
  ASSERT_TRUE(queue_->run(more).ok());
  expect_result(more);
}

}  // namespace
}  // namespace corelane::conformance
