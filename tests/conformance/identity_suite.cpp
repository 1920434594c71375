// What a device reports of itself, and what it refuses.
#include <set>

#include "conformance_base.h"

namespace corelane::conformance {
namespace {

class Identity : public Conformance {};

TEST_F(Identity, CoresAndNamesAreGiven) {
  const device::DeviceInfo& info = device_->info();
  EXPECT_FALSE(info.kind.empty());
  EXPECT_FALSE(info.profile.empty());
  EXPECT_FALSE(info.instance.empty());
  EXPECT_FALSE(info.engine.empty());
  ASSERT_GE(info.cores.size(), 1U);
  ASSERT_LE(info.cores.size(), CoreSet::kMaxCores);
  std::set<std::string> names;
  for (const device::CoreInfo& core : info.cores) names.insert(core.name);
  EXPECT_EQ(names.size(), info.cores.size());
  EXPECT_FALSE(info.capabilities.image_kinds.empty());
  EXPECT_EQ(device_->health(), device::Health::kGood);
  EXPECT_NE(device_->clock(), nullptr);
}

TEST_F(Identity, ExecutableDescribesItsTensors) {
  ASSERT_EQ(executable_->inputs().size(), 1U);
  ASSERT_EQ(executable_->outputs().size(), 1U);
  for (const TensorDesc& desc : {executable_->inputs()[0], executable_->outputs()[0]}) {
    EXPECT_EQ(desc.dtype, DType::kF32);
    EXPECT_EQ(desc.shape, (Shape{1, kElements}));
    EXPECT_EQ(desc.layout.kind, LayoutKind::kPlain);
  }
  EXPECT_FALSE(executable_->from_precompiled());
}

TEST_F(Identity, ImageOfAnUnknownKindIsForeign) {
  Image image = driver().image_elementwise(kElements);
  image.kind = "no-such-kind";
  EXPECT_EQ(device_->prepare(image, {}).error().code(), Code::kForeignImage);
}

TEST_F(Identity, MalformedImageIsRefused) {
  const auto executable = device_->prepare(driver().image_malformed(), {});
  ASSERT_FALSE(executable.has_value());
  const Code code = executable.error().code();
  EXPECT_TRUE(code == Code::kMalformed || code == Code::kUnsupportedModel)
      << executable.error().to_string();
  EXPECT_FALSE(executable.error().message().empty());
}

TEST_F(Identity, WhatTheDeviceCannotDoIsAnError) {
  const device::Capabilities& can = device_->info().capabilities;
  const Image image = driver().image_elementwise(kElements);
  device::PrepareOptions options;
  if (!can.layer_times) {
    options.profile_layers = true;
    EXPECT_EQ(device_->prepare(image, options).error().code(), Code::kUnsupported);
    options = {};
  }
  if (!can.exposed_values) {
    options.exposed_values = {"something"};
    EXPECT_EQ(device_->prepare(image, options).error().code(), Code::kUnsupported);
  }
  if (!can.precompiled)
    EXPECT_EQ(executable_->export_precompiled().error().code(), Code::kUnsupported);
  if (!can.multi_core_jobs && cores() > 1)
    EXPECT_EQ(queue_->run(job(CoreSet::any(2))).code(), Code::kUnsupported);
  EXPECT_EQ(job().bindings->layer_times().error().code(), Code::kUnsupported);
}

TEST_F(Identity, LayerTimesComeWithAProfile) {
  if (!device_->info().capabilities.layer_times) GTEST_SKIP() << "no layer times";
  device::PrepareOptions options;
  options.profile_layers = true;
  auto profiled = *device_->prepare(driver().image_elementwise(kElements), options);
  const Submission profiled_job = job_of(profiled);
  fill(profiled_job, 0);
  ASSERT_TRUE(queue_->run(profiled_job).ok());
  const auto layers = profiled_job.bindings->layer_times();
  ASSERT_TRUE(layers.has_value()) << layers.error().to_string();
  EXPECT_FALSE(layers->empty());
}

TEST_F(Identity, ExposedValueThatIsUnknownIsNotFound) {
  if (!device_->info().capabilities.exposed_values) GTEST_SKIP() << "no exposed values";
  device::PrepareOptions options;
  options.exposed_values = {"no such value"};
  EXPECT_EQ(device_->prepare(driver().image_elementwise(kElements), options).error().code(),
            Code::kNotFound);
}

TEST_F(Identity, PrecompiledFormPreparesTheSame) {
  if (!device_->info().capabilities.precompiled) GTEST_SKIP() << "no pre-compiled form";
  const auto form = executable_->export_precompiled();
  ASSERT_TRUE(form.has_value()) << form.error().to_string();
  Image image = driver().image_elementwise(kElements);
  image.precompiled = form->bytes;
  image.precompiled_tag = form->tag;
  auto again = prepare(image);
  EXPECT_TRUE(again->from_precompiled());
  Submission made = job_of(again);
  fill(made, -3);
  ASSERT_TRUE(queue_->run(made).ok());
  expect_result(made);
  image.precompiled_tag = "of another engine";
  EXPECT_FALSE(prepare(image)->from_precompiled());
}

TEST_F(Identity, BuffersHaveAddressDescriptorAndSync) {
  auto buffer = *device_->create_buffer(1000, {});
  ASSERT_NE(buffer->data(), nullptr);
  EXPECT_EQ(buffer->size(), 1000U);
  EXPECT_TRUE(buffer->sync(device::SyncDirection::kBoth, 0, 1000).ok());
  EXPECT_EQ(buffer->sync(device::SyncDirection::kBoth, 1, 1000).code(), Code::kOutOfRange);
  if (buffer->fd() >= 0) {
    auto twin = *device_->import_fd(buffer->fd(), 1000, buffer->offset());
    static_cast<char*>(buffer->data())[7] = 'z';
    EXPECT_EQ(static_cast<char*>(twin->data())[7], 'z');
  }
  EXPECT_EQ(device_->create_buffer(0, {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(device_->import_fd(-1, 16, 0).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(device_->import_user(nullptr, 16).error().code(), Code::kInvalidArgument);
}

TEST_F(Identity, MemoryFiguresFollowTheObjects) {
  const std::size_t before = device_->memory().buffers;
  {
    auto buffer = *device_->create_buffer(4096, {});
    EXPECT_EQ(device_->memory().buffers, before + 4096);
    const Submission made = job();
    ASSERT_TRUE(queue_->run(made).ok());
    EXPECT_GE(device_->memory().buffers, before + 4096 + 2 * kElements * sizeof(float));
    EXPECT_GE(executable_->memory().total(), 2 * kElements * sizeof(float));
  }
  EXPECT_EQ(device_->memory().buffers, before);
}

}  // namespace
}  // namespace corelane::conformance
