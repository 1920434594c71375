/// The plugin as a host uses it, through its registry alone, on our librknnrt.so.
#include "adapters/ggml/plugin/ggml_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "adapters/ggml/plugin/ggml_timers.h"
#include "adapters/ggml/plugin/testing/ggml_plugged.h"

namespace corelane::ggml {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Plugged, IsOneRegistryWithOneDevice) {
  EXPECT_EQ(ggml_backend_score(), 1);
  EXPECT_EQ(ggml_backend_init(), registry_);
  EXPECT_EQ(ggml_backend_rknn_reg(), registry_);

  EXPECT_EQ(registry_->iface.get_device_count(registry_), 1U);
  EXPECT_EQ(registry_->iface.get_device(registry_, 1), nullptr);
  EXPECT_STREQ(registry_->iface.get_name(registry_), "RKNN");
  abi::DeviceProps props;
  device_->iface.get_props(device_, &props);
  EXPECT_STREQ(props.name, "RKNN");
  EXPECT_EQ(props.type, abi::kDeviceGpu);
  EXPECT_GT(props.memory_total, props.memory_free);
  EXPECT_FALSE(props.caps.async || props.caps.events);
  EXPECT_TRUE(props.caps.host_buffer && props.caps.buffer_from_host_ptr);
}

TEST_F(Plugged, HandsOutTheFunctionOfThreadsAndNoOther) {
  EXPECT_EQ(registry_->iface.get_proc_address(registry_, "ggml_backend_set_n_threads"),
            reinterpret_cast<void*>(&ggml_backend_rknn_set_n_threads));
  EXPECT_EQ(registry_->iface.get_proc_address(registry_, "ggml_backend_split_buffer_type"),
            nullptr);
  EXPECT_TRUE(ggml_backend_is_rknn(backend_));
  EXPECT_FALSE(ggml_backend_is_rknn(nullptr));
  abi::Guid other{};
  abi::Backend stranger{&other, {}, nullptr, nullptr};
  EXPECT_FALSE(ggml_backend_is_rknn(&stranger));
}

TEST_F(Plugged, TakesProductsAndLooksAtMemoryOnly) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
  abi::Tensor node = fake_product(weights, activations);
  EXPECT_TRUE(supported(node));
  node.op = 2;  // VIEW
  EXPECT_TRUE(supported(node));
  node.op = kFakeAdd;
  EXPECT_FALSE(supported(node));
  node = fake_product(weights, activations);
  node.op_params[0] = abi::kPrecisionF32;
  EXPECT_FALSE(supported(node)) << "F32 was asked for";
  node = fake_product(weights, activations);
  node.op_params[3] = abi::kPrecisionF16;
  EXPECT_TRUE(supported(node));
  weights = fake_tensor(kFakeBlocks, kColumns, kRows);
  node = fake_product(weights, activations);
  EXPECT_TRUE(supported(node));
  node.op_params[3] = abi::kPrecisionF16;
  EXPECT_FALSE(supported(node)) << "activations are not to become int8";
  weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  node = fake_product(weights, activations);
  node.op_params[1] = abi::kHintHadamard;
  EXPECT_FALSE(supported(node)) << "the host has a quick way";
  weights.type = abi::kTypeF32;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "F32 only by option";
  weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  weights.nb[0] = 128;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "a transposed matrix";
  weights = fake_tensor(abi::kTypeF16, 0, kRows);
  activations = fake_tensor(abi::kTypeF32, 0, kTokens);
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "sums of nothing";
}

TEST_F(Plugged, TakesOnlyWeightsInBuffersOfItsOwnOnceTheyArePlaced) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 512);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  EXPECT_TRUE(supported(fake_product(weights, activations)));
  activations.ne[1] = 1;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "one row stays on the CPU";
  activations.ne[1] = 512;
  weights.flags = abi::kFlagParam;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "a graph may train it";
  weights.flags = 0;
  ours->usage = abi::kUsageAny;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "no weight";
  abi::Buffer other{{}, fake_foreign_type(), nullptr, 4096, abi::kUsageWeights};
  weights.buffer = &other;
  EXPECT_FALSE(supported(fake_product(weights, activations))) << "in a buffer of another";
  abi::Buffer dummy{{}, type_, nullptr, 0, abi::kUsageAny};
  weights.buffer = &dummy;
  EXPECT_TRUE(supported(fake_product(weights, activations))) << "the question where to place it";
}

