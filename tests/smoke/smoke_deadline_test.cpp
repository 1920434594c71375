#include <thread>

#include "corelane/device/device.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using namespace std::chrono_literals;
using namespace testing;

RunOptions with_timeout(Duration timeout) {
  RunOptions options;
  options.timeout = timeout;
  return options;
}

TEST(SmokeDeadline, AHungRunTimesOutAndTheNextOneIsRight) {
  const auto faults = std::make_shared<ArmedFault>();
  const auto device = own_device(faults);
  const Program program = load(affine_model(4, 2), on(device));
  Context context = program.new_context().value();
  const std::vector<float> x{1, 2, 3, 4};
  std::vector<float> y(4);
  ASSERT_TRUE(context.bind_input(0, in_view(x, Shape{4})).ok());
  ASSERT_TRUE(context.bind_output(0, out_view(y, Shape{4})).ok());
  faults->arm(device::Fault::kHang);
  Duration allowed = 10ms;
  do {  // On a loaded machine a job may miss its deadline before it starts.
    allowed *= 2;
    // From here, not from record().queued: the time limit begins before the job is queued.
    const TimePoint begin = real_clock()->now();
    ASSERT_EQ(context.run(with_timeout(allowed)).code(), Code::kTimeout);
    EXPECT_GE(context.record().ended - begin, allowed);
  } while (!faults->struck());
  EXPECT_EQ(y, std::vector<float>(4));
  EXPECT_EQ(device->counters().resets, 1U);
  const Status next = context.run(with_timeout(10s));
  ASSERT_TRUE(next.ok()) << next.to_string();
  EXPECT_EQ(y, (std::vector<float>{3, 5, 7, 9}));
}

TEST(SmokeDeadline, NothingIsWrittenToMemoryThatWasFreedAfterATimeout) {
  const auto faults = std::make_shared<ArmedFault>();
  const Program program = load(affine_model(4096, 2), on(own_device(faults)));
  for (int round = 0; round < 10; ++round) {
    Context context = program.new_context().value();
    auto x = std::make_unique<std::vector<float>>(4096, 1.0F);
    auto y = std::make_unique<std::vector<float>>(4096);
    auto z = std::make_unique<std::vector<std::int8_t>>(4096);
    ASSERT_TRUE(context.bind_input(0, in_view(*x, Shape{4096})).ok());
    if (round % 2 == 0) {
      ASSERT_TRUE(context.bind_output(0, out_view(*y, Shape{4096})).ok());
    } else {  // Converted on the way out.
      ASSERT_TRUE(
          context
              .bind_output(0,
                           MutableTensorView{z->data(), z->size(), DType::kI8, Shape{4096}, {}, {}})
              .ok());
    }
    faults->arm(round % 3 == 0 ? device::Fault::kHang : device::Fault::kSlow);
    // A slow job may or may not make it; either way the memory is free for use once it is done.
    Inference inference = context.submit(with_timeout(round % 3 == 0 ? 5ms : 500us)).value();
    const Status status = inference.wait();
    EXPECT_TRUE(status.ok() || status.code() == Code::kTimeout) << status.to_string();
    x.reset();
    y.reset();
    z.reset();
    EXPECT_TRUE(inference.wait_released());
  }
}

TEST(SmokeDeadline, OtherContextsGoOnWhileOneHangs) {
  const auto faults = std::make_shared<ArmedFault>();
  const auto device = own_device(faults);
  const Program program = load(affine_model(4, 2), on(device));
  Context stuck = program.new_context().value();
  Context fine = program.new_context().value();
  const std::vector<float> x{1, 2, 3, 4};
  ASSERT_TRUE(fine.set_input(0, in_view(x, Shape{4})).ok());
  faults->arm(device::Fault::kHang, 0b010);
  RunOptions on_core_1 = with_timeout(200ms);
  on_core_1.cores = device::CoreSet::of({1});
  Inference hung = strike(stuck, *faults, on_core_1);
  std::vector<Status> results;
  for (int i = 0; i < 20; ++i) {
    RunOptions on_core_0;
    on_core_0.cores = device::CoreSet::of({0});
    results.push_back(fine.run(on_core_0));
  }
  EXPECT_EQ(hung.wait().code(), Code::kTimeout);
  for (const Status& s : results) EXPECT_TRUE(s.ok()) << s.to_string();
  EXPECT_EQ(floats_of(fine.output(0).value()), (std::vector<float>{3, 5, 7, 9}));
  on_core_1.timeout = 10s;
  EXPECT_TRUE(stuck.run(on_core_1).ok());
}

TEST(SmokeDeadline, AQueuedJobCanBeCancelled) {
  const auto faults = std::make_shared<ArmedFault>();
  const Program program = load(affine_model(4, 2), on(own_device(faults)));
  RunOptions options = with_timeout(100ms);
  options.cores = device::CoreSet::of({0});
  Context first = program.new_context().value();
  Context second = program.new_context().value();
  faults->arm(device::Fault::kHang);
  Inference running = strike(first, *faults, options);
  options.timeout = {};
  Inference queued = second.submit(options).value();
  EXPECT_TRUE(queued.cancel());
  EXPECT_EQ(queued.wait().code(), Code::kCancelled);
  EXPECT_EQ(running.wait().code(), Code::kTimeout);
  EXPECT_FALSE(running.cancel());
  EXPECT_TRUE(second.run().ok());
}

}  // namespace
}  // namespace corelane
