// Programs by the C functions: their states, cores, memory and failures.
#include <dirent.h>

#include "adapters/qaic/testing/qaic_bench.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic::test {
namespace {

using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

QStatus activate(QAicProgram* program) {
  return qaicRunActivationCmd(program, QAIC_PROGRAM_CMD_ACTIVATE_FULL);
}
QStatus deactivate(QAicProgram* program) {
  return qaicRunActivationCmd(program, QAIC_PROGRAM_CMD_DEACTIVATE_FULL);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(QaicProgram, CommandsLeadThroughTheStates) {
  const Bench bench;
  QAicProgram* program = bench.program();
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_INIT);
  EXPECT_EQ(bench.info(program).loadedID, 0U);
  ASSERT_EQ(qaicLoadProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicLoadProgram(program), QS_SUCCESS) << "nothing where it is loaded";
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_LOADED);
  EXPECT_NE(bench.info(program).loadedID, 0U);
  EXPECT_EQ(bench.free_cores(), 4);
  ASSERT_EQ(activate(program), QS_SUCCESS);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_FULLY_ACTIVATED);
  EXPECT_EQ(bench.free_cores(), 3);
  EXPECT_EQ(qaicUnloadProgram(program), QS_BUSY) << "it is active";
  ASSERT_EQ(deactivate(program), QS_SUCCESS);
  EXPECT_EQ(deactivate(program), QS_SUCCESS);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_LOADED);
  EXPECT_EQ(bench.free_cores(), 4);
  ASSERT_EQ(qaicUnloadProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicUnloadProgram(program), QS_SUCCESS);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_INIT);
  ASSERT_EQ(activate(program), QS_SUCCESS) << "loads it too";
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(bench.free_cores(), 4);
  EXPECT_THAT(bench.errors(), IsEmpty());
}

TEST(QaicProgram, TheFirstRunLoadsAndActivatesAndTheLastObjectDeactivates) {
  const Bench bench;
  QAicProgram* program = bench.program();
  QAicExecObj* one = bench.exec(program);
  QAicExecObj* two = bench.exec(program);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(one), QS_SUCCESS) << text();
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_INIT);
  QAicQueue* queue = bench.queue();
  ASSERT_EQ(qaicEnqueueExecObj(queue, one, nullptr), QS_SUCCESS) << text();
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_FULLY_ACTIVATED);
  bench.advance(milliseconds(1));
  EXPECT_EQ(qaicExecObjWaitForCompletion(one, 0), QS_SUCCESS);
  EXPECT_EQ(deactivate(program), QS_BUSY);
  EXPECT_EQ(qaicUnloadProgram(program), QS_BUSY);
  EXPECT_THAT(text(), HasSubstr("2 execution objects"));
  EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
  EXPECT_EQ(bench.free_cores(), 3);
  EXPECT_EQ(qaicReleaseExecObj(two), QS_SUCCESS);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_LOADED);
  EXPECT_EQ(bench.free_cores(), 4);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
}