TEST_F(Plugged, AResultOfAnotherNodeIsNotAWeightThoughItHasNoBufferYet) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 512);
  weights.op = kFakeAdd;
  EXPECT_FALSE(supported(fake_product(weights, activations)));
  abi::Tensor view = fake_tensor(abi::kTypeF16, kColumns, kRows);
  view.view_src = &weights;
  EXPECT_FALSE(supported(fake_product(view, activations)));
  weights.op = 0;
  EXPECT_TRUE(supported(fake_product(view, activations)));
}

TEST_F(Plugged, WeightsArriveBySetTensor) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  for (unsigned seed = 1; seed < 4; ++seed) {
    const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, seed);
    const std::size_t half = weights.nb[3] / 2;
    ours->iface.set_tensor(ours.get(), &weights, b.view.data, 0, half);
    ours->iface.set_tensor(ours.get(), &weights, static_cast<const char*>(b.view.data) + half, half,
                           half);
    EXPECT_LT(computed(weights, b.view), 1e-6) << seed;
    EXPECT_LT(computed(weights, b.view), 1e-6) << "packed by now";
  }
}

TEST_F(Plugged, WeightsArriveWithoutACallWhereTheyLie) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 5);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  EXPECT_LT(computed(weights, b.view), 1e-6);
}

TEST_F(Plugged, WeightsLieInMemoryThatTheHostMapped) {
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 6);
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const OwnedBuffer mapped(device_->iface.buffer_from_host_ptr(
      device_, const_cast<void*>(b.view.data), weights.nb[3], weights.nb[3]));
  mapped->usage = abi::kUsageWeights;
  place(weights, mapped);
  EXPECT_LT(computed(weights, b.view), 1e-6);
  EXPECT_LT(computed(weights, b.view), 1e-6);
}

TEST_F(Plugged, CopiesOfTensorsHaveTheBytesFromTheFirstToTheLast) {
  abi::Tensor from = fake_tensor(abi::kTypeF16, 4, 2);
  const auto ours = buffer(4 * from.nb[3], abi::kUsageAny);
  const auto foreign = buffer(4 * from.nb[3], abi::kUsageAny);
  const std::size_t whole = 4 * from.nb[3];
  const auto copied = [&](const abi::Tensor& shape) {
    abi::Tensor source = shape, target = shape;
    place(source, foreign);
    place(target, ours);
    std::memset(source.data, 1, whole);
    std::memset(target.data, 0, whole);
    EXPECT_TRUE(ours->iface.cpy_tensor(ours.get(), &source, &target));
    const auto* bytes = static_cast<const char*>(target.data);
    return std::count(bytes, bytes + whole, 1);
  };
  EXPECT_EQ(copied(from), 16);
  from.nb[1] = 12;  // Rows that lie apart.
  EXPECT_EQ(copied(from), 20);
  std::swap(from.nb[0], from.nb[1]);  // A transposed view.
  from.nb[1] = 2;
  EXPECT_EQ(copied(from), 2 + 3 * 12 + 2);
  from.ne[1] = 0;
  EXPECT_EQ(copied(from), 0);
}

TEST_F(Plugged, WeightsArriveInPiecesAndByMemsetAndClear) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3] + 4096, abi::kUsageWeights);
  place(weights, ours, 4096);
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 7);
  for (std::size_t at = 0; at < weights.nb[3]; at += weights.nb[1])
    ours->iface.set_tensor(ours.get(), &weights, static_cast<const char*>(b.view.data) + at, at,
                           weights.nb[1]);
  EXPECT_LT(computed(weights, b.view), 1e-6);
  auto ones = random_matrix(kRows, kColumns, RowForm::kHalves, 7);
  std::memset(ones.halves.data(), 0x30, weights.nb[3]);
  ours->iface.memset_tensor(ours.get(), &weights, 0x30, 0, weights.nb[3]);
  EXPECT_LT(computed(weights, ones.view), 1e-6);
  std::memset(ones.halves.data(), 0x20, weights.nb[3]);
  ours->iface.clear(ours.get(), 0x20);
  EXPECT_LT(computed(weights, ones.view), 1e-6);
}

