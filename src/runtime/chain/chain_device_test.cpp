// Chains on null devices, whose times are exact under the virtual clock.
#include "runtime/chain/chain_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "corelane/device/fence.h"
#include "corelane/runtime/activation.h"
#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/chain_bench.h"

namespace corelane {
namespace {

using device::CoreSet;
using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using ::testing::AllOf;
using testing::ChainBench;
using ::testing::HasSubstr;
using testing::SetBench;
using Faults = std::vector<std::shared_ptr<device::FaultPoint>>;

const std::vector<float> kX{1, 2, 3, 4};

RunOptions within(Duration timeout) {
  RunOptions run;
  run.timeout = timeout;
  return run;
}

TEST(ChainDevice, AnInferenceGoesThroughAllDevices) {
  ChainBench bench({"null?a=1ms", "null?a=2ms", "null?a=3ms"});
  Context context = bench.program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  Inference run = context.submit().value();
  bench.clock->advance(milliseconds(5));
  EXPECT_FALSE(run.done());
  bench.clock->advance(milliseconds(1));
  ASSERT_TRUE(run.done());
  EXPECT_TRUE(run.wait().ok());
  const device::JobRecord record = run.record();
  EXPECT_EQ(record.ended - record.started, milliseconds(6));
  EXPECT_EQ(std::popcount(record.core_bits), 3);
  EXPECT_EQ(record.bytes_in, 16U);
  const auto y = context.output(0).value();
  EXPECT_EQ(
      std::vector<float>(static_cast<const float*>(y.data), static_cast<const float*>(y.data) + 4),
      kX);
  for (const auto& device : bench.devices) EXPECT_EQ(device->counters().completed, 1U);
  EXPECT_EQ(bench.device->counters().completed, 1U);
}

TEST(ChainDevice, SeveralInferencesKeepAllDevicesBusy) {
  ChainBench bench({"null:generic:1?a=1ms", "null:generic:1?a=1ms"});
  InferenceSet set = bench.set({.size = 4});
  for (std::uint64_t id = 0; id < 4; ++id) ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
  // Two parts of 1 ms: one after another they would take 8 ms.
  bench.clock->advance(milliseconds(5));
  EXPECT_EQ(set.figures().completed, 4U);
  EXPECT_TRUE(set.collect_id(3)->status().ok());
}

TEST(ChainDevice, OneDeadlineIsForAllParts) {
  ChainBench bench({"null?a=4ms", "null?a=4ms"});
  Context context = bench.program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  Inference late = context.submit(within(milliseconds(6))).value();
  bench.clock->advance(milliseconds(6));
  ASSERT_TRUE(late.done());
  const Status why = late.wait();
  EXPECT_EQ(why.code(), Code::kTimeout);
  EXPECT_THAT(why.to_string(), HasSubstr("network/1"));
  EXPECT_FALSE(late.wait_released(bench.clock->now())) << "the second device has its part yet";
  Inference in_time = context.submit(within(milliseconds(9))).value();
  bench.clock->advance(milliseconds(8));
  EXPECT_TRUE(in_time.wait().ok()) << in_time.wait().to_string();
}

TEST(ChainDevice, APartThatIsAbandonedEndsTheOnesAfterIt) {
  ChainBench bench({"null?a=9ms", "null?a=1ms", "null?a=1ms"});
  Context context = bench.program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  Inference late = context.submit(within(milliseconds(2))).value();
  bench.clock->advance(milliseconds(2));
  ASSERT_TRUE(late.done());
  EXPECT_EQ(late.wait().code(), Code::kTimeout);
  EXPECT_THAT(late.wait().to_string(), HasSubstr("network/0"));
  EXPECT_EQ(bench.devices[1]->counters().busy[0], Duration{});
  EXPECT_FALSE(late.wait_released(bench.clock->now()));
  bench.clock->advance(milliseconds(7));
  EXPECT_TRUE(late.wait_released(bench.clock->now()));
  EXPECT_TRUE(context.submit(within(milliseconds(20))));
}

/// At position `lost` of three.
class ChainLoss : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(EachPosition, ChainLoss, ::testing::Values(0, 1, 2));

TEST_P(ChainLoss, OfOneDeviceFailsWhatUsesItAndLeavesTheOthers) {
  const std::size_t lost = GetParam();
  Faults faults(3);
  faults[lost] = std::make_shared<ListedFaults>(std::vector<Fault>{Fault::kNone, Fault::kLost});
  const ChainBench bench({"null?a=1ms", "null?a=1ms", "null?a=1ms"}, faults);
  InferenceSet set = bench.set({.size = 1, .activate = ActivateOptions{}});
  const auto run = [&](std::uint64_t id) {
    SetHandle handle = set.acquire(bench.clock->now()).value();
    EXPECT_TRUE(handle.context().set_input(0, SetBench::view(kX)).ok());
    EXPECT_TRUE(set.submit(handle, id).ok());
    bench.clock->advance(milliseconds(3));
    SetHandle done = set.collect(bench.clock->now()).value();
    EXPECT_TRUE(set.release(done).ok());
    return done.status();
  };
  EXPECT_TRUE(run(1).ok());
  const Status why = run(2);
  EXPECT_EQ(why.code(), Code::kDeviceLost) << why.to_string();
  EXPECT_THAT(why.to_string(), HasSubstr("network/" + std::to_string(lost)));
  EXPECT_EQ(bench.device->health(), device::Health::kLost);
  for (std::size_t i = 0; i < 3; ++i) {
    const bool this_one = i == lost;
    EXPECT_EQ(bench.devices[i]->health() == device::Health::kLost, this_one) << i;
    EXPECT_EQ(bench.devices[i]->counters().losses, this_one ? 1U : 0U) << i;
  }
  SetHandle held = set.acquire(bench.clock->now()).value();
  EXPECT_EQ(set.submit(held, 3).code(), Code::kDeviceLost);
  ASSERT_TRUE(set.release(held).ok());
  bench.clock->advance(milliseconds(40));
  EXPECT_EQ(bench.device->health(), device::Health::kGood);
  const Status again = run(4);
  EXPECT_TRUE(again.ok()) << again.to_string();
}

TEST_P(ChainLoss, IsReplayedOnceTheDeviceIsBack) {
  Faults faults(3);
  faults[GetParam()] = std::make_shared<ListedFaults>(std::vector<Fault>{Fault::kLost});
  const ChainBench bench({"null?a=1ms", "null?a=1ms", "null?a=1ms"}, faults);
  InferenceSet set = bench.set({.size = 2, .replay = true});
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  for (;;) {
    auto done = set.collect(TimePoint{});
    if (!done) {
      std::this_thread::yield();
      bench.clock->advance(milliseconds(1));
      continue;
    }
    EXPECT_TRUE(done->status().ok()) << done->status().to_string();
    EXPECT_EQ(done->attempts(), 2U);
    break;
  }
}

TEST(ChainDevice, AFailingPartEndsTheInferenceWithItsName) {
  ChainBench bench({"null?a=1ms", "null?a=1ms&fail=1", "null?a=1ms"});
  Context context = bench.program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  Inference run = context.submit().value();
  bench.clock->advance(milliseconds(9));
  ASSERT_TRUE(run.done());
  EXPECT_EQ(run.wait().code(), Code::kEngineFailed);
  EXPECT_THAT(run.wait().to_string(), HasSubstr("network/1"));
  EXPECT_EQ(bench.devices[2]->counters().busy[0], Duration{});
}

TEST(ChainDevice, WhatHasNotBegunCanBeCancelled) {
  ChainBench bench({"null:generic:1?a=1ms", "null:generic:1?a=1ms"});
  InferenceSet set = bench.set({.size = 2});
  ASSERT_TRUE(set.submit(set.acquire().value(), 1).ok());
  ASSERT_TRUE(set.submit(set.acquire().value(), 2).ok());
  EXPECT_TRUE(set.cancel(2));
  EXPECT_EQ(set.collect_id(2, bench.clock->now())->status().code(), Code::kCancelled);
  EXPECT_FALSE(set.cancel(1)) << "it runs";
  bench.clock->advance(milliseconds(2));
  EXPECT_TRUE(set.collect_id(1, bench.clock->now())->status().ok());
}

TEST(ChainDevice, FencesAreWaitedForAndSignalledOnce) {
  ChainBench bench({"null?a=1ms", "null?a=1ms"});
  Context context = bench.program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  RunOptions run;
  run.wait = {std::make_shared<device::Fence>(bench.clock)};
  run.signal = {std::make_shared<device::Fence>(bench.clock)};
  Inference inference = context.submit(run).value();
  bench.clock->advance(milliseconds(5));
  EXPECT_FALSE(inference.done());
  run.wait[0]->signal();
  bench.clock->advance(milliseconds(1));
  EXPECT_FALSE(run.signal[0]->signalled());
  bench.clock->advance(milliseconds(1));
  EXPECT_TRUE(run.signal[0]->signalled());
  EXPECT_TRUE(inference.done());
}

TEST(ChainDevice, AFullDeviceRefusesTheWholeOrIsWaitedFor) {
  ChainBench bench({"null:generic:1?a=1ms", "null:generic:1?a=1ms&depth=1"});
  std::vector<Context> contexts;
  std::vector<Inference> runs;
  for (int i = 0; i < 2; ++i) contexts.push_back(bench.program.new_context().value());
  runs.push_back(contexts[0].submit().value());
  const auto refused = contexts[1].submit();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kBusy);
  EXPECT_EQ(bench.devices[0]->counters().completed + 1, bench.devices[0]->counters().submitted)
      << "nothing of it is left on the first";
  bench.clock->advance(milliseconds(1));
  runs.push_back(contexts[1].submit().value());
  bench.clock->advance(milliseconds(2));
  for (Inference& run : runs) EXPECT_TRUE(run.wait().ok()) << run.wait().to_string();
}

/// Several threads submit to a line that is mostly full, and wait for room. How many failed.
int failures_in_turns(const ChainBench& bench, const Program& program) {
  constexpr int kThreads = 6;
  std::atomic<int> left{kThreads};
  std::atomic<int> failed{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      Context context = program.new_context().value();
      EXPECT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
      RunOptions options;
      options.room_until = kNever;
      for (int round = 0; round < 5; ++round) {
        auto run = context.submit(options);
        const Status status = run ? run->wait() : Status(error(run.error()));
        EXPECT_TRUE(status.ok()) << status.to_string();
        if (!status.ok()) ++failed;
      }
      --left;
    });
  while (left > 0) {
    bench.clock->advance(milliseconds(1));
    std::this_thread::yield();
  }
  return failed;
}

