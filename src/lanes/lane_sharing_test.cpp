// Executables of one image that never changes share the engine's program.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lanes/resources/shared_program.h"
#include "lanes/testing/lane_engine_fake.h"

namespace corelane::lanes {
namespace {

/// An image of bytes that stay.
device::Image image_of(const std::shared_ptr<const ByteVector>& bytes) {
  device::Image image;
  image.bytes = *bytes;
  image.keep_alive = bytes;
  image.immutable = true;
  return image;
}

std::shared_ptr<const ByteVector> some_bytes() {
  return std::make_shared<const ByteVector>(16, std::byte{1});
}

TEST(LaneSharing, OneImageIsPreparedOnceAndCountsOnce) {
  device::LaneOptions options;
  FakeDevice fake(2, options);
  const std::size_t before = fake.device->memory().weights;
  const auto bytes = some_bytes();
  std::vector<std::shared_ptr<device::Executable>> executables;
  for (int i = 0; i < 8; ++i) {
    executables.push_back(fake.device->prepare(image_of(bytes), {}).value());
    EXPECT_EQ(fake.device->memory().weights, before + 1000U) << i;
  }
  std::size_t sum = 0;
  for (const auto& executable : executables) sum += executable->memory().weights;
  EXPECT_EQ(sum, 1000U);
  executables.resize(1);
  EXPECT_EQ(executables[0]->memory().weights, 1000U);
}

TEST(LaneSharing, WhatDiffersIsPreparedForItself) {
  FakeDevice fake(1);
  const auto bytes = some_bytes();
  const auto first = fake.device->prepare(image_of(bytes), {}).value();
  const auto alone = [&](const device::Image& image, const device::PrepareOptions& options) {
    const auto other = fake.device->prepare(image, options).value();
    return other->memory().weights == 1000U && first->memory().weights == 1000U;
  };
  EXPECT_FALSE(alone(image_of(bytes), {}));
  // Equal bytes elsewhere, or bytes that may change.
  EXPECT_TRUE(alone(image_of(some_bytes()), {}));
  device::Image changing = image_of(bytes);
  changing.immutable = false;
  EXPECT_TRUE(alone(changing, {}));
  device::Image part = image_of(bytes);
  part.bytes = part.bytes.first(8);
  EXPECT_TRUE(alone(part, {}));
  device::Image other_constants = image_of(bytes);
  other_constants.constants = *bytes;
  EXPECT_TRUE(alone(other_constants, {}));
  device::PrepareOptions options;
  options.fast_math = true;
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.precision = device::Precision::kF16;
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.profile_layers = true;
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.replicate_limit = 1;
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.engine = "other";
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.exposed_values = {"z"};
  EXPECT_TRUE(alone(image_of(bytes), options));
  options = {};
  options.custom_operators = {{"Op", ""}};
  EXPECT_TRUE(alone(image_of(bytes), options));
}

TEST(LaneSharing, TheLimitCountsSharedBytesOnceUntilTheLastOneGoes) {
  device::LaneOptions options;
  // The fake's own executable, and one more.
  options.memory_limit = 2 * 1010 + 5;
  FakeDevice fake(1, options);
  const auto bytes = some_bytes();
  auto first = fake.device->prepare(image_of(bytes), {});
  auto second = fake.device->prepare(image_of(bytes), {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(fake.device->prepare({}, {}).error().code(), Code::kOutOfMemory);
  first->reset();
  EXPECT_EQ(fake.device->prepare({}, {}).error().code(), Code::kOutOfMemory);
  second->reset();
  EXPECT_TRUE(fake.device->prepare({}, {}).has_value());
}

TEST(LaneSharing, AProgramThatEndedIsMadeAgain) {
  FakeDevice fake(1);
  const auto bytes = some_bytes();
  std::weak_ptr<const ByteVector> watch;
  for (int i = 0; i < 3; ++i) {
    auto own = some_bytes();
    watch = own;
    auto executable = fake.device->prepare(image_of(own), {}).value();
    own = nullptr;
    // The place stays taken: nothing else can lie there.
    EXPECT_FALSE(watch.expired());
    executable = nullptr;
    EXPECT_TRUE(watch.expired());
  }
}

TEST(LaneSharing, WhatWasPreparedBeforeALossIsNotShared) {
  MemoryLedger ledger("fake", 0);
  const auto image = image_of(some_bytes());
  const auto program = std::make_shared<SharedProgram>(
      std::make_shared<FakeProgram>(std::make_shared<FakeEngineState>(), Shape{1, 4}),
      image.keep_alive, ledger);
  SharedPrograms programs;
  programs.add(image, {}, 3, program);
  EXPECT_EQ(programs.find(image, {}, 3), program);
  EXPECT_EQ(programs.find(image, {}, 4), nullptr);
}

TEST(LaneSharing, ThreadsThatPrepareAtOnceGetOneProgram) {
  FakeDevice fake(2);
  const std::size_t before = fake.device->memory().weights;
  const auto bytes = some_bytes();
  std::vector<std::shared_ptr<device::Executable>> executables(8);
  {
    std::vector<std::jthread> threads;
    for (auto& executable : executables)
      threads.emplace_back([&] { executable = fake.device->prepare(image_of(bytes), {}).value(); });
  }
  EXPECT_EQ(fake.device->memory().weights, before + 1000U);
}

}  // namespace
}  // namespace corelane::lanes
