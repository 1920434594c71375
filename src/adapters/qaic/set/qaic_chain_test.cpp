// Programs that were cut into parts, on the devices that devMapping names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "adapters/qaic/api/qaic_test_support.h"
#include "device/registry/testing/listed_faults.h"
#include "runtime/testing/chain_bench.h"

namespace corelane::qaic::test {
namespace {

using device::Fault;
using device::ListedFaults;
using std::chrono::milliseconds;
using testing::chain_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two parts; devices 0, 1 and 2.
struct ChainDoor {
  explicit ChainDoor(const std::vector<std::string>& texts = {"null?a=1ms", "null?a=1ms",
                                                              "null?a=1ms"},
                     int parts = 2)
      : devices(texts), context({0, 1, 2}), qpc(chain_file(parts)) {}

  QStatus create(QAicProgram** program, const char* mapping, QID device = 0) const {
    QAicProgramProperties properties;
    properties.devMapping = mapping;
    return qaicCreateProgram(context, program, &properties, device, "net", qpc);
  }
  QStatus create(QAicInferenceSet** set, const char* mapping, std::uint32_t timeout_ms = 0,
                 QID device = -1) const {
    QAicProgramProperties properties;
    properties.devMapping = mapping;
    properties.SubmitRetryTimeoutMs = timeout_ms;
    properties.SubmitNumRetries = 0;
    QAicInferenceSetConfig config;
    config.setSize = 2;
    config.numActivations = 1;
    config.device = device;
    config.programProperties = &properties;
    return qaicCreateInferenceSet(context, set, &config, qpc);
  }
  std::vector<std::uint64_t> completed() const {
    std::vector<std::uint64_t> counts;
    for (const auto& device : devices.devices) counts.push_back(device->counters().completed);
    return counts;
  }