TEST(ChainDevice, WhatWaitedForRoomRuns) {
  const ChainBench two({"null:generic:1?a=1ms&depth=2", "null:generic:1?a=1ms&depth=1"});
  EXPECT_EQ(failures_in_turns(two, two.program), 0);
  const ChainBench one({"null:generic:1?a=1ms&depth=3", "null"});
  EXPECT_EQ(failures_in_turns(one, one.load(one.devices[0])), 0);
}

TEST(ChainDevice, LineThatIsTooShortForItsPartsIsRefusedAtOnce) {
  const ChainBench bench({"null:generic:1?depth=1", "null"});
  const Program program = bench.load(bench.devices[0]);
  Context context = program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  RunOptions options;
  options.room_until = kNever;
  const auto run = context.submit(options);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code(), Code::kUnsupported);
  EXPECT_THAT(run.error().message(), HasSubstr("open it with depth=2"));
  EXPECT_TRUE(context.run().ok()) << "one part after the other needs no line";
}

TEST(ChainDevice, AnActivationHoldsCoresOfEachDeviceAndGivesThemBack) {
  ImportOptions import;
  import.cores = 2;
  ChainBench bench({"null:generic:2", "null:generic:4"}, {}, import);
  ActivateOptions how;
  {
    const auto held = Activation::create(bench.program, how).value();
    EXPECT_EQ(held.cores().count(), 4U);
    EXPECT_EQ(bench.devices[0]->holdings().size(), 1U);
    EXPECT_EQ(bench.device->holdings().size(), 2U);
    const auto more = Activation::create(bench.program, how);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code(), Code::kOutOfCores);
    EXPECT_EQ(bench.devices[1]->holdings().size(), 1U) << "the failure holds nothing";
    Context context = held.new_context().value();
    ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
    ASSERT_TRUE(context.run().ok());
    EXPECT_EQ(context.record().core_bits & ~held.cores().bits(), 0U);
  }
  EXPECT_TRUE(bench.device->holdings().empty());
  how.cores = CoreSet::of({0, 1});  // Of the first device alone.
  const auto none = Activation::create(bench.program, how);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
}

