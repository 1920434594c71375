// Two sessions on one device whose core is held by a job that does not end until it may.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "corelane/device/device.h"
#include "corelane/device/host_operator.h"
#include "corelane/session/session.h"
#include "smoke_support.h"

namespace corelane {
namespace {

using testing::in_view;
using testing::OnnxBuilder;

/// y = x + 100 by a host operator that waits for a gate, once it is shut. A job that was abandoned
/// may be in it when its test is over, so the gate is the operator's too.
struct Gate {
  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::promise<void> entered;
  std::atomic<bool> shut{false};
  std::atomic<bool> inside{false};
};

struct Gated {
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();

  SessionOptions options(std::shared_ptr<device::Device> device) {
    SessionOptions options;
    options.load = testing::on(std::move(device));
    options.schedule = {0};
    options.print_perf = false;
    options.load.import.custom_operators = {"Slow"};
    options.load.host_operators = std::make_shared<device::HostOperatorTable>();
    EXPECT_TRUE(options.load.host_operators
                    ->add("Slow",
                          [gate = this->gate](const device::HostOperatorCall& call) {
                            if (gate->shut.exchange(false)) {
                              gate->inside = true;
                              gate->entered.set_value();
                              gate->opened.wait();
                            }
                            const auto* x = static_cast<const float*>(call.inputs[0].data);
                            auto* y = static_cast<float*>(call.outputs[0].data);
                            for (int i = 0; i < 4; ++i) y[i] = x[i] + 100;
                            gate->inside = false;
                            return Status();
                          })
                    .ok());
    return options;
  }
  Session session(const std::shared_ptr<device::Device>& device) {
    const std::string model = OnnxBuilder()
                                  .input("x", {1, 4})
                                  .output("y", {1, 4})
                                  .node("Slow", {"x"}, {"y"}, "my")
                                  .build();
    return Session::create(as_byte_span(model), options(device)).value();
  }
};

struct SmokeSessionSharedCore : ::testing::Test {
  std::shared_ptr<device::Device> device = testing::own_device();
  Gated busy;
  Session first = busy.session(device);
  std::vector<float> x = {1, 2, 3, 4};

  Feed feed() const { return {{"x", in_view(x, Shape{1, 4}), nullptr}}; }
};

TEST_F(SmokeSessionSharedCore, ARunThatCannotStartIsInterruptedOrTerminated) {
  Gated open;
  Session second = open.session(device);
  ASSERT_TRUE(second.run(feed()));  // Its average is short now: it would run in this thread.
  busy.gate->shut = true;
  const Future held = first.submit(feed()).value();
  busy.gate->entered.get_future().wait();
  CallOptions call;
  call.interrupted = [asked = 0]() mutable { return ++asked == 2; };
  EXPECT_EQ(second.run(feed(), call).error().code(), Code::kCancelled);
  CallOptions stopped;
  stopped.control.emplace();
  auto waiting = std::async(std::launch::async, [&] { return second.run(feed(), stopped); });
  while (second.statistics().accepted < 3) std::this_thread::yield();
  stopped.control->terminate();
  EXPECT_EQ(waiting.get().error().code(), Code::kCancelled);
  EXPECT_TRUE(busy.gate->inside);  // All that while the core was held.
  busy.gate->open.set_value();
  EXPECT_TRUE(held.get());
}

TEST_F(SmokeSessionSharedCore, AResetLeavesBorrowedMemoryToTheJobThatStillRuns) {
  std::atomic<bool> freed{false};
  auto* memory = new std::vector<float>(x);
  std::shared_ptr<const void> keep(memory, [&freed](std::vector<float>* v) {
    freed = true;
    delete v;
  });
  CallOptions call;
  call.borrow = true;
  busy.gate->shut = true;
  const Future held =
      first.submit({{"x", in_view(*memory, Shape{1, 4}), std::move(keep)}}, call).value();
  busy.gate->entered.get_future().wait();
  ASSERT_TRUE(device->reset(device::CoreSet::mask(1)).ok());
  EXPECT_FALSE(held.get());
  EXPECT_TRUE(first.close().ok());
  EXPECT_TRUE(busy.gate->inside);
  EXPECT_FALSE(freed);
  busy.gate->open.set_value();
}

}  // namespace
}  // namespace corelane
