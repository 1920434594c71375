// How long the packed copy of a B lives, and which programs share it, through the device contract.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "corelane/device/device.h"
#include "corelane/driver/module.h"
#include "device/registry/device_wrappers.h"
#include "drivers/virtual/matmul/matmul_reference.h"
#include "drivers/virtual/matmul/matmul_types.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {
namespace {

using device::CoreSet;
using device::MatmulDesc;
using device::Submission;

constexpr MatmulTypes kHalves{DType::kF16, DType::kF16, DType::kF32};

std::shared_ptr<device::Device> open_npu() {
  device::OpenRequest request;
  request.info.instance = "virtual:rk3588#0";
  request.info.cores.resize(3);
  request.info.capabilities = device::describe_virtual().capabilities;
  auto opened = *open_virtual_engine(request);
  auto npu = device::make_laned_device(std::move(opened.info), std::move(opened.engine), {});
  EXPECT_TRUE(npu) << npu.error().to_string();
  return *npu;
}

/// One executable with bindings for a product, whose B may be another's.
struct Bound {
  Bound(const std::shared_ptr<device::Device>& npu, Product& values, Product* b_of = nullptr)
      : product(values), b_owner(b_of == nullptr ? values : *b_of), queue(*npu->make_queue({})) {
    auto made = npu->prepare(product.image(), {});
    EXPECT_TRUE(made) << made.error().to_string();
    job.executable = *made;
    job.bindings = *job.executable->new_bindings();
    const auto& in = job.executable->inputs();
    EXPECT_TRUE(job.bindings->set_input(0, Product::ref(product.a_bytes, in[0].shape)).ok());
    EXPECT_TRUE(set_b().ok());
    EXPECT_TRUE(
        job.bindings
            ->set_output(0, Product::ref(product.c_bytes, job.executable->outputs()[0].shape))
            .ok());
  }
  Status set_b() {
    return job.bindings->set_input(
        1, Product::ref(b_owner.b_bytes, job.executable->inputs()[1].shape));
  }
  Status run() { return queue->run(job); }
  std::int32_t first() const { return element_as<std::int32_t>(product.c_bytes.data(), 0); }

  Product& product;
  Product& b_owner;
  std::shared_ptr<device::Queue> queue;
  Submission job;
};

/// K ones times K `b`s.
Product constant(std::int64_t m, float b) {
  Product product(matmul_of(kBytes, m, 64, 48));
  product.fill_with(1, b);
  return product;
}

TEST(MatmulShare, NewContentOfBCountsFromTheNextSetInputOn) {
  const auto npu = open_npu();
  Product product = constant(2, 1);
  Bound bound(npu, product);
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 64);
  product.fill_with(1, 2);
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 64);
  bound.job.cores = CoreSet::first(2);  // Nor on other cores.
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 64);
  ASSERT_TRUE(bound.set_b().ok());
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 128);
}

TEST(MatmulShare, AIsReadInEveryRun) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  Bound bound(npu, product);
  ASSERT_TRUE(bound.run().ok());
  product.fill_with(3, 1);
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 192);
}

TEST(MatmulShare, ExecutablesOfOtherMShareOnePackedCopy) {
  const auto npu = open_npu();
  Product one(matmul_of(kBytes, 1, 200, 300));
  Product many(matmul_of(kBytes, 130, 200, 300), 2);
  many.b = one.b;
  Bound first(npu, one);
  Bound second(npu, many, &one);
  ASSERT_TRUE(first.run().ok());
  const std::size_t packed = first.job.executable->memory().weights;
  EXPECT_GE(packed, 60000U);
  ASSERT_TRUE(second.run().ok());
  one.check("M = 1");
  many.check("M = 130");
  EXPECT_EQ(npu->memory().weights, packed);
  EXPECT_EQ(second.job.executable->memory().weights, 0U);
}

TEST(MatmulShare, FewRowsOfFloatsReadBInTheSizeItHas) {
  const auto npu = open_npu();
  Product one(matmul_of(kHalves, 1, 128, 128));
  Product four(matmul_of(kHalves, 4, 128, 128), 2);
  Product five(matmul_of(kHalves, 5, 128, 128), 3);
  four.b = five.b = one.b;
  Bound first(npu, one);
  Bound second(npu, four, &one);
  Bound third(npu, five, &one);
  ASSERT_TRUE(first.run().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(npu->memory().weights, 2U * 128 * 128);
  ASSERT_TRUE(third.run().ok());
  EXPECT_EQ(npu->memory().weights, (2U + 4U) * 128 * 128);
  for (const Product* product : {&one, &four, &five}) product->check("shared");
}

TEST(MatmulShare, TheCopyIsCountedForAnotherWhenTheFirstUserGoesAndFreedWithTheLast) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  auto first = std::make_unique<Bound>(npu, product);
  auto second = std::make_unique<Bound>(npu, product);
  ASSERT_TRUE(first->run().ok());
  ASSERT_TRUE(second->run().ok());
  const std::size_t packed = npu->memory().weights;
  EXPECT_GT(packed, 0U);
  first.reset();
  EXPECT_EQ(second->job.executable->memory().weights, packed);
  second.reset();
  EXPECT_EQ(npu->memory().weights, 0U);
}