TEST(ChainDevice, ObserversHearOfAllDevicesAndOfEachInference) {
  Faults faults(2);
  faults[1] = std::make_shared<ListedFaults>(std::vector<Fault>{Fault::kNone, Fault::kLost});
  ChainBench bench({"null?a=1ms", "null?a=1ms"}, faults);
  std::vector<device::JobRecord> records;
  std::vector<device::EventKind> events;
  device::ObserverOptions options;
  options.on_event = [&](const device::Event& event) {
    if (event.kind != device::EventKind::kLog) events.push_back(event.kind);
  };
  options.on_record = [&](const device::JobRecord& record) { records.push_back(record); };
  const auto observation = bench.device->observe(options).value();
  InferenceSet set = bench.set({.size = 1});
  for (std::uint64_t id = 0; id < 2; ++id) {
    ASSERT_TRUE(set.submit(set.acquire().value(), id).ok());
    bench.clock->advance(milliseconds(2));
    ASSERT_TRUE(set.release(set.collect(bench.clock->now()).value()).ok());
  }
  bench.clock->advance(milliseconds(40));
  ASSERT_TRUE(observation->flush());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].code, Code::kOk);
  EXPECT_EQ(records[1].code, Code::kDeviceLost);
  EXPECT_THAT(events, ::testing::ElementsAre(device::EventKind::kLost, device::EventKind::kBack));
  EXPECT_EQ(observation->dropped(), 0U);
}