TEST_F(Plugged, WeightsThatAProductWroteAreMadeReadyAnew) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(2 * weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 7);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  EXPECT_LT(computed(weights, b.view), 1e-6);
  abi::Tensor zeros = weights;
  zeros.data = static_cast<char*>(weights.data) + weights.nb[3];
  const auto a = random_matrix(kTokens, kColumns, RowForm::kFloats, 5);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
  activations.data = const_cast<void*>(a.view.data);
  abi::Tensor node = fake_product(zeros, activations);
  place(node, ours);
  abi::Graph graph{{&node}};
  EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusSuccess);
  std::fill_n(b.halves.begin(), node.nb[3] / 2, std::uint16_t{0});
  EXPECT_LT(computed(weights, b.view), 1e-6);
}

TEST_F(Plugged, WeightsThatTheCpuWroteBetweenGraphsAreMadeReadyAnew) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  for (unsigned seed = 1; seed < 4; ++seed) {
    const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, seed);
    std::memcpy(weights.data, b.view.data, weights.nb[3]);
    EXPECT_LT(computed(weights, b.view), 1e-6) << seed;
  }
}

TEST_F(Plugged, ABufferThatIsLargerThanMemoryCanBeIsRefused) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 10, SIZE_MAX - 62})
    EXPECT_EQ(fake_alloc(type_, size), nullptr) << size;
}

TEST_F(Plugged, AnActivationAtTheAddressOfAnotherIsNotMistakenForIt) {
  abi::Tensor tensor = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(tensor.nb[3], abi::kUsageAny);
  place(tensor, ours);
  for (unsigned seed = 1; seed < 4; ++seed) {
    const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, seed);
    std::memcpy(tensor.data, b.view.data, tensor.nb[3]);
    EXPECT_LT(computed(tensor, b.view), 1e-6);
  }
}

TEST_F(Plugged, QuantizedWeightsBecomeInt8ByRow) {
  abi::Tensor weights = fake_tensor(kFakeBlocks, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  auto* at = static_cast<char*>(weights.data);
  for (std::size_t block = 0; block < weights.nb[3] / 36; ++block, at += 36) {
    const float scale = 0.01F * static_cast<float>(1 + block % 5);
    std::memcpy(at, &scale, 4);
    for (int j = 0; j < 32; ++j)
      at[4 + j] = static_cast<char>((static_cast<int>(block) * 37 + j * 101) % 255 - 127);
  }
  MmMatrix meant;
  meant.data = weights.data;
  meant.rows = kRows;
  meant.columns = kColumns;
  meant.row_bytes = weights.nb[1];
  meant.form = RowForm::kOther;
  meant.reader = plugin().host->call.get_type_traits(kFakeBlocks)->to_float;
  EXPECT_LT(computed(weights, meant), 5e-4);
}

TEST_F(Plugged, AQuantizedVocabularyKeepsItsBits) {
  for (const char* name : {"output.weight", "token_embd.weight", "blk.0.ffn_up.weight"}) {
    SCOPED_TRACE(name);
    abi::Tensor weights = fake_tensor(kFakeBlocks, kColumns, kRows);
    std::strcpy(weights.name, name);
    const bool vocabulary = std::string_view(name).find("ffn") == std::string_view::npos;
    abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
    abi::Tensor node = fake_product(weights, activations);
    node.op_params[3] = abi::kPrecisionF16;
    EXPECT_EQ(supported(node), vocabulary) << "its activations stay float16";

    const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
    place(weights, ours);
    EXPECT_TRUE(supported(fake_product(weights, activations)));
    activations = fake_tensor(abi::kTypeF32, kColumns, 1);
    EXPECT_FALSE(supported(fake_product(weights, activations))) << "a single row";
  }
}

TEST_F(Plugged, AnOperatorThatItDoesNotHaveFailsTheGraphAndIsNamed) {
  abi::Tensor node = fake_tensor(abi::kTypeF32, 4, 4);
  node.op = kFakeAdd;
  node.flags = abi::kFlagCompute;
  std::memcpy(node.name, "sum", 4);
  abi::Graph graph{{&node}};
  EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusFailed);
  EXPECT_THAT(fake_log().back(), HasSubstr("cannot compute ADD of node sum"));
  node.flags = 0;
  EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusSuccess);
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Its parent's buffers are its own as well: both would write them.
TEST_F(Plugged, AForkedProcessLeavesProductsToTheCpu) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 512);
  abi::Tensor node = fake_product(weights, activations);
  abi::Graph empty{{}};
  ASSERT_EQ(backend_->iface.graph_compute(backend_, &empty), abi::kStatusSuccess);
  ASSERT_TRUE(supported(node));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool no = !supported(node);
    const auto before = fake_log().size();
    const bool told_once = !supported(node) && before > 0 && fake_log().size() == before &&
                           fake_log().back().find("exec") != std::string::npos;
    const bool fails = backend_->iface.graph_compute(backend_, &empty) == abi::kStatusFailed;
    ::_exit((no ? 0 : 1) + (told_once ? 0 : 2) + (fails ? 0 : 4));
  }
  EXPECT_EQ(status_of(child), 0);
}

