/// The rknn_create_mem* functions: descriptors, sizes, flags, syncs, and that nothing leaks.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "adapters/rknn/api/rknn_test_support.h"

namespace corelane::rknn::test {
namespace {

using ::testing::HasSubstr;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST(RknnMemory, AStructTellsOfItsBlock) {
  const Model model(doubling({1, 4}));
  const Mem made(model.ctx, 100);
  EXPECT_NE(made.mem->virt_addr, nullptr);
  EXPECT_EQ(made.mem->size, 100U);
  EXPECT_EQ(made.mem->offset, 0);
  EXPECT_EQ(made.mem->flags, static_cast<std::uint32_t>(RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE));
  EXPECT_GE(made.mem->fd, 0);
}

TEST(RknnMemory, ItsDescriptorIsMappedByOthers) {
  const Model model(doubling({1, 4})), other(doubling({1, 4}));
  const Mem made(model.ctx, 8192);
  made.fill(ramp(4));
  void* mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, made.mem->fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(static_cast<float*>(mapped)[0], -3);
  const Mem same(other.ctx, rknn_create_mem_from_fd(other.ctx, made.mem->fd, nullptr, 8192, 0));
  EXPECT_EQ(same.values<float>(4), ramp(4));
  same.as<float>()[0] = 5;
  EXPECT_EQ(static_cast<float*>(mapped)[0], 5);
  EXPECT_EQ(*made.as<float>(), 5);
  munmap(mapped, 8192);
}

TEST(RknnMemory, OneByDescriptorOutlivesTheOneThatMadeIt) {
  const Model model(doubling({1, 4}));
  Mem made(model.ctx, 4096);
  made.fill(ramp(4));
  const Mem slice(model.ctx, rknn_create_mem_from_fd(model.ctx, made.mem->fd, nullptr, 16, 0));
  made.destroy();
  EXPECT_EQ(slice.values<float>(4), ramp(4));
}

TEST(RknnMemory, ABlockAsLargeAsItsFileWithAnOffsetIsWhatIsBehindIt) {
  const Model model(doubling({1, 4}));
  const Mem block(model.ctx, 4096);
  // Clients pass the block's size with the tensor's offset.
  const Mem slice(model.ctx, rknn_create_mem_from_fd(model.ctx, block.mem->fd, block.mem->virt_addr,
                                                     4096, 4080));
  rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
  attr.type = RKNN_TENSOR_FLOAT32;
  EXPECT_EQ(rknn_set_io_mem(model.ctx, slice.mem, &attr), RKNN_SUCC);  // 16 bytes: they fit.
  const Mem late(model.ctx, rknn_create_mem_from_fd(model.ctx, block.mem->fd, block.mem->virt_addr,
                                                    4096, 4084));
  EXPECT_EQ(rknn_set_io_mem(model.ctx, late.mem, &attr), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMemory, ABlockThatTheLibraryMapsBeginsAtItsAddress) {
  const Model model(doubling({1, 4}));
  const Mem block(model.ctx, 3 * 4096);
  block.as<float>()[0] = 7;
  const auto* bytes = static_cast<const char*>(block.mem->virt_addr);
  for (const std::int32_t offset : {16, 4096, 2 * 4096 + 16}) {
    const Mem slice(model.ctx,
                    rknn_create_mem_from_fd(model.ctx, block.mem->fd, nullptr, 16, offset));
    EXPECT_EQ(*static_cast<const float*>(slice.mem->virt_addr), 7) << offset;
    slice.fill(ramp(4));
    EXPECT_EQ(std::memcmp(bytes + offset, slice.as<float>(), 16), 0) << offset;
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, slice.mem, &attr), RKNN_SUCC);
    EXPECT_EQ(rknn_mem_sync(model.ctx, slice.mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(ramp(4), 2)) << offset;
  }
}

TEST(RknnMemory, AContextThatIsGoneIsToldByItsCode) {
  Model model(doubling({1, 4}));
  const rknn_context gone = model.ctx;
  model.destroy();
  const std::string line = lines_of([&] { EXPECT_EQ(rknn_create_mem(gone, 16), nullptr); });
  EXPECT_THAT(line, ::testing::HasSubstr("was destroyed"));
  EXPECT_THAT(line, ::testing::HasSubstr("(code -7)"));
}

TEST(RknnMemory, NoDescriptorsAndNoMemoryAreLeftBehind) {
  const Model model(doubling({1, 4}));
  {
    const Mem first(model.ctx, 16);  // What is made once.
  }
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 3000; ++i) {
    rknn_tensor_mem* made = nullptr;
    switch (i % 3) {
      case 0:
        made = rknn_create_mem(model.ctx, 4096);
        break;
      case 1:
        made = rknn_create_mem2(0, 4096, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
        break;
      default:
        made = rknn_create_mem2(model.ctx, 4096, RKNN_FLAG_MEMORY_NON_CACHEABLE);
    }
    ASSERT_NE(made, nullptr) << i;
    ASSERT_EQ(rknn_destroy_mem(i % 3 == 1 ? 0 : model.ctx, made), RKNN_SUCC);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(RknnMemory, ContextsLeaveNoDescriptorsBehind) {
  const auto round = [] {
    Model model(doubling({1, 4}));
    const Mem in(model.ctx, 16);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, in.mem, &attr), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
  };
  const Model keeps(doubling({1, 4}));  // The device stays open.
  round();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(RknnMemory, WithoutAContextItServesAnyOfThem) {
  rknn_tensor_mem* made = rknn_create_mem2(0, 16, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
  ASSERT_NE(made, nullptr);
  {
    const Model model(doubling({1, 4}));
    std::memcpy(made->virt_addr, ramp(4).data(), 16);
    rknn_tensor_attr attr = model.attr(RKNN_QUERY_INPUT_ATTR);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, made, &attr), RKNN_SUCC);
    ASSERT_EQ(rknn_mem_sync(0, made, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
    ASSERT_EQ(model.run(), RKNN_SUCC);
    EXPECT_EQ(model.floats(), times(ramp(4), 2));
  }
  EXPECT_EQ(rknn_destroy_mem(0, made), RKNN_SUCC);
  EXPECT_EQ(rknn_create_mem2(0, 16, 0), nullptr);  // Not without the flag.
}

TEST(RknnMemory, KnownFlagsAreAcceptedAndOthersNamed) {
  const Model model(doubling({1, 4}));
  for (const std::uint64_t flags : {0, 1, 2, 4, 5, 6}) {
    const Mem made(model.ctx, rknn_create_mem2(model.ctx, 16, flags));
    EXPECT_EQ(rknn_mem_sync(model.ctx, made.mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL), RKNN_SUCC);
  }
  const std::string lines =
      lines_of([&] { EXPECT_EQ(rknn_create_mem2(model.ctx, 16, 0x100), nullptr); });
  EXPECT_THAT(lines, HasSubstr("0x100"));
  EXPECT_EQ(rknn_create_mem2(model.ctx, std::uint64_t{1} << 32, 0), nullptr);
  EXPECT_EQ(rknn_create_mem(model.ctx, 0), nullptr);
}

TEST(RknnMemory, SyncTakesItsThreeModes) {
  const Model model(doubling({1, 4}));
  const Mem made(model.ctx, 16);
  for (const int mode : {1, 2, 3})
    EXPECT_EQ(rknn_mem_sync(model.ctx, made.mem, static_cast<rknn_mem_sync_mode>(mode)), RKNN_SUCC);
  for (const int mode : {0, 4, 7})
    EXPECT_EQ(rknn_mem_sync(model.ctx, made.mem, static_cast<rknn_mem_sync_mode>(mode)),
              RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(model.ctx, nullptr, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_mem copy = *made.mem;  // Not the pointer that was given.
  EXPECT_EQ(rknn_mem_sync(model.ctx, &copy, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_ERR_PARAM_INVALID);
}

TEST(RknnMemory, PhysicalAddressesAndMediaBlocksAreRefusedWithTheWayOut) {
  const Model model(doubling({1, 4}));
  int block = 0;
  const std::string lines = lines_of([&] {
    EXPECT_EQ(rknn_create_mem_from_phys(model.ctx, 0x1000, nullptr, 16), nullptr);
    EXPECT_EQ(rknn_create_mem_from_phys(model.ctx, 0x1000, &block, 0), nullptr);
    EXPECT_EQ(rknn_create_mem_from_mb_blk(model.ctx, &block, 0), nullptr);
  });
  EXPECT_THAT(lines, HasSubstr("0x1000"));
  EXPECT_THAT(lines, HasSubstr("rknn_create_mem_from_fd"));
}

TEST(RknnMemory, ABlockAtAPhysicalAddressIsUsedAtItsVirtualOne) {
  const Model model(doubling({1, 4}));
  std::vector<float> in = {1, 2, 3, 4}, out(4);
  const Mem from(rknn_create_mem_from_phys(model.ctx, 0x1000, in.data(), 16));
  const Mem to(rknn_create_mem_from_phys(model.ctx, 0, out.data(), 16));
  ASSERT_NE(from.mem, nullptr);
  EXPECT_EQ(from.mem->virt_addr, in.data());
  EXPECT_EQ(from.mem->flags, RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS);
  EXPECT_EQ(from.mem->fd, -1);
  for (const auto& [query, mem] :
       {std::pair{RKNN_QUERY_INPUT_ATTR, from.mem}, std::pair{RKNN_QUERY_OUTPUT_ATTR, to.mem}}) {
    rknn_tensor_attr attr = model.attr(query);
    attr.type = RKNN_TENSOR_FLOAT32;
    ASSERT_EQ(rknn_set_io_mem(model.ctx, mem, &attr), RKNN_SUCC);
  }
  ASSERT_EQ(model.run(), RKNN_SUCC);
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6, 8}));
}

TEST(RknnMemory, DescriptorsThatCannotBeMappedAreRefused) {
  const Model model(doubling({1, 4}));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(rknn_create_mem_from_fd(model.ctx, ends[0], nullptr, 16, 0), nullptr);
  close(ends[0]);
  close(ends[1]);
}

TEST(RknnMemory, ManyThreadsMakeAndDestroy) {
  const Model model(doubling({1, 4}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Mem made(model.ctx, 64);
        ASSERT_EQ(rknn_mem_sync(model.ctx, made.mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL), RKNN_SUCC);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace corelane::rknn::test
