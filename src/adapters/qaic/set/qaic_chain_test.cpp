// Programs that were cut into parts, on the devices that devMapping names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "adapters/qaic/api/qaic_test_support.h"
#include "adapters/qaic/testing/qaic_profile_bench.h"
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
                     int parts = 2, std::vector<Fault> faults = {})
      : devices(texts, std::make_shared<ListedFaults>(std::move(faults))),
        context({0, 1, 2}),
        qpc(chain_file(parts)) {}

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

/// An execution object with a queue of its own.
struct ChainRunner {
  ChainRunner(const ChainDoor& door, QAicProgram* program, QID device) : clock(door.devices.clock) {
    QAicExecObjProperties_t bits = QAIC_EXECOBJ_PROPERTIES_DEFAULT;
    EXPECT_EQ(qaicCreateExecObj(door.context, &exec, &bits, program, nullptr, nullptr, nullptr),
              QS_SUCCESS)
        << last_error();
    EXPECT_EQ(qaicExecObjSetData(exec, 2, buffers.list), QS_SUCCESS) << last_error();
    EXPECT_EQ(qaicCreateQueue(door.context, &queue, nullptr, device), QS_SUCCESS) << last_error();
  }
  ~ChainRunner() {
    EXPECT_EQ(qaicReleaseExecObj(exec), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
  }
  QStatus run() const {
    if (const QStatus status = qaicEnqueueExecObj(queue, exec, nullptr); status != QS_SUCCESS)
      return status;
    clock->advance(milliseconds(2));
    return qaicExecObjWaitForCompletion(exec, 0);
  }

  std::shared_ptr<VirtualClock> clock;
  Buffers buffers;
  QAicExecObj* exec = nullptr;
  QAicQueue* queue = nullptr;
};

/// The device, of two, that is lost for 30 ms when its part of the first inference begins.
class QaicChainLoss : public ::testing::TestWithParam<std::size_t> {
 protected:
  static std::vector<Fault> faults() {
    std::vector<Fault> list(GetParam(), Fault::kNone);
    list.push_back(Fault::kLost);
    return list;
  }
  ChainDoor door{{"null?a=1ms", "null?a=1ms", "null?a=1ms"}, 2, faults()};
};
INSTANTIATE_TEST_SUITE_P(EachPosition, QaicChainLoss, ::testing::Values(0, 1));

TEST_P(QaicChainLoss, FailsItsProgramUntilThatIsLoadedAndLeavesOthers) {
  QAicProgram* program = nullptr;
  QAicProgram* other = nullptr;
  ASSERT_EQ(door.create(&program, "0:1"), QS_SUCCESS) << last_error();
  ASSERT_EQ(door.create(&other, nullptr, 2), QS_SUCCESS) << last_error();
  {
    const ChainRunner struck(door, program, 0);
    const ChainRunner beside(door, other, 2);
    EXPECT_EQ(struck.run(), QS_DEV_ERROR) << last_error();
    EXPECT_EQ(beside.run(), QS_SUCCESS) << last_error();
    EXPECT_EQ(qaicLoadProgram(program), QS_DEV_ERROR) << "the device is away";
    door.devices.clock->advance(milliseconds(40));
    EXPECT_EQ(struck.run(), QS_DEV_ERROR) << "nothing is replayed";
    EXPECT_THAT(last_error(), HasSubstr("load the program again"));
    ASSERT_EQ(qaicLoadProgram(program), QS_SUCCESS) << last_error();
    EXPECT_EQ(struck.run(), QS_SUCCESS) << last_error();
    EXPECT_THAT(struck.buffers.y, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(beside.run(), QS_SUCCESS) << last_error();
  }
  EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  EXPECT_EQ(qaicReleaseProgram(other), QS_SUCCESS);
}

TEST_P(QaicChainLoss, FailsTheInferenceOfASetThatSubmitsAgain) {
  QAicInferenceSet* set = nullptr;
  ASSERT_EQ(door.create(&set, "0:1"), QS_SUCCESS) << last_error();
  Buffers buffers;
  const auto run = [&] {
    std::uint32_t handle = 0;
    EXPECT_EQ(qaicInferenceSetGetAvailable(set, 0, &handle), QS_SUCCESS) << last_error();
    EXPECT_EQ(qaicInferenceSetSetData(set, handle, 2, buffers.list, nullptr), QS_SUCCESS);
    QStatus status = qaicInferenceSetSubmit(set, handle, 1);
    if (status == QS_SUCCESS) {
      door.devices.clock->advance(milliseconds(2));
      status = qaicInferenceSetGetCompleted(set, 0, &handle);
    }
    EXPECT_EQ(qaicInferenceSetPutCompleted(set, handle), QS_SUCCESS) << last_error();
    return status;
  };
  EXPECT_EQ(run(), QS_DEV_ERROR) << last_error();
  door.devices.clock->advance(milliseconds(40));
  EXPECT_EQ(run(), QS_SUCCESS) << last_error();
  EXPECT_THAT(buffers.y, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(qaicReleaseInferenceSet(set), QS_SUCCESS);
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
        Case{"1:1", QS_INVAL, "device 1 twice"}, Case{"0:x", QS_INVAL, "'x' is not a number"},
        Case{"0:", QS_INVAL, "'' is not a number"}, Case{"0:-1", QS_INVAL, "'-1' is not a number"},
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

/// A program in two parts of 1 ms, whose execution objects are in flight together.
struct ProfiledChain : ChainDoor {
  explicit ProfiledChain(const char* mapping) {
    devices.clock->advance(milliseconds(7));  // A stamp of zero would be one that is not there.
    EXPECT_EQ(create(&program, mapping), QS_SUCCESS) << last_error();
    QAicExecObjProperties_t bits = QAIC_EXECOBJ_PROPERTIES_DEFAULT;
    for (std::size_t i = 0; i < kObjects; ++i) {
      EXPECT_EQ(qaicCreateExecObj(context, &objects[i], &bits, program, nullptr, nullptr, nullptr),
                QS_SUCCESS)
          << last_error();
      EXPECT_EQ(qaicExecObjSetData(objects[i], 2, buffers[i].list), QS_SUCCESS) << last_error();
    }
    EXPECT_EQ(qaicCreateQueue(context, &queue, nullptr, 0), QS_SUCCESS) << last_error();
  }
  ~ProfiledChain() {
    for (QAicExecObj* const one : objects) EXPECT_EQ(qaicReleaseExecObj(one), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseQueue(queue), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProgram(program), QS_SUCCESS);
  }
  /// The report of `rounds` times all objects together.
  std::string profile(QAicProfilingType type, int rounds) {
    QAicProfilingConfig config;
    config.numPrograms = 1;
    config.programs = &program;
    config.numSamples = static_cast<std::uint32_t>(rounds * kObjects);
    config.profilingType = type;
    Reports reports;
    QAicProfilingHandle* handle = nullptr;
    EXPECT_EQ(qaicCreateProfilingHandle(&handle, &config, &Reports::on_report, &reports),
              QS_SUCCESS)
        << last_error();
    EXPECT_EQ(qaicProfilingStart(handle), QS_SUCCESS) << last_error();
    for (int i = 0; i < rounds; ++i) {
      for (QAicExecObj* const one : objects)
        EXPECT_EQ(qaicEnqueueExecObj(queue, one, nullptr), QS_SUCCESS) << last_error();
      devices.clock->advance(milliseconds(20));
      for (QAicExecObj* const one : objects)
        EXPECT_EQ(qaicExecObjWaitForCompletion(one, 0), QS_SUCCESS) << last_error();
    }
    EXPECT_EQ(qaicProfilingStop(handle), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseProfilingHandle(handle), QS_SUCCESS);
    EXPECT_EQ(reports.count(), 1U);
    return reports.count() == 1 ? reports.all()[0] : std::string();
  }

  static constexpr std::size_t kObjects = 4;
  QAicProgram* program = nullptr;
  QAicQueue* queue = nullptr;
  std::array<QAicExecObj*, kObjects> objects{};
  std::array<Buffers, kObjects> buffers;
};

TEST(QaicChain, LatencyReportHasARowForEachInferenceOfAllParts) {
  ProfiledChain door("0:1");
  const std::string report = door.profile(QAIC_PROFILING_TYPE_LATENCY, 2);
  const auto rows = rows_by_name(report);
  ASSERT_EQ(rows.size(), 8U) << report;
  // While the second part of one runs, the first of the next does.
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i].at("totalRoundtripTimeUs"), 2000 + 1000 * (i % 4)) << report;
  EXPECT_EQ(rows[0].at("devExecUs"), 2000);
}

TEST(QaicChain, TraceOfInferencesThatOverlapHasSpansThatNest) {
  for (const char* mapping : {"0:1", "2:0"}) {
    ProfiledChain door(mapping);
    const std::string report = door.profile(QAIC_PROFILING_TYPE_TRACE, 3);
    // The bars of an inference are those of its parts, on a core of each device.
    EXPECT_EQ(bars_of_trace(report), 2U * 12) << report;
  }
}

}  // namespace
}  // namespace corelane::qaic::test
