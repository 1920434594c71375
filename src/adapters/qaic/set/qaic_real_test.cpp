// Real networks on the virtual device through the C functions.
#include <sys/mman.h>
#include <unistd.h>

#include "adapters/qaic/testing/qaic_bench.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic::test {
namespace {

using ::testing::ElementsAre;

/// y = x * w with `n` weights of 2.
std::string weighted(std::int64_t n) {
  const std::vector<OnnxBuilder::Dim> dims{std::int64_t{1}, n};
  return OnnxBuilder()
      .input("x", dims)
      .output("y", dims)
      .constant("w", {n}, testing::kOnnxFloat, std::vector<float>(static_cast<std::size_t>(n), 2.F))
      .node("Mul", {"x", "w"}, {"y"})
      .build("weights");
}

/// "ids", "cache" -> "logits" = ids + cache, "kept" = cache.
std::string adding() {
  const std::vector<OnnxBuilder::Dim> dims{std::int64_t{1}, std::string("n")};
  return OnnxBuilder()
      .input("ids", dims)
      .input("cache", dims)
      .output("logits", dims)
      .output("kept", dims)
      .node("Add", {"ids", "cache"}, {"logits"})
      .node("Relu", {"cache"}, {"kept"})
      .build("adding");
}

TEST(QaicReal, ExecutionObjectsComputeWithMemoryAndDescriptors) {
  const Bench bench("virtual:generic:2", nullptr, false, weighted(4));
  QAicProgram* program = bench.program();
  QAicExecObj* exec = bench.exec(program);
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS) << text();
  ASSERT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  EXPECT_THAT(tensors.values[1], ElementsAre(2, 4, 6, 8));
  const int fd = memfd_create("qaic-real", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  auto* shared =
      static_cast<float*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  const auto number = static_cast<std::uint64_t>(fd);
  const QBuffer buffers[] = {{16, nullptr, number, 0, QBUFFER_TYPE_DMABUF},
                             {16, nullptr, number, 64, QBUFFER_TYPE_DMABUF}};
  ASSERT_EQ(qaicExecObjSetData(exec, 2, buffers), QS_SUCCESS) << text();
  for (int i = 0; i < 4; ++i) shared[i] = static_cast<float>(i) + 0.25F;
  ASSERT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  EXPECT_THAT(std::vector<float>(shared + 16, shared + 20), ElementsAre(0.5, 2.5, 4.5, 6.5));
  munmap(shared, 4096);
  close(fd);
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

/// They are done when the submission returns: no other thread is woken for them.
TEST(QaicReal, SmallNetworksRunInTheThreadOfTheirCaller) {
  const Bench bench("virtual:generic:2", nullptr, false, weighted(4));
  QAicProgram* program = bench.program();
  QAicExecObj* exec = bench.exec(program);
  QAicQueue* queue = bench.queue();
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS) << text();
  ASSERT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  for (int i = 0; i < 3; ++i) {
    tensors.values[0][0] += 1;
    ASSERT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_SUCCESS) << text();
    EXPECT_EQ(tensors.give(exec), QS_SUCCESS) << "it is not in flight: " << text();
    EXPECT_EQ(qaicExecObjWaitForCompletion(exec, 0), QS_SUCCESS);
    EXPECT_EQ(tensors.values[1][0], 2 * tensors.values[0][0]);
  }
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  QAicInferenceSet* set = bench.set(2);
  std::uint32_t handle = UINT32_MAX;
  ASSERT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS);
  ASSERT_EQ(tensors.give(set, handle), QS_SUCCESS) << text();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const std::uint64_t us = id == 1 ? QAIC_WAIT_FOREVER : 0;
    ASSERT_EQ(qaicInferenceSetSubmit(set, handle, id), QS_SUCCESS) << text();
    std::uint32_t done = UINT32_MAX;
    ASSERT_EQ(qaicInferenceSetGetCompletedId(set, id, us, &done), QS_SUCCESS) << text();
  }
  EXPECT_EQ(qaicInferenceSetPutCompleted(set, handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

TEST(QaicReal, ASmallNetworkThatHangsHoldsNoCaller) {
  using device::Fault;
  const std::vector<Fault> faults{Fault::kNone, Fault::kNone, Fault::kHang};
  const Bench bench("virtual:generic:2", std::make_shared<device::ListedFaults>(faults), false,
                    weighted(4));
  // One hang takes the whole limit; the other runs have it as room on a busy machine.
  QAicProgram* program = bench.program(1000, 0);
  QAicExecObj* exec = bench.exec(program);
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS) << text();
  ASSERT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  ASSERT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  EXPECT_EQ(qaicRunExecObj(exec), QS_TIMEDOUT) << text();
  EXPECT_EQ(qaicRunExecObj(exec), QS_SUCCESS) << text();
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

TEST(QaicReal, SetsTakeSpecializationsAndKeepWhatIsLeftOut) {
  const Bench bench("virtual:generic:2", nullptr, false, adding(), cache_options({4, 8}));
  QAicInferenceSet* set = bench.set(1, 2);
  for (const std::uint32_t n : {8U, 4U, 8U}) {
    Tensors t(4, n);
    t.values[1].assign(n, 10);
    std::uint32_t dims[] = {1, n};
    std::uint32_t none[] = {0};
    QBufferDimensions shapes[] = {{2, 4, dims}, {2, 4, dims}, {2, 4, dims}, {2, 4, dims}};
    std::uint32_t handle = UINT32_MAX;
    ASSERT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS);
    for (const bool left_out : {false, true}) {
      QBuffer buffers[4];
      std::copy(t.buffers.begin(), t.buffers.end(), buffers);
      if (left_out) {
        buffers[1] = {};
        shapes[1] = {1, 4, none};
        t.values[1].assign(n, 99);
      }
      ASSERT_EQ(qaicInferenceSetSetData(set, handle, 4, buffers, shapes), QS_SUCCESS) << text();
      ASSERT_EQ(qaicInferenceSetSubmit(set, handle, n), QS_SUCCESS) << text();
      std::uint32_t done = UINT32_MAX;
      ASSERT_EQ(qaicInferenceSetGetCompletedId(set, n, QAIC_WAIT_FOREVER, &done), QS_SUCCESS)
          << text();
      EXPECT_EQ(t.values[2][1], t.values[0][1] + 10) << n << ", left out: " << left_out;
    }
    EXPECT_EQ(qaicInferenceSetPutCompleted(set, handle), QS_SUCCESS);
  }
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

TEST(QaicReal, ProgramsOfOneContainerShareItsConstants) {
  constexpr std::int64_t kN = 1 << 20;
  const Bench bench("virtual:generic:4", nullptr, false, weighted(kN));
  QAicProgram* one = bench.program();
  QAicProgram* two = bench.program();
  ASSERT_EQ(qaicLoadProgram(one), QS_SUCCESS) << text();
  const std::size_t first = bench.device->memory().weights;
  ASSERT_EQ(qaicLoadProgram(two), QS_SUCCESS);
  EXPECT_LT(bench.device->memory().weights - first, std::size_t{kN} * sizeof(float));
  EXPECT_EQ(qaicReleaseProgram(one), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(two), QS_SUCCESS);
}

TEST(QaicReal, ALoadThatFailsIsToldOnceAndMayBeTriedAgain) {
  constexpr std::int64_t kN = 1 << 20;
  const Bench bench("virtual:generic:1?memory=64M", nullptr, false, weighted(kN));
  QAicProgram* program = bench.program();
  auto taken = bench.device->create_buffer((std::size_t{64} << 20) - 4096, {});
  ASSERT_TRUE(taken);
  EXPECT_EQ(qaicLoadProgram(program), QS_NOMEM) << text();
  EXPECT_EQ(bench.info(program).status, QIAC_PROGRAM_LOAD_ERROR);
  EXPECT_THAT(bench.errors(), ElementsAre(QAIC_ERROR_PROGRAM_RUNTIME_LOAD_FAILED));
  taken->reset();
  EXPECT_EQ(qaicLoadProgram(program), QS_SUCCESS) << text();
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
