#include "adapters/ggml/mm/mm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "adapters/ggml/mm/mm_test_support.h"

namespace corelane::ggml {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Engine : public testing::Test {
 protected:
  void open(MmOptions options = {}) {
    std::string why;
    engine_ = MmEngine::create(
        TestLibrary::get(), options, [this](const std::string& line) { told_.push_back(line); },
        why);
    ASSERT_NE(engine_, nullptr) << why;
    engine_->set_threads(1);  // Others use the machine, too, and a pool spins while it waits.
  }
  /// The relative error of a product; `computed` is what multiply() returned.
  double product(const MmMatrix& a, const MmMatrix& b, MmType type, const MmWeight* weight,
                 bool computed = true) {
    const auto n = static_cast<std::size_t>(b.rows);
    std::vector<float> c(static_cast<std::size_t>(a.rows) * (n + 3), -7.0F);
    MmEngine::Products products(*engine_, b, type, weight);
    EXPECT_EQ(products.multiply(a, c.data(), (n + 3) * 4), computed);
    EXPECT_EQ(c[n], -7.0F) << "beyond a row";
    return error_of(a, b, c, n + 3);
  }

  std::shared_ptr<MmEngine> engine_;
  std::vector<std::string> told_;
};

TEST_F(Engine, AnySizeGivesTheProduct) {
  MmOptions options;
  options.limits.max_k = 128;
  options.limits.max_n = 96;
  options.limits.max_rows = 16;
  open(options);
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {5, 33, 17},
                                {16, 128, 96},
                                {17, 300, 200},
                                {40, 129, 97}})
    for (const RowForm form : {RowForm::kFloats, RowForm::kHalves}) {
      const auto a = random_matrix(m, k, form, 1);
      const auto b = random_matrix(n, k, form, 2);
      SCOPED_TRACE(testing::Message() << m << " " << k << " " << n);
      for (const MmType type : kAllTypes) {
        EXPECT_LT(product(a.view, b.view, type, nullptr), bound_of(type));
        const auto weight = engine_->prepare(b.view, type, nullptr, 0);
        ASSERT_NE(weight, nullptr);
        EXPECT_LT(product(a.view, b.view, type, weight.get()), bound_of(type));
        engine_->release(weight);
      }
    }
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(Engine, RowsWithoutNegativeElementsAreAsExactInInt8AsOthers) {
  open();
  auto a = random_matrix(8, 1024, RowForm::kFloats, 1);
  for (float& x : a.floats) x = std::fabs(x);
  const auto b = random_matrix(64, 1024, RowForm::kFloats, 2);
  EXPECT_LT(product(a.view, b.view, MmType::kInt8, nullptr), 2e-4);
}

/// The turn of a block makes a single element the largest int4 in all places of the block, so that
/// sums are as large as they can be.
TEST_F(Engine, TheLargestSumsOfInt4DoNotOverflow) {
  open();
  auto a = random_matrix(9, 2048, RowForm::kFloats, 1);
  auto b = random_matrix(70, 2048, RowForm::kFloats, 2);
  for (auto* matrix : {&a, &b})
    for (std::size_t i = 0; i < matrix->floats.size(); ++i)
      matrix->floats[i] = i % 512 == 0 ? 1.5F : 0.0F;
  for (const MmType type : {MmType::kW4A8, MmType::kW4A4})
    EXPECT_LT(product(a.view, b.view, type, nullptr), 1e-10);
}

TEST_F(Engine, RowsOfZerosAndRowsThatAreNotFiniteStayThat) {
  open();
  auto a = random_matrix(9, 96, RowForm::kFloats, 1);
  std::fill_n(a.floats.begin(), 96, 0.0F);
  a.floats[5 * 96 + 7] = std::numeric_limits<float>::infinity();
  const auto b = random_matrix(70, 96, RowForm::kFloats, 2);
  for (const MmType type : kAllTypes) {
    std::vector<float> c(std::size_t{9} * 70);
    MmEngine::Products products(*engine_, b.view, type, nullptr);
    ASSERT_TRUE(products.multiply(a.view, c.data(), std::size_t{70} * 4));
    EXPECT_EQ(c[3], 0.0F);
    EXPECT_FALSE(std::isfinite(c[5 * 70 + 3]));
    EXPECT_TRUE(std::isfinite(c[6 * 70 + 3]));
  }
}