/// A thread that is not in the child holds the engine forever there.
TEST_F(Plugged, AProcessForkedDuringAProductFreesAndFillsBuffers) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns - 2, kRows);
  auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  const auto b = random_matrix(kRows, kColumns - 2, RowForm::kHalves, 9);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  EXPECT_LT(computed(weights, b.view), 1e-6);
  const MmEngine::Products running(*plugin().engine, b.view, MmType::kF16, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const auto another = buffer(weights.nb[3], abi::kUsageWeights);
    another->iface.clear(another.get(), 1);
    ours->iface.clear(ours.get(), 0);
    ours.reset();
    ::_exit(0);
  }
  EXPECT_EQ(status_of(child), 0);
}

/// Run by ggml_tests_short, with the fault on every result of the library's device.
TEST_F(Plugged, AShortResultIsAFailureOfTheLibraryAndComputedOnTheCpu) {
  if (std::getenv("CORELANE_FAULTS") == nullptr)
    GTEST_SKIP() << "CORELANE_FAULTS is not set; ggml_tests_short sets it";
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 5);
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const OwnedBuffer placed = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, placed);
  placed->iface.set_tensor(placed.get(), &weights, b.view.data, 0, weights.nb[3]);
  const auto before = plugin().engine->figures().failed;
  EXPECT_LT(computed(weights, b.view), 1e-6);
  EXPECT_GT(plugin().engine->figures().failed, before);
}

TEST_F(Plugged, BuffersGiveTheirMemoryBack) {
  const auto before = plugin().engine->allocated();
  for (int i = 0; i < 20; ++i) {
    abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns - 2, kRows);
    const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
    place(weights, ours);
    const auto b = random_matrix(kRows, kColumns - 2, RowForm::kHalves, 9);
    std::memcpy(weights.data, b.view.data, weights.nb[3]);
    EXPECT_LT(computed(weights, b.view), 1e-6);
  }
  EXPECT_LT(plugin().engine->allocated(), before + 65536) << "memory for A, B and C that is shared";
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator list("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(list), end(list)));
}

/// A model's life in a host: several weights in one buffer, products with each, both types.
TEST_F(Plugged, TenModelsComeAndGoAndLeaveNothing) {
  std::vector<std::size_t> descriptors;
  std::vector<std::size_t> objects;
  std::vector<std::uint64_t> bytes;
  std::vector<std::size_t> contexts;
  for (int model = 0; model < 10; ++model) {
    constexpr std::size_t kWeights = 6;
    std::vector<abi::Tensor> weights;
    for (std::size_t i = 0; i < kWeights; ++i)
      weights.push_back(fake_tensor(i % 2 == 0 ? abi::kTypeF16 : kFakeBlocks, kColumns, kRows));
    const auto ours = buffer(kWeights * weights[0].nb[3] + 4096, abi::kUsageWeights);
    ours->iface.clear(ours.get(), 0);
    for (std::size_t i = 0; i < kWeights; ++i) {
      place(weights[i], ours, i * weights[0].nb[3]);
      std::vector<float> zeros(static_cast<std::size_t>(kRows * kTokens), 1.0F);
      const auto a = random_matrix(kTokens, kColumns, RowForm::kFloats, 5);
      abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, kTokens);
      activations.data = const_cast<void*>(a.view.data);
      abi::Tensor node = fake_product(weights[i], activations);
      node.data = zeros.data();
      abi::Graph graph{{&node}};
      EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusSuccess);
      EXPECT_THAT(zeros, Each(0.0F));
    }
    descriptors.push_back(open_descriptors());
    objects.push_back(plugin().engine->device().objects());
    bytes.push_back(plugin().engine->allocated());
    contexts.push_back(plugin().engine->contexts());
  }
  EXPECT_THAT(descriptors, Each(descriptors[0]));
  EXPECT_THAT(objects, Each(objects[0]));
  EXPECT_THAT(bytes, Each(bytes[0]));
  EXPECT_THAT(contexts, Each(contexts[0]));
}