TEST(MatmulShare, NewBOfOneIsNewForAll) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  Product other = constant(3, 1);
  Bound first(npu, product);
  Bound second(npu, other, &product);
  ASSERT_TRUE(first.run().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(second.first(), 64);
  product.fill_with(1, 5);
  ASSERT_TRUE(first.set_b().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(second.first(), 320);
  ASSERT_TRUE(first.run().ok());
  EXPECT_EQ(first.first(), 320);
}

TEST(MatmulShare, DevicesDoNotShare) {
  const auto one = open_npu();
  const auto two = open_npu();
  Product product = constant(1, 1);
  Bound first(one, product);
  Bound second(two, product);
  ASSERT_TRUE(first.run().ok());
  product.fill_with(1, 2);
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(second.first(), 128);
  ASSERT_TRUE(first.run().ok());
  EXPECT_EQ(first.first(), 64);
}

TEST(MatmulShare, OtherMeaningsOfTheSameBytesAreOtherCopies) {
  const auto npu = open_npu();
  MatmulDesc square = matmul_of(kHalves, 2, 40, 40);
  Product normal(square);
  square.b_layout = device::MatmulLayoutB::kTransposed;
  Product transposed(square);
  Bound first(npu, normal);
  Bound second(npu, transposed, &normal);
  transposed.b_bytes = normal.b_bytes;
  for (std::size_t k = 0; k < 40; ++k)
    for (std::size_t n = 0; n < 40; ++n) transposed.b[k * 40 + n] = normal.b[n * 40 + k];
  ASSERT_TRUE(first.run().ok());
  ASSERT_TRUE(second.run().ok());
  normal.check("normal");
  transposed.check("transposed");
}

TEST(MatmulShare, ScalesThatWaitForTheSumsDoNotPartTheCopies) {
  const auto npu = open_npu();
  MatmulDesc desc = matmul_of({DType::kI8, DType::kI8, DType::kF32}, 2, 40, 40);
  Product plain(desc);
  ASSERT_TRUE(quantize(desc, device::MatmulQuantB::kChannel, true));
  Product scaled(desc);
  Bound first(npu, plain);
  Bound second(npu, scaled, &plain);
  ASSERT_TRUE(first.run().ok());
  const std::size_t packed = npu->memory().weights;
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(npu->memory().weights, packed);
  plain.check("plain");
  scaled.check("scaled");
}

TEST(MatmulShare, DeadlinesReadBOnlyWhenItIsNew) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  Bound bound(npu, product);
  bound.job.deadline = npu->clock()->now() + std::chrono::hours(1);
  ASSERT_TRUE(bound.run().ok());
  product.fill_with(1, 2);
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 64);
  ASSERT_TRUE(bound.set_b().ok());
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 128);
}

TEST(MatmulShare, NewBOfOneIsNewForDeadlinesOfOthers) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  Product other = constant(3, 1);
  Bound first(npu, product);
  Bound second(npu, other, &product);
  second.job.deadline = npu->clock()->now() + std::chrono::hours(1);
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(second.first(), 64);
  product.fill_with(1, 5);
  ASSERT_TRUE(first.set_b().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(second.first(), 320);
}

TEST(MatmulShare, BThatAFenceAnnouncesIsReadAfterTheFenceInEveryOrderOfRuns) {
  const auto npu = open_npu();
  Product product = constant(1, 1);
  Product other = constant(3, 1);
  Bound first(npu, product);
  Bound second(npu, other, &product);
  auto fence = std::make_shared<device::Fence>();
  ASSERT_TRUE(second.set_b().ok());
  second.job.wait = {fence};
  auto completion = second.queue->submit(second.job);
  ASSERT_TRUE(completion);
  ASSERT_TRUE(first.run().ok());  // Packs what is there before the fence.
  product.fill_with(1, 5);
  fence->signal();
  ASSERT_TRUE((*completion)->wait_released());
  EXPECT_EQ(second.first(), 320);
}

TEST(MatmulShare, AnotherBFreesTheCopiesOfAllWidths) {
  const auto npu = open_npu();
  Product product = constant(2, 1);
  Product other = constant(2, 3);
  Bound bound(npu, product);
  ASSERT_TRUE(bound.run().ok());
  const std::size_t packed = npu->memory().weights;
  bound.job.cores = CoreSet::first(2);
  ASSERT_TRUE(bound.run().ok());
  const auto& b = bound.job.executable->inputs()[1];
  ASSERT_TRUE(bound.job.bindings->set_input(1, Product::ref(other.b_bytes, b.shape)).ok());
  EXPECT_EQ(npu->memory().weights, 0U);
  ASSERT_TRUE(bound.run().ok());
  EXPECT_EQ(bound.first(), 192);
  EXPECT_EQ(npu->memory().weights, packed);
}