TEST_F(Engine, AnAlignedWeightIsASliceOfItsBlock) {
  open();
  const auto b = random_matrix(64, 96, RowForm::kHalves, 2);
  const auto a = random_matrix(9, 96, RowForm::kFloats, 3);
  auto block = engine_->device().allocate(3 * b.halves.size() * 2);
  ASSERT_NE(block, nullptr);
  const std::size_t offset = b.halves.size() * 2;
  std::memcpy(static_cast<char*>(block->data()) + offset, b.halves.data(), offset);
  MmMatrix view = b.view;
  view.data = static_cast<char*>(block->data()) + offset;
  const auto weight = engine_->prepare(view, MmType::kF16, block, offset);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->copied, 0U);
  EXPECT_EQ(engine_->figures().copied_bytes, 0U);
  EXPECT_EQ(TestLibrary::syncs_to_device, 1) << "the CPU wrote it";
  EXPECT_LT(product(a.view, view, MmType::kF16, weight.get()), 1e-6);
}

TEST_F(Engine, EachWeightKeepsAContextInWhichItStaysPacked) {
  open();
  std::vector<OwnedMatrix> b;
  std::vector<std::shared_ptr<MmWeight>> weights;
  for (unsigned i = 0; i < 4; ++i) {
    b.push_back(random_matrix(32, 64, RowForm::kHalves, 10 + i));
    weights.push_back(engine_->prepare(b.back().view, MmType::kF16, nullptr, 0));
  }
  const auto a = random_matrix(20, 64, RowForm::kFloats, 3);
  for (int round = 0; round < 5; ++round)
    for (std::size_t i = 0; i < b.size(); ++i)
      EXPECT_LT(product(a.view, b[i].view, MmType::kF16, weights[i].get()), 1e-6);
  EXPECT_EQ(TestLibrary::bindings_of_b, 4);
}

TEST_F(Engine, ContextsStayWithinTheirBound) {
  MmOptions options;
  options.max_contexts = 3;
  open(options);
  const auto a = random_matrix(8, 64, RowForm::kFloats, 3);
  for (unsigned i = 0; i < 12; ++i) {
    const auto b =
        random_matrix(32 + 32 * static_cast<std::int64_t>(i % 5), 64, RowForm::kHalves, i);
    EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr), 1e-6);
  }
  EXPECT_LE(engine_->contexts(), 3U);
}

TEST_F(Engine, ABThatIsWrittenAnewIsPackedAnew) {
  open();
  const auto a = random_matrix(8, 64, RowForm::kFloats, 3);
  for (unsigned i = 0; i < 3; ++i) {
    const auto b = random_matrix(32, 64, RowForm::kHalves, i);
    EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr), 1e-6);
  }
}

TEST_F(Engine, AFailedProductIsComputedOnTheCpuAndToldOnce) {
  open();
  const auto a = random_matrix(20, 40, RowForm::kFloats, 3);
  const auto b = random_matrix(30, 40, RowForm::kFloats, 4);
  for (int i = 0; i < 3; ++i) {
    TestLibrary::failing_runs = 1;
    EXPECT_LT(product(a.view, b.view, MmType::kInt8, nullptr, false), 1e-10);
  }
  EXPECT_LT(product(a.view, b.view, MmType::kInt8, nullptr), 5e-4) << "the next is tried again";
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0], HasSubstr("rknn_matmul_run returned -2"));
  EXPECT_EQ(engine_->figures().failed, 3U);
}

TEST_F(Engine, AContextThatCannotBeMadeIsAFailedProduct) {
  open();
  const auto a = random_matrix(4, 40, RowForm::kFloats, 3);
  const auto b = random_matrix(30, 40, RowForm::kFloats, 4);
  TestLibrary::failing_creates = 1;
  EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr, false), 1e-10);
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0], HasSubstr("rknn_matmul_create_dynamic_shape returned"));
}

TEST_F(Engine, BeyondTheBudgetAWeightFindsNoRoomAndThatIsToldOnce) {
  MmOptions options;
  options.budget.bytes = std::uint64_t{64} * 64;
  open(options);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  EXPECT_EQ(engine_->prepare(b.view, MmType::kF16, nullptr, 0), nullptr);
  EXPECT_EQ(engine_->prepare(b.view, MmType::kF16, nullptr, 0), nullptr);
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0], HasSubstr("GGML_RKNN_MEMORY_MB"));
  EXPECT_EQ(engine_->allocated(), 0U);
}