TEST(QaicProgram, ActivationByCommandStaysWhenTheLastObjectGoes) {
  const Bench bench;
  QAicProgram* program = bench.program();
  ASSERT_EQ(activate(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseExecObj(bench.exec(program)), QS_SUCCESS);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_FULLY_ACTIVATED);
  EXPECT_EQ(deactivate(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

TEST(QaicProgram, AnObjectWithoutTheBitNeedsAnActiveProgram) {
  const Bench bench;
  QAicProgram* program = bench.program();
  QAicExecObj* exec = bench.exec(program, 0);
  const Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS);
  EXPECT_EQ(qaicRunExecObj(exec), QS_INVAL);
  EXPECT_THAT(text(), HasSubstr("AUTO_LOAD_ACTIVATE"));
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_INIT);
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

TEST(QaicProgram, PropertiesAreCheckedAndTheHandlerHearsOfIt) {
  const Bench bench;
  QAicProgram* program = nullptr;
  const auto create = [&](const QAicProgramProperties& properties, QID device = 0) {
    return qaicCreateProgram(bench.context, &program, &properties, device, "net", bench.qpc);
  };
  QAicProgramProperties properties;
  ASSERT_EQ(qaicProgramPropertiesInitDefault(&properties), QS_SUCCESS);
  EXPECT_EQ(properties.SubmitNumRetries, 5U);
  properties.devMapping = "0:1:2:3";
  EXPECT_EQ(create(properties), QS_UNSUPPORTED) << "statement 26";
  EXPECT_THAT(text(), HasSubstr("0:1:2:3"));
  properties = {};
  properties.selectMask = 0x10;
  EXPECT_EQ(create(properties), QS_INVAL);
  properties = {};
  properties.SubmitNumRetries = 101;
  EXPECT_EQ(create(properties), QS_INVAL);
  EXPECT_EQ(create({}, 1), QS_NODEV);
  EXPECT_EQ(program, nullptr);
  EXPECT_EQ(bench.errors(), std::vector<int>(4, QAIC_ERROR_PROGRAM_CREATION));
  properties = {};
  properties.selectMask = QAIC_PROGRAM_PROPERTIES_USE_APP_BUFFER;
  properties.SubmitNumRetries = 100;
  EXPECT_EQ(create(properties), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

TEST(QaicProgram, FailedActivationIsToldOnceAndHoldsNothing) {
  const Bench bench("null:generic:1");
  QAicProgram* holder = bench.program();
  QAicProgram* program = bench.program();
  ASSERT_EQ(activate(holder), QS_SUCCESS);
  EXPECT_EQ(activate(program), QS_NOSPC);
  EXPECT_EQ(bench.info(program).status, QIAC_PROGRAM_ACTIVATE_ERROR);
  EXPECT_THAT(bench.errors(), ElementsAre(QAIC_ERROR_PROGRAM_RUNTIME_ACTIVATION_FAILED));
  ASSERT_EQ(deactivate(holder), QS_SUCCESS);
  EXPECT_EQ(activate(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(holder), QS_SUCCESS);
}

/// The device is lost for 30 ms where the first run begins.
struct LossBench : Bench {
  LossBench()
      : Bench("null:generic:4?a=1ms", std::make_shared<ListedFaults>(std::vector{Fault::kLost})) {}
};

TEST(QaicProgram, ALossMovesItToTheErrorStateFromWhichALoadLeadsBack) {
  const LossBench bench;
  QAicProgram* idle = bench.program();
  QAicProgram* program = bench.program();
  ASSERT_EQ(activate(idle), QS_SUCCESS);
  QAicExecObj* exec = bench.exec(program);
  Tensors tensors;
  ASSERT_EQ(tensors.give(exec), QS_SUCCESS);
  EXPECT_EQ(qaicRunExecObj(exec), QS_DEV_ERROR);
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_ERROR);
  EXPECT_EQ(bench.info(program).loadedID, 0U);
  EXPECT_EQ(qaicLoadProgram(program), QS_DEV_ERROR) << "the device is away";
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_ERROR);
  bench.advance(milliseconds(30));
  EXPECT_EQ(bench.info(idle).status, QAIC_PROGRAM_ERROR) << "a loss that is over counts too";
  EXPECT_EQ(qaicRunExecObj(exec), QS_DEV_ERROR) << "nothing is replayed";
  EXPECT_THAT(text(), HasSubstr("load the program again"));
  ASSERT_EQ(qaicLoadProgram(program), QS_SUCCESS) << text();
  EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_LOADED);
  QAicQueue* queue = bench.queue();
  ASSERT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_SUCCESS) << text();
  bench.advance(milliseconds(1));
  EXPECT_EQ(qaicExecObjWaitForCompletion(exec, 0), QS_SUCCESS);
  EXPECT_EQ(tensors.values[1], tensors.values[0]) << "its buffers are bound again";
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  EXPECT_EQ(activate(idle), QS_SUCCESS) << "loads it again too";
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(idle), QS_SUCCESS);
}

/// The thread that finds the loss first releases the activation, and may load the program again,
/// while another is about to submit: that was QS_INVAL.
TEST(QaicProgram, AnEnqueueThatMeetsTheLossHearsOfIt) {
  for (const bool loaded_again : {false, true}) {
    const LossBench bench;
    QAicProgram* const program = bench.program();
    QAicExecObj* const objects[2] = {bench.exec(program), bench.exec(program)};
    const Tensors tensors;
    for (QAicExecObj* one : objects) ASSERT_EQ(tensors.give(one), QS_SUCCESS);
    QAicQueue* const queue = bench.queue();
    ASSERT_EQ(activate(program), QS_SUCCESS);
    bool met = false;
    bench.clock->at_next_look([&] {
      EXPECT_EQ(qaicRunExecObj(objects[1]), QS_DEV_ERROR);
      EXPECT_EQ(bench.info(program).status, QAIC_PROGRAM_ERROR);
      if (loaded_again) {
        bench.advance(milliseconds(30));
        EXPECT_EQ(qaicLoadProgram(program), QS_SUCCESS) << text();
      }
      met = true;
    });
    EXPECT_EQ(qaicEnqueueExecObj(queue, objects[0], nullptr), QS_DEV_ERROR) << text();
    EXPECT_TRUE(met);
    if (loaded_again) EXPECT_THAT(text(), HasSubstr("enqueue it again"));
    bench.clock->run_all();
    if (!loaded_again) EXPECT_EQ(qaicLoadProgram(program), QS_SUCCESS);
    EXPECT_EQ(qaicEnqueueExecObj(queue, objects[0], nullptr), QS_SUCCESS) << text();
    bench.advance(milliseconds(1));
    EXPECT_EQ(qaicExecObjWaitForCompletion(objects[0], 0), QS_SUCCESS);
    for (QAicExecObj* one : objects) EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  }
}