TEST(ChainDevice, OnOneDeviceAllPartsRunThere) {
  ChainBench bench({"null?a=1ms", "null?a=1ms"});
  const Program program = bench.load(bench.devices[0]);
  EXPECT_EQ(program.device()->info().instance, bench.devices[0]->info().instance);
  Context context = program.new_context().value();
  ASSERT_TRUE(context.bind_input(0, SetBench::view(kX)).ok());
  Inference run = context.submit().value();
  bench.clock->advance(milliseconds(2));
  EXPECT_TRUE(run.done());
  EXPECT_EQ(bench.devices[0]->counters().completed, 2U);
  EXPECT_EQ(bench.devices[1]->counters().completed, 0U);
  LoadOptions options;
  options.on = bench.devices[1];
  options.part = "network/1";
  const auto part = Program::load(bench.file, options);
  ASSERT_TRUE(part) << part.error().to_string();
  EXPECT_EQ(part->description().inputs[0].desc.name, "v1");
}

TEST(ChainDevice, MisuseIsRefusedByName) {
  ChainBench bench({"null", "null"});
  EXPECT_EQ(chain_devices({bench.devices[0]}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(chain_devices({bench.devices[0], nullptr}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(chain_devices({bench.devices[0], bench.device}).error().code(), Code::kInvalidArgument);
  device::OpenOptions open;
  open.own_instance = true;
  const auto other = device::open_device("null", open).value();
  const auto clocks = chain_devices({bench.devices[0], other});
  ASSERT_FALSE(clocks);
  EXPECT_THAT(clocks.error().message(), HasSubstr("clock"));
  LoadOptions options;
  options.on = chain_devices({bench.devices[0], bench.devices[1], bench.devices[0]}).value();
  const auto places = Program::load(bench.file, options);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(places.error().to_string(), HasSubstr("2 parts"));
  options.on = bench.device;
  options.cache = false;
  const std::string whole = testing::relu_model({std::int64_t{1}, std::int64_t{4}});
  EXPECT_EQ(Program::load(as_byte_span(whole), options).error().code(), Code::kForeignImage);
  LoadOptions exposing;
  exposing.on = bench.devices[0];
  exposing.exposed_values = {"v1"};
  const auto cut = Program::load(bench.file, exposing);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), Code::kUnsupported);
  EXPECT_THAT(cut.error().to_string(),
              AllOf(HasSubstr("'network' was cut into parts"), HasSubstr("part network/0")));
  EXPECT_EQ(bench.device->import_fd(0, 16, 0).error().code(), Code::kUnsupported);
  EXPECT_TRUE(bench.device->create_buffer(16, {}));
}

}  // namespace
}  // namespace corelane
