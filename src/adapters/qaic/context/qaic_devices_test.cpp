// Devices by number, and what the API says of them.
#include "adapters/qaic/context/qaic_devices.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "adapters/qaic/api/qaic_test_support.h"
#include "corelane/device/lease.h"
#include "corelane/device/residence.h"

namespace corelane::qaic {
namespace {

using namespace test;
using ::testing::HasSubstr;

constexpr const char* kVariable = "CORELANE_QAIC_DEVICES";

std::vector<QID> ids() {
  std::uint32_t count = 0;
  EXPECT_EQ(qaicGetDeviceIds(&count, nullptr), QS_SUCCESS) << last_error();
  std::vector<QID> ids(count, -1);
  EXPECT_EQ(qaicGetDeviceIds(&count, ids.data()), QS_SUCCESS) << last_error();
  return ids;
}

TEST(QaicDevices, WithoutTheVariableThereIsOne) {
  const Environment none(kVariable, std::nullopt);
  EXPECT_EQ(device_texts().value(), std::vector<std::string>{"virtual:aic100"});
  EXPECT_THAT(ids(), ::testing::ElementsAre(0));
}

TEST(QaicDevices, TheListIsDividedBySemicolons) {
  const Environment list(kVariable, " null:generic:4?name=a,b ;null:generic:2?depth=3&name=c; ");
  EXPECT_THAT(device_texts().value(),
              ::testing::ElementsAre("null:generic:4?name=a,b", "null:generic:2?depth=3&name=c"));
  EXPECT_THAT(ids(), ::testing::ElementsAre(0, 1));
  QID first = -1;
  std::uint32_t room = 1;
  EXPECT_EQ(qaicGetDeviceIds(&room, &first), QS_SUCCESS);
  EXPECT_EQ(room, 2U);
  EXPECT_EQ(first, 0);
}

TEST(QaicDevices, NumbersThatAreNotThereAreNoDevice) {
  const Environment list(kVariable, "null:generic:4?name=x0;null:generic:2?name=x1");
  QDevInfo info;
  for (const QID number : {-1, 2, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(qaicGetDeviceInfo(number, &info), QS_NODEV);
    EXPECT_THAT(last_error(), HasSubstr("there are 0 to 1")) << number;
  }
  QResourceInfo resources;
  EXPECT_EQ(qaicGetResourceInfo(7, &resources), QS_NODEV);
  QPerformanceInfo performance;
  EXPECT_EQ(qaicGetPerformanceInfo(7, &performance), QS_NODEV);
  const QID device = 2;
  QAicContext* context = nullptr;
  EXPECT_EQ(qaicCreateContext(&context, nullptr, 1, &device, nullptr, nullptr, nullptr, nullptr),
            QS_NODEV);
  EXPECT_EQ(context, nullptr);
}

TEST(QaicDevices, AListThatIsWrongSaysWhere) {
  QDevInfo info;
  std::uint32_t count = 0;
  for (const char* text : {"null:generic:4;;null:generic:2", ";null", "a b:c", "?"}) {
    const Environment list(kVariable, text);
    EXPECT_EQ(qaicGetDeviceIds(&count, nullptr), QS_INVAL) << text;
    EXPECT_THAT(last_error(), HasSubstr(kVariable)) << text;
    EXPECT_EQ(qaicGetDeviceInfo(0, &info), QS_NODEV) << text;
    EXPECT_THAT(last_error(), HasSubstr(kVariable)) << text;
  }
  const Environment twice(kVariable, "null:generic:4?b=1ms&a=1ms; null:generic:4?a=1ms&b=1ms");
  EXPECT_EQ(qaicGetDeviceIds(&count, nullptr), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("devices 0 and 1 are both"));
  EXPECT_THAT(last_error(), HasSubstr("&name=second"));
}

TEST(QaicDevices, OneThatCannotBeOpenedIsAStatus) {
  const Environment list(kVariable, "null:generic:4?name=y0;nosuch:thing;null:generic:4?no=option");
  QDevInfo info;
  EXPECT_EQ(qaicGetDeviceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(qaicGetDeviceInfo(1, &info), QS_NODEV);
  EXPECT_THAT(last_error(), HasSubstr("device 1 ('nosuch:thing') cannot be opened"));
  EXPECT_EQ(qaicGetDeviceInfo(2, &info), QS_NODEV);
  EXPECT_THAT(last_error(), HasSubstr("'no'"));
}

TEST(QaicDevices, AreOpenedOnceWhileAnyoneHasThem) {
  const Environment list(kVariable, "null:generic:4?name=once");
  const auto device = open_device(0).value();
  EXPECT_EQ(open_device(0).value(), device);
  EXPECT_EQ(device::open_device("null:generic:4?name=once").value(), device)
      << "shared with other APIs of the process";
}

TEST(QaicDevices, TellWhatTheyAre) {
  const OwnDevices devices({"null:generic:4?name=card&memory=8M"});
  QDevInfo info;
  std::memset(static_cast<void*>(&info), 0x5a, sizeof info);
  ASSERT_EQ(qaicGetDeviceInfo(0, &info), QS_SUCCESS) << last_error();
  EXPECT_EQ(info.devStatus, QDS_READY);
  EXPECT_EQ(info.qid, 0);
  EXPECT_STREQ(info.pciInfo.vendorname, "Corelane");
  EXPECT_STREQ(info.pciInfo.classname, "Processing accelerators");
  EXPECT_STREQ(info.pciInfo.devicename, "null:generic:4");
  EXPECT_EQ(info.name, devices.devices[0]->info().instance);
  EXPECT_EQ(info.pciInfo.bus, 0);
  EXPECT_EQ(info.devData.resourceInfo.nspTotal, 4);
  EXPECT_EQ(info.devData.resourceInfo.nspFree, 4);
  EXPECT_EQ(info.devData.resourceInfo.dramTotal, 8U * 1024);
  EXPECT_EQ(info.devData.resourceInfo.QResourceReservationID, -1);
  EXPECT_EQ(info.devData.numActiveNWs, 0);
  EXPECT_EQ(info.devData.performanceInfo.nspFrequencyHz,
            devices.devices[0]->info().cores[0].clock_hz);
}

TEST(QaicDevices, TellTheMemoryThatIsFree) {
  const OwnDevices devices({"null:generic:2?memory=1M", "null:generic:2"});
  QResourceInfo info;
  ASSERT_EQ(qaicGetResourceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(info.dramTotal, 1024U);
  EXPECT_EQ(info.dramFree, 1024U);
  const auto buffer = devices.devices[0]->create_buffer(256 * 1024, {}).value();
  ASSERT_EQ(qaicGetResourceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(info.dramFree, 768U);
  // Without a limit: the host's.
  ASSERT_EQ(qaicGetResourceInfo(1, &info), QS_SUCCESS);
  EXPECT_EQ(info.dramTotal, static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 1024);
  EXPECT_GT(info.dramFree, 0U);
  EXPECT_LE(info.dramFree, info.dramTotal);
}

std::shared_ptr<device::Residence> held(device::Device& device, const device::CoreSet& cores,
                                        device::Residency how = device::Residency::kExclusive) {
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
  return device.prepare(image, {}).value()->make_resident(cores, how).value();
}

TEST(QaicDevices, TellTheCoresThatNobodyHolds) {
  const OwnDevices devices({"null:generic:4"});
  QResourceInfo info;
  {
    const auto one = held(*devices.devices[0], device::CoreSet::of({1}));
    const auto two =
        held(*devices.devices[0], device::CoreSet::of({2, 3}), device::Residency::kShared);
    ASSERT_EQ(qaicGetResourceInfo(0, &info), QS_SUCCESS);
    EXPECT_EQ(info.nspTotal, 4);
    EXPECT_EQ(info.nspFree, 1);
  }
  ASSERT_EQ(qaicGetResourceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(info.nspFree, 4);
}

TEST(QaicDevices, CoresThatOthersHaveLeasesOfAreNotFree) {
  const std::string folder = ::testing::TempDir() + "qaic_leases_" + std::to_string(getpid());
  const Environment run("CORELANE_RUN_DIR", folder.c_str());
  const Environment list(kVariable,
                         "null:generic:4?name=leased&lease=1;null:generic:4?name=leased");
  const auto instance = open_device(0).value()->info().instance;
  const auto lease = device::Lease::acquire(instance, 4, device::CoreSet::of({0, 2})).value();
  QResourceInfo info;
  ASSERT_EQ(qaicGetResourceInfo(0, &info), QS_SUCCESS) << last_error();
  EXPECT_EQ(info.nspFree, 2);
  // A device that takes no leases does not mind them.
  ASSERT_EQ(qaicGetResourceInfo(1, &info), QS_SUCCESS);
  EXPECT_EQ(info.nspFree, 4);
}

TEST(QaicDevices, TheVersionIsThatOfTheHeaders) {
  std::uint16_t major = 0, minor = 0;
  const char *patch = nullptr, *variant = nullptr;
  ASSERT_EQ(qaicGetAicVersion(&major, &minor, &patch, &variant), QS_SUCCESS);
  EXPECT_EQ(major, LRT_LIB_MAJOR_VERSION);
  EXPECT_EQ(minor, LRT_LIB_MINOR_VERSION);
  EXPECT_STREQ(patch, corelane::version());
  EXPECT_STREQ(variant, "corelane");
}

TEST(QaicDevices, NullPointersAreRefused) {
  std::uint16_t number = 0;
  const char* text = nullptr;
  EXPECT_EQ(qaicGetAicVersion(nullptr, &number, &text, &text), QS_INVAL);
  EXPECT_EQ(qaicGetAicVersion(&number, nullptr, &text, &text), QS_INVAL);
  EXPECT_EQ(qaicGetAicVersion(&number, &number, nullptr, &text), QS_INVAL);
  EXPECT_EQ(qaicGetAicVersion(&number, &number, &text, nullptr), QS_INVAL);
  EXPECT_EQ(qaicGetDeviceIds(nullptr, nullptr), QS_INVAL);
  EXPECT_EQ(qaicGetDeviceInfo(0, nullptr), QS_INVAL);
  EXPECT_EQ(qaicGetResourceInfo(0, nullptr), QS_INVAL);
  EXPECT_EQ(qaicGetPerformanceInfo(0, nullptr), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("qaicGetPerformanceInfo: "));
}

TEST(QaicDevices, AForkedChildIsRefused) {
  const OwnDevices devices({"null:generic:1"});
  QDevInfo info;
  ASSERT_EQ(qaicGetDeviceInfo(0, &info), QS_SUCCESS);
  const OwnContext context({0});
  const pid_t child = fork();
  if (child == 0) {
    QAicContext* made = nullptr;
    const QID device = 0;
    std::uint32_t count = 0;
    const bool refused =
        qaicGetDeviceInfo(0, &info) == QS_ERROR && qaicGetDeviceIds(&count, nullptr) == QS_ERROR &&
        qaicCreateContext(&made, nullptr, 1, &device, nullptr, nullptr, nullptr, nullptr) ==
            QS_ERROR &&
        qaicSetLogLevel(context, QL_INFO) == QS_ERROR && qaicReleaseContext(context) == QS_ERROR &&
        last_error().find("fork") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace corelane::qaic