  OwnDevices devices;
  OwnContext context;
  OwnQpc qpc;
};

struct Buffers {
  float x[4] = {1, 2, 3, 4};
  float y[4] = {};
  QBuffer list[2] = {{sizeof x, reinterpret_cast<std::uint8_t*>(x)},
                     {sizeof y, reinterpret_cast<std::uint8_t*>(y)}};
};

TEST(QaicChain, ExecutionObjectsRunOnTheDevicesOfTheMapping) {
  ChainDoor door;
  QAicProgram* program = nullptr;
  ASSERT_EQ(door.create(&program, "2:0"), QS_SUCCESS) << last_error();
  QAicExecObjProperties_t bits = QAIC_EXECOBJ_PROPERTIES_DEFAULT;
  QAicExecObj* exec = nullptr;
  ASSERT_EQ(qaicCreateExecObj(door.context, &exec, &bits, program, nullptr, nullptr, nullptr),
            QS_SUCCESS)
      << last_error();
  Buffers buffers;
  ASSERT_EQ(qaicExecObjSetData(exec, 2, buffers.list), QS_SUCCESS) << last_error();
  QAicQueue* queue = nullptr;
  ASSERT_EQ(qaicCreateQueue(door.context, &queue, nullptr, 0), QS_SUCCESS) << last_error();
  ASSERT_EQ(qaicEnqueueExecObj(queue, exec, nullptr), QS_SUCCESS) << last_error();
  door.devices.clock->advance(milliseconds(2));
  ASSERT_EQ(qaicExecObjWaitForCompletion(exec, 0), QS_SUCCESS) << last_error();
  EXPECT_THAT(buffers.y, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(door.completed(), ElementsAre(1, 0, 1));
  QAicQueue* elsewhere = nullptr;
  ASSERT_EQ(qaicCreateQueue(door.context, &elsewhere, nullptr, 1), QS_SUCCESS);
  EXPECT_EQ(qaicEnqueueExecObj(elsewhere, exec, nullptr), QS_INVAL);
  const QBuffer descriptors[2] = {{16, nullptr, 0, 0, QBUFFER_TYPE_DMABUF},
                                  {16, nullptr, 0, 0, QBUFFER_TYPE_DMABUF}};
  EXPECT_EQ(qaicExecObjSetData(exec, 2, descriptors), QS_UNSUPPORTED);
  EXPECT_THAT(last_error(), HasSubstr("memory of the process"));
  EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseQueue(elsewhere), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
}

TEST(QaicChain, WithoutAMappingAllPartsAreOnTheProgramsDevice) {
  ChainDoor door;
  QAicInferenceSet* set = nullptr;
  ASSERT_EQ(door.create(&set, nullptr, 0, 1), QS_SUCCESS) << last_error();
  Buffers buffers;
  std::uint32_t handle = 0;
  ASSERT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetSetData(set, handle, 2, buffers.list, nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetSubmit(set, handle, 1), QS_SUCCESS) << last_error();
  door.devices.clock->advance(milliseconds(2));
  ASSERT_EQ(qaicInferenceSetGetCompleted(set, 0, &handle), QS_SUCCESS) << last_error();
  EXPECT_THAT(door.completed(), ElementsAre(0, 2, 0));
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

TEST(QaicChain, SetsHaveOneTimeoutForAllParts) {
  ChainDoor door({"null?a=4ms", "null?a=4ms", "null"});
  QAicInferenceSet* set = nullptr;
  ASSERT_EQ(door.create(&set, "0:1", 6), QS_SUCCESS) << last_error();
  QAicProgramInfoV2 info;
  ASSERT_EQ(qaicInferenceSetGetProgramInfo(set, &info), QS_SUCCESS);
  EXPECT_EQ(info.numQids, 2U);
  EXPECT_EQ(info.qid[1], 1);
  Buffers buffers;
  std::uint32_t handle = 0;
  ASSERT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetSetData(set, handle, 2, buffers.list, nullptr), QS_SUCCESS);
  ASSERT_EQ(qaicInferenceSetSubmit(set, handle, 1), QS_SUCCESS) << last_error();
  door.devices.clock->advance(milliseconds(6));
  EXPECT_EQ(qaicInferenceSetGetCompleted(set, 0, &handle), QS_TIMEDOUT) << last_error();
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
}

TEST(QaicChain, MappingsThatDoNotFitAreRefused) {
  ChainDoor door;
  QAicProgram* program = nullptr;
  struct Case {
    const char* mapping;
    QStatus status;
    const char* says;
  };
  for (const Case& c :
       {Case{"0", QS_INVAL, "1 devices for the 2 parts"},
        Case{"0:1:2", QS_INVAL, "3 devices for the 2 parts"},
        Case{"1:1", QS_INVAL, "device 1 twice"}, Case{"0:x", QS_INVAL, "'x' is no number"},
        Case{"0:", QS_INVAL, "'' is no number"}, Case{"0:-1", QS_INVAL, "'-1' is no number"},
        Case{"0:7", QS_NODEV, "device 7"}}) {
    EXPECT_EQ(door.create(&program, c.mapping), c.status) << c.mapping;
    EXPECT_THAT(last_error(), HasSubstr(c.says)) << c.mapping;
    QAicInferenceSet* set = nullptr;
    EXPECT_EQ(door.create(&set, c.mapping), c.status) << c.mapping;
  }
  // A context of other devices.
  const OwnContext few({0, 1});
  QAicProgramProperties properties;
  properties.devMapping = "0:2";
  EXPECT_EQ(qaicCreateProgram(few, &program, &properties, 0, "net", door.qpc), QS_NODEV);
}

TEST(QaicChain, TheContainerListsTheNetworkAndItsParts) {
  ChainDoor door;
  const QAicQpcInfo& info = door.qpc.info();
  ASSERT_EQ(info.numPrograms, 3U);
  EXPECT_STREQ(info.programInfo[0].name, "network");
  EXPECT_STREQ(info.programInfo[2].name, "network/1");
  EXPECT_GE(info.programInfo[0].size, info.programInfo[1].size + info.programInfo[2].size);
}

}  // namespace
}  // namespace corelane::qaic::test
