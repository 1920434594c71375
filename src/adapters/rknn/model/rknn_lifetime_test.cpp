/// Lifetimes: contexts that go while others wait, memory that goes while it is bound,
/// weights that come from other memory, texts and descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

/// A block of the caller: a descriptor and its mapping.
struct Block {
  explicit Block(std::size_t bytes) : size(bytes), fd(memfd_create("block", 0)) {
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
    data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ~Block() {
    munmap(data, size);
    close(fd);
  }
  std::size_t size;
  int fd;
  void* data;
};

TEST(RknnLifetime, CallsThatWaitWhileTheContextGoesAreRefused) {
  for (int round = 0; round < 20; ++round) {
    Model model(doubling({1, 4}), RKNN_FLAG_FENCE_IN_OUTSIDE);
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    const int never = eventfd(0, EFD_CLOEXEC);
    std::atomic<bool> begun{false};
    std::atomic<int> got{1};
    std::thread runner([&, ctx = model.ctx] {
      rknn_run_extend extend{};
      extend.fence_fd = never;
      begun = true;
      EXPECT_LT(rknn_run(ctx, &extend), 0);  // The fence never comes; the context goes.
    });
    std::thread reader([&, ctx = model.ctx] {
      while (!begun) std::this_thread::yield();
      rknn_output output{};
      output.want_float = 1;
      got = rknn_outputs_get(ctx, 1, &output, nullptr);
      EXPECT_EQ(output.buf, nullptr);
    });
    while (!begun) std::this_thread::yield();
    model.destroy();
    runner.join();
    reader.join();
    EXPECT_LT(got, 0);
    close(never);
  }
}

TEST(RknnLifetime, MemoryOfTheCallerThatIsGoneIsNotTouched) {
  for (const bool input : {true, false}) {
    const Model model(doubling({1, 4}));
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    {
      const Block block(4096);
      rknn_tensor_mem* mem = rknn_create_mem_from_fd(model.ctx, block.fd, block.data, 4096, 0);
      rknn_tensor_attr attr = model.attr(input ? RKNN_QUERY_INPUT_ATTR : RKNN_QUERY_OUTPUT_ATTR);
      ASSERT_EQ(rknn_set_io_mem(model.ctx, mem, &attr), RKNN_SUCC);
      ASSERT_EQ(model.run(), RKNN_SUCC);
      ASSERT_EQ(rknn_destroy_mem(model.ctx, mem), RKNN_SUCC);
    }
    const std::string lines = lines_of([&] { EXPECT_EQ(model.run(), RKNN_ERR_FAIL); });
    EXPECT_THAT(lines, HasSubstr("rknn_set_io_mem with another"));
    rknn_output output{};
    if (!input) EXPECT_EQ(rknn_outputs_get(model.ctx, 1, &output, nullptr), RKNN_ERR_FAIL);
  }
}

TEST(RknnLifetime, ResultsAreThereThoughMemoryOfAnInputIsGone) {
  const Model model(doubling({1, 4}));
  {
    const Block block(4096);
    const Mem mem(rknn_create_mem_from_fd(model.ctx, block.fd, block.data, 4096, 0));
    mem.fill(halves({1, 2, 3, 4}));
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    ASSERT_EQ(rknn_set_io_mem(model.ctx, mem.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
  }
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(model.run(), RKNN_ERR_FAIL);
}

TEST(RknnLifetime, BoundOutputsHoldTheLastOfTwoFrames) {
  const Model model(doubling({1, 4}), RKNN_FLAG_ASYNC_MASK);
  const Mem out(model.ctx, 16);
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_OUTPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  ASSERT_EQ(rknn_set_io_mem(model.ctx, out.mem, &attr), RKNN_SUCC);
  for (int i = 0; i < 50; ++i) {
    const auto x = static_cast<float>(i);
    ASSERT_EQ(model.set({x, x, x, x}), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), std::vector<float>(4, 2 * x));
    EXPECT_EQ(out.values<float>(4), std::vector<float>(4, 2 * x));
  }
}

TEST(RknnLifetime, WeightsMayMoveAndARefusedMoveChangesNothing) {
  const Model model(doubling({1, 4}), RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  rknn_mem_size sizes{};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  const Block block(3 * std::size_t{sizes.total_weight_size});
  const auto slice = [&](std::uint32_t offset) {
    return rknn_create_mem_from_fd(model.ctx, block.fd, block.data, sizes.total_weight_size,
                                   static_cast<std::int32_t>(offset));
  };
  const Mem first(slice(0)), overlapping(slice(64)), second(slice(sizes.total_weight_size));
  const Mem internal(model.ctx, sizes.total_internal_size);
  ASSERT_EQ(rknn_set_weight_mem(model.ctx, first.mem), RKNN_SUCC);
  ASSERT_EQ(rknn_set_internal_mem(model.ctx, internal.mem), RKNN_SUCC);
  const auto check = [&] {
    ASSERT_EQ(model.set({1, 2, 3, 4}), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  };
  check();
  EXPECT_EQ(rknn_set_weight_mem(model.ctx, overlapping.mem), RKNN_ERR_PARAM_INVALID);
  check();
  ASSERT_EQ(rknn_set_weight_mem(model.ctx, second.mem), RKNN_SUCC);
  // The earlier inputs are there.
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(model.floats(), (std::vector<float>{2, 4, 6, 8}));
  check();
}

TEST(RknnLifetime, QueriesGoOnWhileWeightsMove) {
  const Model model(doubling({1, 4}), RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  rknn_mem_size sizes{};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes), RKNN_SUCC);
  const Mem one(model.ctx, sizes.total_weight_size), two(model.ctx, sizes.total_weight_size);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      rknn_mem_size again{};
      rknn_tensor_attr attr{};
      EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_MEM_SIZE, &again, sizeof again), RKNN_SUCC);
      EXPECT_EQ(rknn_query(model.ctx, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr), RKNN_SUCC);
      EXPECT_EQ(again.total_weight_size, sizes.total_weight_size);
    }
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(rknn_set_weight_mem(model.ctx, i % 2 == 0 ? one.mem : two.mem), RKNN_SUCC);
  over = true;
  other.join();
}