/// A22.
TEST(QaicProgram, TenThousandActivationsLeaveNothing) {
  const Bench bench("null:generic:1");
  QAicProgram* holder = bench.program();
  QAicProgram* program = bench.program();
  ASSERT_EQ(qaicLoadProgram(holder), QS_SUCCESS);
  std::size_t memory = 0;
  std::size_t descriptors = 0;
  for (int i = 0; i < 10000; ++i) {
    const bool fails = i % 10 == 9;
    if (fails) ASSERT_EQ(activate(holder), QS_SUCCESS);
    ASSERT_EQ(qaicLoadProgram(program), QS_SUCCESS);
    ASSERT_EQ(activate(program), fails ? QS_NOSPC : QS_SUCCESS);
    ASSERT_EQ(deactivate(program), QS_SUCCESS);
    ASSERT_EQ(qaicUnloadProgram(program), QS_SUCCESS);
    if (fails) ASSERT_EQ(deactivate(holder), QS_SUCCESS);
    if (i == 100) {
      memory = bench.device->memory().total();
      descriptors = open_descriptors();
    }
  }
  EXPECT_EQ(bench.free_cores(), 1);
  EXPECT_EQ(bench.device->memory().total(), memory);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(holder), QS_SUCCESS);
}

TEST(QaicProgram, ItsDescriptionsAreThoseOfTheContainer) {
  const Bench bench;
  QAicProgram* program = bench.program();
  QAicIoBufferInfo* io = nullptr;
  ASSERT_EQ(qaicProgramGetIoBufferInfo(program, &io), QS_SUCCESS);
  ASSERT_EQ(io->numBufferMappings, 2U);
  EXPECT_STREQ(io->bufferMappings[0].bufferName, "x");
  EXPECT_EQ(io->bufferMappings[1].size, 16U);
  QData descriptor{};
  ASSERT_EQ(qaicProgramGetIoDescriptor(program, &descriptor), QS_SUCCESS);
  EXPECT_GT(descriptor.size, 0U);
  EXPECT_EQ(qaicCloseQpc(bench.qpc), QS_SUCCESS);
  EXPECT_STREQ(io->bufferMappings[1].bufferName, "y") << "the program keeps the container";
  QAicExecObj* exec = nullptr;
  EXPECT_EQ(
      qaicCreateExecObj(bench.context, &exec, nullptr, program, &descriptor, nullptr, nullptr),
      QS_SUCCESS)
      << text();
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  const QData wrong{4, descriptor.data};
  EXPECT_EQ(qaicCreateExecObj(bench.context, &exec, nullptr, program, &wrong, nullptr, nullptr),
            QS_INVAL);
  EXPECT_THAT(bench.errors(), ElementsAre(QIAC_ERROR_EXECOBJ_CREATION));
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

/// Handlers may call any function, that which failed included.
TEST(QaicProgram, AnErrorHandlerMayLoadTheProgram) {
  const Bench bench("null:generic:1");
  struct Retry {
    QAicProgram* program = nullptr;
    int calls = 0;
  } retry;
  const QID number = 0;
  QAicContext* context = nullptr;
  const auto handler = [](QAicContextID, const char*, QAicErrorType, const void*, std::size_t,
                          void* data) {
    auto& self = *static_cast<Retry*>(data);
    if (++self.calls == 1) EXPECT_EQ(activate(self.program), QS_NOSPC);
  };
  ASSERT_EQ(qaicCreateContext(&context, nullptr, 1, &number, nullptr, nullptr, handler, &retry),
            QS_SUCCESS);
  ASSERT_EQ(qaicCreateProgram(context, &retry.program, nullptr, 0, nullptr, bench.qpc), QS_SUCCESS);
  QAicProgram* holder = bench.program();
  ASSERT_EQ(activate(holder), QS_SUCCESS);
  EXPECT_EQ(activate(retry.program), QS_NOSPC);
  EXPECT_EQ(retry.calls, 2);
  EXPECT_EQ(qaicReleaseProgram(retry.program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseContext(context), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(holder), QS_SUCCESS);
}

}  // namespace
}  // namespace corelane::qaic::test