TEST_F(Engine, AKindOfFailureIsToldOnceThoughItsFiguresDiffer) {
  MmOptions options;
  options.budget.bytes = 12 << 20;
  open(options);
  const auto first = engine_->device().allocate(4 << 20);
  const auto large = random_matrix(2048, 2048, RowForm::kHalves, 4);
  EXPECT_EQ(engine_->prepare(large.view, MmType::kF16, nullptr, 0), nullptr);
  const auto second = engine_->device().allocate(2 << 20);
  EXPECT_EQ(engine_->prepare(large.view, MmType::kF16, nullptr, 0), nullptr);
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(Engine, ALibraryThatHasRefusedMemoryIsAskedMoreAndMoreSeldom) {
  open();
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  TestLibrary::lacks_memory = true;
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(engine_->prepare(b.view, MmType::kF16, nullptr, 0), nullptr);
  EXPECT_LT(TestLibrary::memory_asked, 12);
  TestLibrary::lacks_memory = false;
  EXPECT_NE(engine_->device().allocate(4096), nullptr) << "smaller than what was refused";
  EXPECT_NE(engine_->prepare(b.view, MmType::kF16, nullptr, 0), nullptr);
}

TEST_F(Engine, WeightsLeaveRoomForRowsAndResults) {
  MmOptions options;
  options.budget.bytes = 4 << 20;
  open(options);
  const auto a = random_matrix(200, 64, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  std::vector<std::shared_ptr<MmMemory>> taken;
  while (auto memory = engine_->device().allocate(65536)) taken.push_back(std::move(memory));
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
  EXPECT_LT(product(a.view, b.view, MmType::kInt8, nullptr), 5e-4);
  EXPECT_THAT(told_, SizeIs(0));
  taken.clear();
  while (auto memory = engine_->device().allocate(4096)) taken.push_back(std::move(memory));
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6) << "of descriptors, too";
}

TEST_F(Engine, WhereMemoryIsShortProductsRunInPartsOfFewerRows) {
  MmOptions options;
  options.budget.bytes = 100000;
  open(options);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  ASSERT_NE(weight, nullptr);
  for (const std::int64_t rows : {8, 512, 512, 100, 8}) {
    const auto a = random_matrix(rows, 64, RowForm::kFloats, 3);
    EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6) << rows;
  }
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0], HasSubstr("parts of fewer rows"));
  EXPECT_EQ(engine_->figures().failed, 0U);
}

TEST_F(Engine, ProductsWithoutMemoryForTheirRowsAreToldOnceAndGoOnOnceThereIsSome) {
  MmOptions options;
  options.budget.bytes = 1 << 20;
  open(options);
  const auto a = random_matrix(100, 64, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  std::vector<std::shared_ptr<MmMemory>> taken;
  while (auto memory = engine_->device().allocate(4096, MmUse::kShared))
    taken.push_back(std::move(memory));
  EXPECT_FALSE(engine_->lacks_memory()) << "not known yet";
  for (int i = 0; i < 3; ++i)
    EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get(), false), 1e-10);
  EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr, false), 1e-10);
  EXPECT_TRUE(engine_->lacks_memory());
  EXPECT_THAT(told_.back(), HasSubstr("no room for the rows and results of products"));
  EXPECT_THAT(told_, SizeIs(1));
  taken.clear();
  EXPECT_FALSE(engine_->lacks_memory());
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
}

TEST_F(Engine, AFailedProductIsComputedByTheFallbackThatIsGiven) {
  open();
  const auto a = random_matrix(8, 40, RowForm::kFloats, 3);
  const auto b = random_matrix(30, 40, RowForm::kFloats, 4);
  std::vector<float> c(std::size_t{8} * 30);
  for (const bool can : {true, false}) {
    TestLibrary::failing_runs = 1;
    c[0] = 7;
    MmEngine::Products products(*engine_, b.view, MmType::kF16, nullptr);
    EXPECT_FALSE(products.multiply(a.view, c.data(), std::size_t{30} * 4, [can] { return can; }));
    EXPECT_EQ(c[0] == 7, can);
  }
  EXPECT_LT(error_of(a.view, b.view, c, 30), 1e-10);
}