TEST(MatmulShare, MemoryOfTheDeviceServesWhereNoneIsBound) {
  const auto npu = open_npu();
  Product product = constant(2, 3);
  Submission job;
  job.executable = *npu->prepare(product.image(), {});
  job.bindings = *job.executable->new_bindings();
  std::memcpy(job.bindings->input(0)->data, product.a_bytes.data(), product.a_bytes.size());
  std::memcpy(job.bindings->input(1)->data, product.b_bytes.data(), product.b_bytes.size());
  ASSERT_TRUE((*npu->make_queue({}))->run(job).ok());
  const auto c = job.bindings->output(0);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->size, product.c_bytes.size());
  EXPECT_EQ(element_as<std::int32_t>(static_cast<const std::byte*>(c->data), 95), 192);
}

TEST(MatmulShare, ManyThreadsOnSlicesOfOneBAndOneAGetTheirOwnResults) {
  const auto npu = open_npu();
  constexpr std::size_t kThreads = 6;
  std::vector<Product> products;
  for (unsigned i = 0; i < kThreads; ++i)
    products.emplace_back(matmul_of(i % 2 == 0 ? kBytes : kHalves, 1 + i, 128, 96), i);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Bound bound(npu, products[i]);
      Bound same(npu, products[i]);
      for (std::size_t run = 0; run < 40; ++run) {
        bound.job.cores = CoreSet::first(1 + (run + i) % 3);
        if (run % 8 == 0 && !same.set_b().ok()) ++failures;
        if (!bound.run().ok()) ++failures;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (const Product& product : products) product.check("after 40 runs");
  EXPECT_EQ(npu->memory().weights, 0U);
}

TEST(MatmulShare, NewBWhileOthersRunGivesOldOrNewNeverAMixture) {
  const auto npu = open_npu();
  Product ones = constant(1, 1);
  Product runs = constant(1, 1);
  Bound writer(npu, ones);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  // B itself stays the same: memory must not change while it is packed.
  std::thread reader([&] {
    Bound bound(npu, runs, &ones);
    while (!stop)
      if (!bound.run().ok() || bound.first() != 64) ++wrong;
  });
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(writer.set_b().ok());
    ASSERT_TRUE(writer.run().ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(MatmulShare, MisuseIsRefused) {
  const auto npu = open_npu();
  Product product = constant(2, 1);
  Bound bound(npu, product);
  auto& bindings = *bound.job.bindings;
  const Shape a{2, 64};
  EXPECT_EQ(bindings.set_input(2, Product::ref(product.a_bytes, a)).code(), Code::kOutOfRange);
  EXPECT_EQ(bindings.set_input(0, Product::ref(product.a_bytes, {64, 2})).code(),
            Code::kShapeMismatch);
  EXPECT_EQ(bindings.set_input(0, {product.a_bytes.data(), 127, a, nullptr}).code(),
            Code::kInvalidArgument);
  std::vector<std::byte> odd(product.c_bytes.size() + 1);
  ASSERT_TRUE(bindings.set_output(0, {odd.data() + 1, odd.size() - 1, {2, 48}, nullptr}).ok());
  const Status status = bound.run();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("aligned"));
}

TEST(MatmulShare, ImagesAndOptionsThatMakeNoSenseAreRefused) {
  const auto npu = open_npu();
  Product product = constant(2, 1);
  device::Image image = product.image();
  image.bytes = image.bytes.first(20);
  EXPECT_EQ(npu->prepare(image, {}).error().code(), Code::kMalformed);
  device::PrepareOptions options;
  options.precision = device::Precision::kBF16;
  EXPECT_EQ(npu->prepare(product.image(), options).error().code(), Code::kUnsupported);
  options = {};
  options.input_shapes = {{3, 64}, {64, 48}};
  EXPECT_EQ(npu->prepare(product.image(), options).error().code(), Code::kShapeMismatch);
  options.input_shapes = {{2, 64}, {64, 48}};
  EXPECT_TRUE(npu->prepare(product.image(), options));
  options.exposed_values = {"x"};
  EXPECT_EQ(npu->prepare(product.image(), options).error().code(), Code::kNotFound);
  EXPECT_EQ((*npu->prepare(product.image(), {}))->export_precompiled().error().code(),
            Code::kUnsupported);
  EXPECT_THAT(npu->info().capabilities.image_kinds, testing::Contains("matmul"));
}

TEST(MatmulShare, LayerTimesNameTheKernel) {
  const auto npu = open_npu();
  Product product = constant(2, 1);
  device::PrepareOptions options;
  options.profile_layers = true;
  Submission job;
  job.executable = *npu->prepare(product.image(), options);
  job.bindings = *job.executable->new_bindings();
  ASSERT_TRUE((*npu->make_queue({}))->run(job).ok());
  const auto times = job.bindings->layer_times();
  ASSERT_TRUE(times);
  ASSERT_EQ(times->size(), 1U);
  EXPECT_FALSE(times->front().kernel.empty());
  EXPECT_GT(times->front().duration.count(), 0);
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