/// The process ends while another of its threads has products on the NPU.
TEST_F(Plugged, AHostMayExitDuringARun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atomic<int> done{0};
        std::thread products([&] {
          abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
          const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 9);
          weights.data = const_cast<void*>(b.view.data);
          for (;; ++done) (void)computed(weights, b.view);
        });
        while (done < 3) std::this_thread::yield();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Plugged, AWeightThatFoundNoRoomStaysOnTheCpu) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns - 2, kRows);
  abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns - 2, 512);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  const auto b = random_matrix(kRows, kColumns - 2, RowForm::kHalves, 9);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  // Takes what is left of the budget, all but the memory that products share already.
  (void)computed(weights, b.view);
  ours->iface.clear(ours.get(), 0);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  std::vector<std::shared_ptr<MmMemory>> taken;
  while (auto memory = plugin().engine->device().allocate(4096)) taken.push_back(std::move(memory));
  EXPECT_TRUE(supported(fake_product(weights, activations))) << "not known yet";
  EXPECT_LT(computed(weights, b.view), 1e-6) << "the first time all the same";
  EXPECT_FALSE(supported(fake_product(weights, activations)));
  EXPECT_THAT(fake_log().back(), HasSubstr("they stay on the CPU"));
  taken.clear();
  ours->iface.clear(ours.get(), 0);
  EXPECT_TRUE(supported(fake_product(weights, activations))) << "written anew";
}

/// In a process whose products have no memory yet.
TEST_F(Plugged, ProductsWithoutMemoryForTheirRowsStayOnTheCpu) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
        abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 512);
        const abi::Tensor node = fake_product(weights, activations);
        const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
        place(weights, ours);
        const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 9);
        std::memcpy(weights.data, b.view.data, weights.nb[3]);
        std::vector<std::shared_ptr<MmMemory>> taken;
        while (auto memory = plugin().engine->device().allocate(4096, MmUse::kShared))
          taken.push_back(std::move(memory));
        const bool yes_at_first = supported(node);
        const bool right = computed(weights, b.view) < 1e-6;
        const bool no_then = !supported(node);
        taken.clear();
        const bool yes_again = supported(node);
        ::_exit((yes_at_first ? 0 : 1) + (right ? 0 : 2) + (no_then ? 0 : 4) + (yes_again ? 0 : 8));
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Plugged, MatricesThatLieAsOneAreOneProduct) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  const auto b = random_matrix(kRows, kColumns, RowForm::kHalves, 7);
  std::memcpy(weights.data, b.view.data, weights.nb[3]);
  const auto a = random_matrix(2 * 3 * 5 + 8, kColumns, RowForm::kFloats, 5);
  for (const bool apart : {false, true}) {
    abi::Tensor activations = fake_tensor(abi::kTypeF32, kColumns, 2);
    activations.data = const_cast<void*>(a.view.data);
    activations.ne[2] = 3;
    activations.ne[3] = 5;
    activations.nb[3] = activations.nb[2] * 3 + (apart ? activations.nb[1] : 0);
    abi::Tensor node = fake_product(weights, activations);
    node.ne[2] = 3;
    node.ne[3] = 5;
    node.nb[3] = node.nb[2] * 3;
    std::vector<float> c(std::size_t{2} * 3 * 5 * kRows);
    node.data = c.data();
    EXPECT_EQ(supported(node), !apart) << "rows are counted over all matrices";
    const auto before = plugin().engine->figures().products;
    abi::Graph graph{{&node}};
    EXPECT_EQ(backend_->iface.graph_compute(backend_, &graph), abi::kStatusSuccess);
    EXPECT_EQ(plugin().engine->figures().products, before + (apart ? 15 : 1));
    for (std::size_t i = 0; i < 5; ++i) {
      MmMatrix part = a.view;
      part.rows = 6;
      part.data = a.floats.data() + i * activations.nb[3] / sizeof(float);
      const auto begin = c.begin() + static_cast<std::ptrdiff_t>(i * 6 * kRows);
      EXPECT_LT(error_of(part, b.view, {begin, begin + 6 * kRows}, kRows), 1e-6) << i;
    }
  }
}