TEST_F(Engine, MatricesThatAreNoWeightsKeepAFewContextsOfTheirOwn) {
  open();
  const auto a = random_matrix(8, 64, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
  for (std::int64_t n = 32; n <= std::int64_t{32} * 40; n += 32) {
    const auto growing = random_matrix(n, 64, RowForm::kHalves, 5);
    EXPECT_LT(product(a.view, growing.view, MmType::kF16, nullptr), 1e-6) << n;
  }
  EXPECT_LE(engine_->contexts(), 9U);
  const int before = TestLibrary::bindings_of_b;
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
  EXPECT_EQ(TestLibrary::bindings_of_b, before) << "the weight is still packed";
}

TEST_F(Engine, RowsBeyondTheRangeOfFloat16AreAsExactAsOthers) {
  MmOptions options;
  options.limits.max_k = 128;
  open(options);
  const auto b = random_matrix(64, 300, RowForm::kHalves, 4);
  for (const float scale : {1e5F, 1e-7F, 1e-30F, 1e30F}) {
    auto a = random_matrix(20, 300, RowForm::kFloats, 3);
    for (std::size_t i = 0; i < std::size_t{10} * 300; ++i) a.floats[i] *= scale;
    MmMatrix some = a.view;
    some.rows = 10;
    EXPECT_LT(product(some, b.view, MmType::kF16, nullptr), 1e-6) << scale;
    some.data = a.floats.data() + std::ptrdiff_t{10} * 300;
    EXPECT_LT(product(some, b.view, MmType::kF16, nullptr), 1e-6) << "the rows of usual size";
    some.data = a.view.data;
    some.rows = 20;
    EXPECT_LT(product(some, b.view, MmType::kF16, nullptr), 1e-6) << "both";
  }
  auto a = random_matrix(8, 300, RowForm::kFloats, 3);
  a.floats[9] = 1e5F;
  EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr), 1e-6) << "a single large one";
}

TEST_F(Engine, ReleasedWeightsLeaveNothingBehind) {
  open();
  const auto a = random_matrix(8, 96, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 96, RowForm::kHalves, 4);
  (void)product(a.view, b.view, MmType::kF16, nullptr);
  const auto before = engine_->allocated();
  for (int i = 0; i < 10; ++i) {
    const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
    EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
    engine_->release(weight);
  }
  EXPECT_EQ(engine_->allocated(), before);
  EXPECT_EQ(engine_->figures().copied_bytes, 0U);
}

TEST_F(Engine, RowsThatProductsShareAreConvertedOnce) {
  open();
  engine_->set_threads(3);
  auto a = random_matrix(100, 96, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 96, RowForm::kHalves, 4);
  for (const MmType type : {MmType::kF16, MmType::kInt8, MmType::kW4A4}) {
    const auto weight = engine_->prepare(b.view, type, nullptr, 0);
    const auto before = engine_->figures().conversions;
    for (int i = 0; i < 3; ++i)
      EXPECT_LT(product(a.view, b.view, type, weight.get()), bound_of(type));
    EXPECT_EQ(engine_->figures().conversions, before + 1);
    engine_->release(weight);
  }
}

TEST_F(Engine, WeightsOfInt8AndOfInt4ShareRowsOfInt8) {
  open();
  const auto a = random_matrix(100, 96, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 96, RowForm::kHalves, 4);
  const auto int8 = engine_->prepare(b.view, MmType::kInt8, nullptr, 0);
  const auto int4 = engine_->prepare(b.view, MmType::kW4A8, nullptr, 0);
  EXPECT_EQ(int4->copied * 2, int8->copied);
  EXPECT_LT(product(a.view, b.view, MmType::kInt8, int8.get()), 5e-4);
  EXPECT_LT(product(a.view, b.view, MmType::kW4A8, int4.get()), bound_of(MmType::kW4A8));
  EXPECT_EQ(engine_->figures().conversions, 1U);
}

TEST_F(Engine, RowsThatMayHaveChangedAreConvertedAnew) {
  open();
  auto a = random_matrix(20, 64, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
  for (float& x : a.floats) x = 1 - x;
  engine_->begin_group();
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6) << "another group";
  // The result is written over A, and is the A of the next product.
  MmMatrix own = a.view;
  own.columns = 64;
  std::vector<float> c(a.floats.size());
  {
    MmEngine::Products products(*engine_, b.view, MmType::kF16, weight.get());
    ASSERT_TRUE(products.multiply(own, a.floats.data(), own.row_bytes));
    ASSERT_TRUE(products.multiply(own, c.data(), own.row_bytes));
  }
  EXPECT_LT(error_of(own, b.view, c, 64), 1e-6) << "written by a product";
}

TEST_F(Engine, RowsThatOverlapAreConvertedAnewWhereOnlyTheLastOfThemIsWritten) {
  open();
  auto a = random_matrix(20, 64, RowForm::kFloats, 3);
  MmMatrix own = a.view;
  own.row_bytes = 4 * sizeof(float);
  const auto b = random_matrix(3, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  std::vector<float> c(std::size_t{20} * 3);
  {
    MmEngine::Products products(*engine_, b.view, MmType::kF16, weight.get());
    ASSERT_TRUE(products.multiply(own, a.floats.data() + 80, 3 * sizeof(float)));
    ASSERT_TRUE(products.multiply(own, c.data(), 3 * sizeof(float)));
  }
  EXPECT_LT(error_of(own, b.view, c, 3), 1e-6);
}

TEST_F(Engine, OnceStoppedItComputesOnTheCpuAlone) {
  open();
  const auto a = random_matrix(20, 64, RowForm::kFloats, 3);
  const auto b = random_matrix(64, 64, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get()), 1e-6);
  engine_->stop(std::chrono::seconds(60));
  const int creates = TestLibrary::creates;
  EXPECT_LT(product(a.view, b.view, MmType::kF16, weight.get(), false), 1e-10);
  EXPECT_LT(product(a.view, b.view, MmType::kInt8, nullptr, false), 1e-10);
  EXPECT_EQ(TestLibrary::creates, creates);
}