TEST(RknnLifetime, TextsOfEarlierQueriesStayReadable) {
  const Model model(doubling({1, 4}));
  rknn_perf_detail first{}, second{};
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_DETAIL, &first, sizeof first), RKNN_SUCC);
  const std::string text = first.perf_data;
  ASSERT_EQ(rknn_query(model.ctx, RKNN_QUERY_PERF_DETAIL, &second, sizeof second), RKNN_SUCC);
  EXPECT_EQ(text, first.perf_data);
}

TEST(RknnLifetime, TheCallersPlaceInADescriptorIsLeftAlone) {
  const Model model(doubling({1, 4}));
  const Block block(4096);
  ASSERT_EQ(lseek(block.fd, 7, SEEK_SET), 7);
  const Mem mem(rknn_create_mem_from_fd(model.ctx, block.fd, block.data, 4096, 0));
  EXPECT_EQ(lseek(block.fd, 0, SEEK_CUR), 7);
}

TEST(RknnLifetime, MemoryFunctionsOfAForkAreRefused) {
  const Model model(doubling({1, 4}));
  rknn_tensor_mem* mem = rknn_create_mem(model.ctx, 64);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = rknn_create_mem2(0, 64, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) == nullptr &&
                         rknn_mem_sync(0, mem, RKNN_MEMORY_SYNC_TO_DEVICE) < 0 &&
                         rknn_destroy_mem(0, mem) < 0;
    _exit(refused ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
}

TEST(RknnLifetime, AForkedChildEndsByExit) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak checker runs in the child, which leaves the parent's objects alone";
#endif
  for (const char* device : {"virtual?engine=openvino", "virtual?engine=onnxruntime"}) {
    const Environment inner("CORELANE_RKNN_INNER", device);
    const Model model(doubling({1, 4}));
    ASSERT_EQ(model.run(), RKNN_SUCC);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // It may hang; it takes milliseconds.
      std::exit(7);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << device;
    EXPECT_EQ(WEXITSTATUS(status), 7) << device;
  }
}

}  // namespace
}  // namespace corelane::rknn::test