TEST_F(Plugged, TheRegistryHasThePluginApiOfItsHost) {
  EXPECT_EQ(registry_->api_version, fake_version() == "0.27.0" ? 3 : 2);
  EXPECT_EQ(fake_alignment(type_), 64U);
  EXPECT_TRUE(device_->iface.supports_buft(device_, type_));
  EXPECT_FALSE(device_->iface.supports_buft(device_, fake_foreign_type()));
}

/// In a process of its own, which starts the plugin itself.
class PluginEntry : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static abi::Registry* started() {
    setenv("GGML_RKNN_LIBRARY", RKNNRT_FILE, 1);
    return ggml_backend_init();
  }
};

TEST_F(PluginEntry, ThreadsThatAreSetBeforeTheStartAreNoHarm) {
  EXPECT_EXIT(
      {
        ggml_backend_rknn_set_n_threads(nullptr, 2);
        std::exit(started() != nullptr ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(PluginEntry, StatisticsAreWrittenByTheProcessThatStarted) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak checker runs in the child, which leaves the parent's objects alone";
#endif
  const std::string file = testing::TempDir() + "ggml_stats_once.json";
  std::filesystem::remove(file);
  EXPECT_EXIT(
      {
        setenv("GGML_RKNN_STATS", file.c_str(), 1);
        const bool ready = started() != nullptr;
        const pid_t child = ::fork();
        if (child == 0) std::exit(0);
        std::exit(ready && status_of(child) == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  std::ifstream written(file);
  const std::string all((std::istreambuf_iterator<char>(written)), {});
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1) << all;
}

TEST_F(PluginEntry, AFileThatStatisticsCannotBeWrittenToIsNamedAtTheStart) {
  EXPECT_EXIT(
      {
        setenv("GGML_RKNN_STATS", "/nonexistent/folder/x", 1);
        const bool ready = started() != nullptr;
        for (const std::string& line : fake_log()) std::fputs(line.c_str(), stderr);
        std::exit(ready ? 0 : 1);
      },
      testing::ExitedWithCode(0), "GGML_RKNN_STATS=/nonexistent/folder/x cannot be written");
}

TEST_F(PluginEntry, APipeForStatisticsIsNamedAtTheStart) {
  const std::string pipe = testing::TempDir() + "ggml_stats.pipe";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);  // Opening it would wait for a reader.
  EXPECT_EXIT(
      {
        setenv("GGML_RKNN_STATS", pipe.c_str(), 1);
        const bool ready = started() != nullptr;
        for (const std::string& line : fake_log()) std::fputs(line.c_str(), stderr);
        std::exit(ready ? 0 : 1);
      },
      testing::ExitedWithCode(0), "ggml_stats.pipe cannot be written .it is neither");
}

TEST_F(PluginEntry, AFileForStatisticsThatTheStartMadeDoesNotStayEmpty) {
  const std::string file = testing::TempDir() + "ggml_stats_none.json";
  std::filesystem::remove(file);
  EXPECT_EXIT(
      {
        setenv("GGML_RKNN_STATS", file.c_str(), 1);
        setenv("GGML_RKNN_LIBRARY", "/nowhere/librknnrt.so", 1);
        std::exit(ggml_backend_init() == nullptr ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

class FewRowsOf : public testing::Test {
 protected:
  /// Milliseconds for each million elements; the first run is a hundred times slower.
  static FewRows::Timer speed(double time) {
    return [time, first = true](const std::vector<abi::Tensor>& weights) mutable {
      double elements = 0;
      for (const abi::Tensor& weight : weights)
        elements += static_cast<double>(weight.ne[0] * weight.ne[1]);
      return elements * 1e-9 * time * (std::exchange(first, false) ? 100 : 1);
    };
  }
  FewRows rows(FewRows::Timer npu, FewRows::Timer cpu) {
    return FewRows(std::move(npu), std::move(cpu),
                   [this](const std::string& said) { told_.push_back(said); });
  }
  /// The bytes are not read.
  abi::Tensor weight(std::int64_t side) {
    abi::Tensor made = fake_tensor(kFakeBlocks, side, side);
    made.data = &bytes_[next_++];
    return made;
  }
  char bytes_[64] = {};
  int next_ = 0;
  std::vector<std::string> told_;
};

TEST_F(FewRowsOf, EnoughWeightsAreMeasuredOnceAndGoToAnNpuThatIsQuicker) {
  FewRows few = rows(speed(1), speed(2));
  EXPECT_FALSE(few.go_to_npu(weight(2048))) << "too few to tell";
  EXPECT_FALSE(few.go_to_npu(weight(2048)));
  EXPECT_TRUE(few.go_to_npu(weight(4096)));
  EXPECT_TRUE(few.go_to_npu(weight(64)));
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0], HasSubstr("one row with 3 weights: NPU 25.17 ms, CPU 50.33 ms"));
  EXPECT_THAT(told_[0], HasSubstr("go to the NPU; GGML_RKNN_MIN_ROWS overrides this"));
}

TEST_F(FewRowsOf, TheyStayOnACpuThatIsQuicker) {
  FewRows few = rows(speed(2), speed(1));
  EXPECT_FALSE(few.go_to_npu(weight(4096)));
  EXPECT_THAT(told_[0], HasSubstr("stay on the CPU"));
}

TEST_F(FewRowsOf, ANearTieStaysOnTheCpu) {
  EXPECT_FALSE(rows(speed(0.9), speed(1)).go_to_npu(weight(4096)));
  EXPECT_TRUE(rows(speed(0.8), speed(1)).go_to_npu(weight(4096)));
}

TEST_F(FewRowsOf, ASmallModelIsMeasuredWhenItsFirstWeightComesAgain) {
  FewRows few = rows(speed(1), speed(2));
  const abi::Tensor first = weight(64);
  const abi::Tensor second = weight(64);
  for (int asked = 0; asked < 3; ++asked) EXPECT_FALSE(few.go_to_npu(first));
  for (int asked = 0; asked < 3; ++asked) EXPECT_FALSE(few.go_to_npu(second));
  EXPECT_TRUE(few.go_to_npu(first));
}

TEST_F(FewRowsOf, ManySmallWeightsAreMeasuredBeforeTheyAreTooManyForOneGraph) {
  std::vector<char> bytes(200);
  std::size_t most = 0;
  const FewRows::Timer counting = [&most](const std::vector<abi::Tensor>& weights) {
    most = weights.size();
    return 1.0;
  };
  FewRows few = rows(counting, counting);
  for (char& at : bytes) {
    abi::Tensor small = fake_tensor(kFakeBlocks, 32, 32);
    small.data = &at;
    (void)few.go_to_npu(small);
  }
  EXPECT_EQ(most, 128U);
}

TEST_F(FewRowsOf, WeightsThatGoBeforeTheyAreMeasuredAreNotReadAnyMore) {
  const FewRows::Timer only_new = [](const std::vector<abi::Tensor>& weights) {
    EXPECT_EQ(weights.size(), 1U);
    return 1.0;
  };
  FewRows few = rows(only_new, only_new);
  EXPECT_FALSE(few.go_to_npu(weight(2048)));
  few.forget_weights();
  EXPECT_FALSE(few.go_to_npu(weight(4096)));
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(FewRowsOf, NoneGoWhereOneOfTheTwoCannotBeMeasured) {
  const auto cannot = [](const std::vector<abi::Tensor>&) { return -1.0; };
  EXPECT_FALSE(rows(cannot, speed(1)).go_to_npu(weight(4096)));
  EXPECT_FALSE(rows(speed(1), cannot).go_to_npu(weight(4096)));
}

TEST(PluginTimers, AHostThatLacksAFunctionIsNotMeasured) {
  Host host{};
  host.library = dlopen(nullptr, RTLD_NOW);
  EXPECT_LT(time_on_cpu(host, {fake_tensor(abi::kTypeF16, 64, 64)}, 1), 0);
}

TEST_F(Plugged, TheNpuIsTimedOnWeightsWhereTheyLie) {
  abi::Tensor weights = fake_tensor(abi::kTypeF16, kColumns, kRows);
  const auto ours = buffer(weights.nb[3], abi::kUsageWeights);
  place(weights, ours);
  ours->iface.clear(ours.get(), 0);
  EXPECT_GT(time_on_npu({weights}), 0);
}

TEST(PluginVersion, LayoutsAreKnownByTheHostsVersion) {
  std::string why;
  for (const char* version : {"0.10.0", "0.13.1", "0.20.2", "0.25.3"}) {
    EXPECT_TRUE(look_up_version(version, why).known) << version;
    EXPECT_EQ(look_up_version(version, why).api_version, 2) << version;
  }
  EXPECT_TRUE(look_up_version("0.27.0", why).known);
  EXPECT_EQ(look_up_version("0.27.0", why).api_version, 3);
}

TEST(PluginVersion, AnUnknownOneGetsTheNearestLayoutOnlyByOption) {
  std::string why;
  EXPECT_FALSE(look_up_version("0.28.0", why).known);
  EXPECT_THAT(why, HasSubstr("this host is ggml 0.28.0"));
  EXPECT_THAT(why, HasSubstr("tested: 0.13.1, 0.20.2, 0.25.3, 0.27.0"));
  EXPECT_THAT(why, HasSubstr("GGML_RKNN_ANY_VERSION=1"));
  EXPECT_EQ(look_up_version("0.28.0", why).api_version, 3);
  EXPECT_EQ(look_up_version("1.0", why).api_version, 3);
  EXPECT_EQ(look_up_version("0.9.11", why).api_version, 2);
  for (const char* version : {"0.9.11", "0.26.0", "1.0", "", "new"})
    EXPECT_FALSE(look_up_version(version, why).known) << version;
  EXPECT_TRUE(ggml_backend_rknn_takes_host("0.25.3"));
  EXPECT_FALSE(ggml_backend_rknn_takes_host("0.26.0"));
  EXPECT_FALSE(ggml_backend_rknn_takes_host(nullptr));
}

TEST(PluginOptions, ValuesThatMeanNothingAreNamedAndLeftAtTheDefault) {
  setenv("GGML_RKNN_CORES", "seven", 1);
  setenv("GGML_RKNN_TYPE", "int3", 1);
  setenv("GGML_RKNN_DEVICE", "tpu", 1);
  setenv("GGML_RKNN_CONTEXTS", "2", 1);
  setenv("GGML_RKNN_ANY_VERSION", "false", 1);
  std::vector<std::string> complaints;
  const PluginOptions options = read_options(complaints);
  for (const char* name : {"GGML_RKNN_CORES", "GGML_RKNN_TYPE", "GGML_RKNN_DEVICE",
                           "GGML_RKNN_CONTEXTS", "GGML_RKNN_ANY_VERSION"})
    unsetenv(name);
  EXPECT_FALSE(options.any_version);
  EXPECT_EQ(options.engine.cores, 3);
  EXPECT_EQ(options.engine.max_contexts, 1024U);
  EXPECT_EQ(complaints.size(), 5U);
  EXPECT_THAT(complaints, Each(HasSubstr("is used")));
  EXPECT_THAT(complaints[0], HasSubstr("there are auto, f16, int8, int4 and int4x4"));
}

TEST(PluginOptions, ObjectsAreHalfOfWhatTheProcessMayOpen) {
  const char* const given = std::getenv("GGML_RKNN_OBJECTS");
  const std::string kept = given != nullptr ? given : "";
  unsetenv("GGML_RKNN_OBJECTS");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const auto& [limit, objects] : {std::pair{100U, 50U}, {64U, 32U}, {10U, 8U}}) {
    const rlimit low{limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    std::vector<std::string> complaints;
    EXPECT_EQ(read_options(complaints).engine.budget.objects, objects);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  if (!kept.empty()) setenv("GGML_RKNN_OBJECTS", kept.c_str(), 1);
}

TEST(PluginOptions, TypesAreThoseOfTheTable) {
  std::vector<std::string> complaints;
  const char* const before = std::getenv("GGML_RKNN_TYPE");
  const std::string kept = before != nullptr ? before : "";
  for (const auto& [name, type] : {std::pair{"auto", TypePolicy::kAuto},
                                   {"f16", TypePolicy::kF16},
                                   {"int8", TypePolicy::kInt8},
                                   {"int4", TypePolicy::kInt4},
                                   {"int4x4", TypePolicy::kInt4x4}}) {
    setenv("GGML_RKNN_TYPE", name, 1);
    EXPECT_EQ(read_options(complaints).type, type) << name;
  }
  setenv("GGML_RKNN_TYPE", kept.c_str(), 1);
  EXPECT_THAT(complaints, IsEmpty());
}

}  // namespace
}  // namespace corelane::ggml