TEST_F(Engine, ThreadsTakeTurns) {
  open();
  const auto b = random_matrix(64, 96, RowForm::kHalves, 4);
  const auto weight = engine_->prepare(b.view, MmType::kF16, nullptr, 0);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto a = random_matrix(5 + t, 96, RowForm::kFloats, t);
      for (int i = 0; i < 20; ++i)
        EXPECT_LT(product(a.view, b.view, MmType::kF16, i % 2 == 0 ? weight.get() : nullptr), 1e-6);
    });
  for (auto& thread : threads) thread.join();
}

TEST(MmDevice, ALibraryThatMakesNoProductsIsRefused) {
  const auto library = TestLibrary::get();
  TestLibrary::failing_creates = 1;
  std::string why;
  EXPECT_EQ(MmDevice::open(library, 3, {}, why), nullptr);
  EXPECT_THAT(why, HasSubstr("makes no matrix products"));
}

TEST(MmDevice, WeightsOfInt4AreMultipliedAsTheLibraryCan) {
  const auto library = TestLibrary::get();
  std::string why;
  const auto device = MmDevice::open(library, 3, {}, why);
  ASSERT_NE(device, nullptr) << why;
  EXPECT_EQ(device->type_of_int4(false), MmType::kW4A8);
  EXPECT_EQ(device->type_of_int4(true), MmType::kW4A4);
  TestLibrary::lacks_types = 1U << RKNN_INT8_MM_INT4_TO_INT32;
  EXPECT_EQ(device->type_of_int4(false), MmType::kW4A4);
  TestLibrary::lacks_types |= 1U << RKNN_INT4_MM_INT4_TO_INT16;
  EXPECT_EQ(device->type_of_int4(false), MmType::kInt8);
  EXPECT_EQ(device->type_of_int4(true), MmType::kInt8);
}

TEST(MmDevice, CoresAreThoseThatTheLibraryTakes) {
  std::string why;
  const auto device = MmDevice::open(TestLibrary::get(), 2, {}, why);
  ASSERT_NE(device, nullptr) << why;
  ASSERT_NE(device->mask(0), nullptr);
  EXPECT_EQ(*device->mask(0), RKNN_NPU_CORE_0_1);
  EXPECT_EQ(device->cores(), 2);
  EXPECT_EQ(device->streams(), 1);
}

TEST_F(Engine, ALibraryWithoutMasksOfSeveralCoresGetsAContextForEachCore) {
  const auto library = TestLibrary::get();
  TestLibrary::refuses_masks_of_several = true;
  std::string why;
  engine_ = MmEngine::create(
      library, {}, [this](const std::string& line) { told_.push_back(line); }, why);
  ASSERT_NE(engine_, nullptr) << why;
  EXPECT_EQ(engine_->device().streams(), 3);
  EXPECT_EQ(engine_->device().cores(), 3);
  const auto a = random_matrix(20, 300, RowForm::kFloats, 1);
  for (const std::int64_t n : {1, 32, 64, 200, 1000})
    for (const MmType type : kAllTypes) {
      const auto b = random_matrix(n, 300, RowForm::kFloats, 2);
      const auto weight = engine_->prepare(b.view, type, nullptr, 0);
      EXPECT_LT(product(a.view, b.view, type, weight.get()), bound_of(type)) << n;
      EXPECT_LT(product(a.view, b.view, type, nullptr), bound_of(type)) << n;
      engine_->release(weight);
    }
  for (const int core : {1, 2, 4}) EXPECT_GE(TestLibrary::masks_set[core], 4) << core;
  TestLibrary::failing_runs = 1;
  const auto b = random_matrix(200, 300, RowForm::kFloats, 2);
  EXPECT_LT(product(a.view, b.view, MmType::kF16, nullptr, false), 1e-10) << "one of three failed";
  EXPECT_THAT(told_, SizeIs(1));
}

}  // namespace
}  // namespace corelane::ggml
