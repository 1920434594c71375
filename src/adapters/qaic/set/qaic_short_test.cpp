// The fault 'short': an inference whose result is incomplete fails, by each way to run one.
#include <cstdlib>

#include "adapters/qaic/testing/qaic_bench.h"

namespace corelane::qaic::test {
namespace {

TEST(QaicShort, AnInferenceWithAShortResultIsAProtocolError) {
  setenv("CORELANE_FAULTS", "short=1", 1);
  const Bench bench("null:generic:2", nullptr, false);
  unsetenv("CORELANE_FAULTS");
  QAicProgram* program = bench.program();
  QAicExecObj* exec = bench.exec(program);
  QAicQueue* queue = bench.queue();
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS);
  ASSERT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_SUCCESS) << text();
  EXPECT_EQ(qaicExecObjWaitForCompletion(exec, 0), QS_PROTOCOL);
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  QAicInferenceSet* set = bench.set(1);
  ASSERT_EQ(tensors.give(set, 0), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetSubmit(set, 0, 1), QS_SUCCESS) << text();
  std::uint32_t handle = UINT32_MAX;
  EXPECT_EQ(qaicInferenceSetGetCompleted(set, QAIC_WAIT_FOREVER, &handle), QS_PROTOCOL);
  EXPECT_EQ(handle, 0U);
  EXPECT_EQ(qaicInferenceSetPutCompleted(set, handle), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
