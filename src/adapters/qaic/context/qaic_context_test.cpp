// Contexts: statements 7 to 10 and 12 of the object runtime, and who hears of failures.
#include "adapters/qaic/context/qaic_context.h"

#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "adapters/qaic/api/qaic_test_support.h"
#include "corelane/base/log.h"
#include "device/registry/testing/listed_faults.h"

namespace corelane::qaic {
namespace {

using namespace test;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What the user's functions were called with.
struct Heard {
  struct Failure {
    QAicContextID context;
    QAicErrorType type;
    std::string text;
  };
  static void log(QLogLevel level, const char* message, void* data) {
    Heard& heard = *static_cast<Heard*>(data);
    {
      const std::lock_guard lock(heard.mutex);
      heard.lines.emplace_back(level, message);
    }
    if (heard.on_line) heard.on_line();
  }
  static void error(QAicContextID context, const char* text, QAicErrorType type, const void* data,
                    size_t size, void* user) {
    Heard& heard = *static_cast<Heard*>(user);
    EXPECT_EQ(data, nullptr);
    EXPECT_EQ(size, 0U);
    {
      const std::lock_guard lock(heard.mutex);
      heard.failures.push_back({context, type, text});
    }
    if (heard.on_error) heard.on_error(text);
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex);
    std::vector<std::string> texts;
    for (const auto& [level, text] : lines) texts.push_back(text);
    return texts;
  }
  std::size_t failed() {
    const std::lock_guard lock(mutex);
    return failures.size();
  }
  /// Until so many failures were heard of.
  void await(std::size_t count) {
    while (failed() < count) std::this_thread::yield();
  }
  std::mutex mutex;
  std::vector<std::pair<QLogLevel, std::string>> lines;
  std::vector<Failure> failures;
  std::function<void()> on_line;
  std::function<void(const std::string&)> on_error;
};

/// The lines of the library's log while it lives.
struct LibraryLog {
  LibraryLog() {
    log::set_callback([this](log::Level, std::string_view, std::string_view text) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(text);
    });
  }
  ~LibraryLog() { log::set_callback({}); }
  std::vector<std::string> with(std::string_view part) {
    const std::lock_guard lock(mutex);
    std::vector<std::string> found;
    for (const std::string& line : lines)
      if (line.find(part) != line.npos) found.push_back(line);
    return found;
  }
  std::mutex mutex;
  std::vector<std::string> lines;
};

QStatus create(QAicContextProperties_t properties, const std::vector<QID>& devices) {
  return OwnContext(devices, properties).status;
}

/// One job on a device: it takes the next of the faults.
void run_job(device::Device& device) {
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
  device::Submission job;
  job.executable = device.prepare(image, {}).value();
  job.bindings = job.executable->new_bindings().value();
  (void)device.make_queue({}).value()->submit(job).value();
}

/// Waits until observers that were there before it have heard what happened.
class Settled {
 public:
  explicit Settled(const OwnDevices& devices) {
    for (const auto& device : devices.devices) {
      device::ObserverOptions watch;
      watch.on_event = [](const device::Event&) {};
      observations_.push_back(device->observe(std::move(watch)).value());
    }
  }
  void wait() {
    for (const auto& observation : observations_) EXPECT_TRUE(observation->flush());
  }

 private:
  std::vector<std::shared_ptr<device::Observation>> observations_;
};

TEST(QaicContext, UndefinedPropertiesAreRefused) {
  const OwnDevices devices({"null:generic:1"});
  EXPECT_EQ(create(QAIC_CONTEXT_DEFAULT, {0}), QS_SUCCESS);
  EXPECT_EQ(create(QAIC_CONTEXT_COLLECT_DEVICE_LOGS, {0}), QS_SUCCESS);
  for (unsigned bit = 1; bit < 32; ++bit) {
    EXPECT_EQ(create(1U << bit, {0}), QS_INVAL);
    EXPECT_THAT(last_error(), HasSubstr("undefined bits")) << bit;
  }
  EXPECT_EQ(create(0xffffffffU, {0}), QS_INVAL);
}

TEST(QaicContext, TakesEachOfItsDevicesOnceAndOneAtLeast) {
  const OwnDevices devices({"null:generic:1", "null:generic:2"});
  EXPECT_EQ(create(0, {0, 1}), QS_SUCCESS);
  EXPECT_EQ(create(0, {1, 0, 1}), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("device 1 is twice"));
  EXPECT_EQ(create(0, {}), QS_INVAL);
  EXPECT_EQ(create(0, {0, 2}), QS_NODEV);
  EXPECT_EQ(create(0, {-1}), QS_NODEV);
}

TEST(QaicContext, NumbersAreUnique) {
  const OwnDevices devices({"null:generic:1"});
  std::set<QAicContextID> ids;
  std::vector<std::unique_ptr<OwnContext>> contexts;
  for (int i = 0; i < 20; ++i) {
    contexts.push_back(std::make_unique<OwnContext>(std::vector<QID>{0}));
    ids.insert(contexts.back()->id());
    if (i % 2 == 0) contexts.pop_back();
  }
  EXPECT_EQ(ids.size(), 20U);
  EXPECT_FALSE(ids.contains(0)) << "0 stands for no context";
}

TEST(QaicContext, TheEndOfAContextGivesItsDevicesBack) {
  const Environment list("CORELANE_QAIC_DEVICES", "null:generic:1?name=given_back");
  for (const QAicContextProperties_t properties :
       {QAIC_CONTEXT_DEFAULT, QAIC_CONTEXT_COLLECT_DEVICE_LOGS}) {
    std::weak_ptr<device::Device> device;
    {
      const OwnContext context({0}, properties);
      device = open_device(0).value();
      EXPECT_FALSE(device.expired());
    }
    EXPECT_TRUE(device.expired());
  }
}

TEST(QaicContext, LinesBelowTheLevelNeverReachTheUser) {
  const OwnDevices devices({"null:generic:1"});
  for (const QAicContextProperties_t properties :
       {QAIC_CONTEXT_DEFAULT, QAIC_CONTEXT_COLLECT_DEVICE_LOGS}) {
    Heard heard;
    {
      const OwnContext context({0}, properties, Heard::log, &heard);
      QLogLevel level = QL_DEBUG;
      ASSERT_EQ(qaicGetLogLevel(context, &level), QS_SUCCESS);
      EXPECT_EQ(level, QL_WARN) << "at first";
      for (const QLogLevel lowest : {QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR}) {
        ASSERT_EQ(qaicSetLogLevel(context, lowest), QS_SUCCESS);
        ASSERT_EQ(qaicGetLogLevel(context, &level), QS_SUCCESS);
        EXPECT_EQ(level, lowest);
        for (const QLogLevel line : {QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR})
          ASSERT_EQ(qaicContextLog(context, line, "line"), QS_SUCCESS);
        // What waits to be merged is delivered by the level of its delivery.
        if (properties != 0) break;
      }
    }
    std::vector<QLogLevel> levels;
    for (const auto& [level, text] : heard.lines) levels.push_back(level);
    if (properties == 0)
      EXPECT_THAT(levels, ElementsAre(QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR, QL_INFO, QL_WARN,
                                      QL_ERROR, QL_WARN, QL_ERROR, QL_ERROR));
    else
      EXPECT_THAT(levels, ElementsAre(QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR));
  }
}

TEST(QaicContext, LevelsThatAreNoneAreRefused) {
  const OwnDevices devices({"null:generic:1"});
  const OwnContext context({0});
  for (const int number : {-1, 4, 1000}) {
    const auto level = static_cast<QLogLevel>(number);
    EXPECT_EQ(qaicSetLogLevel(context, level), QS_INVAL);
    EXPECT_THAT(last_error(), HasSubstr("QL_ERROR (3)"));
    EXPECT_EQ(qaicContextLog(context, level, "line"), QS_INVAL);
  }
}

TEST(QaicContext, WithoutFunctionsTheLibrarysLogHears) {
  const OwnDevices devices({"null:generic:1"}, std::make_shared<device::ListedFaults>(
                                                   std::vector{device::Fault::kLost}));
  LibraryLog library;
  const OwnContext context({0});
  Settled settled(devices);
  ASSERT_EQ(qaicContextLog(context, QL_ERROR, "to the library"), QS_SUCCESS);
  EXPECT_EQ(library.with("to the library").size(), 1U);
  run_job(*devices.devices[0]);
  while (library.with("device 0 (").empty()) std::this_thread::yield();
  settled.wait();
  EXPECT_EQ(library.with("device 0 (").size(), 1U);
}

/// Statement 8, and once for each event.
TEST(QaicContext, ALostDeviceIsReportedOnceWithTheNumber) {
  const auto faults = std::make_shared<device::ListedFaults>(
      std::vector{device::Fault::kLost, device::Fault::kLost});
  const OwnDevices devices({"null:generic:1", "null:generic:1"}, faults);
  Heard both, other;
  const OwnContext first({0, 1}, 0, nullptr, nullptr, Heard::error, &both);
  const OwnContext second({1}, 0, nullptr, nullptr, Heard::error, &other);
  Settled settled(devices);
  run_job(*devices.devices[0]);
  both.await(1);
  settled.wait();
  ASSERT_EQ(both.failed(), 1U);
  EXPECT_EQ(both.failures[0].context, first.id());
  EXPECT_EQ(both.failures[0].type, QAIC_ERROR_CONTEXT_RUNTIME);
  EXPECT_THAT(both.failures[0].text, HasSubstr("device 0 ("));
  EXPECT_EQ(other.failed(), 0U);
  QDevInfo info;
  ASSERT_EQ(qaicGetDeviceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(info.devStatus, QDS_ERROR);
  devices.clock->advance(milliseconds(100));
  ASSERT_EQ(qaicGetDeviceInfo(0, &info), QS_SUCCESS);
  EXPECT_EQ(info.devStatus, QDS_READY);
  run_job(*devices.devices[1]);
  devices.clock->advance(milliseconds(100));
  both.await(2);
  other.await(1);
  settled.wait();
  EXPECT_EQ(both.failed(), 2U);
  ASSERT_EQ(other.failed(), 1U);
  EXPECT_EQ(other.failures[0].context, second.id());
}

/// The open code's list of listeners breaks when one of them goes.
TEST(QaicContext, TheEndOfOneLeavesTheOthersTheirHandlers) {
  const OwnDevices devices({"null:generic:1"}, std::make_shared<device::ListedFaults>(
                                                   std::vector{device::Fault::kLost}));
  Heard heard[4];
  std::vector<std::unique_ptr<OwnContext>> contexts;
  for (Heard& one : heard)
    contexts.push_back(std::make_unique<OwnContext>(std::vector<QID>{0}, 0U, nullptr, nullptr,
                                                    Heard::error, &one));
  contexts[0].reset();
  contexts[2].reset();
  Settled settled(devices);
  run_job(*devices.devices[0]);
  heard[1].await(1);
  heard[3].await(1);
  settled.wait();
  EXPECT_EQ(heard[0].failed() + heard[2].failed(), 0U);
  EXPECT_EQ(heard[1].failed() + heard[3].failed(), 2U);
}

TEST(QaicContext, AHandlerMayReleaseItsContextAndCallAnything) {
  const OwnDevices devices({"null:generic:1", "null:generic:1"},
                           std::make_shared<device::ListedFaults>(
                               std::vector{device::Fault::kLost, device::Fault::kLost}));
  Heard heard;
  OwnContext context({0, 1}, QAIC_CONTEXT_COLLECT_DEVICE_LOGS, Heard::log, &heard, Heard::error,
                     &heard);
  Settled settled(devices);
  std::promise<void> done;
  heard.on_error = [&](const std::string&) {
    QResourceInfo info;
    EXPECT_EQ(qaicGetResourceInfo(1, &info), QS_SUCCESS);
    EXPECT_EQ(qaicContextLog(context, QL_ERROR, "inside"), QS_SUCCESS);
    EXPECT_EQ(qaicReleaseContext(context), QS_SUCCESS) << last_error();
    EXPECT_EQ(qaicReleaseContext(context), QS_INVAL);
    done.set_value();
  };
  run_job(*devices.devices[0]);
  done.get_future().wait();
  run_job(*devices.devices[1]);
  settled.wait();
  EXPECT_EQ(heard.failed(), 1U) << "none after the release";
  context.gone();
}

/// Each of two handlers ends the context of the other while both run, in threads of two devices.
TEST(QaicContext, HandlersThatReleaseEachOthersContextsEnd) {
  const OwnDevices devices({"null:generic:1", "null:generic:1"},
                           std::make_shared<device::ListedFaults>(
                               std::vector{device::Fault::kLost, device::Fault::kLost}));
  Heard heard[2];
  OwnContext contexts[] = {OwnContext({0, 1}, 0, nullptr, nullptr, Heard::error, &heard[0]),
                           OwnContext({0, 1}, 0, nullptr, nullptr, Heard::error, &heard[1])};
  std::promise<void> entered[2], ended[2];
  for (const std::size_t me : {0, 1}) {
    heard[me].on_error = [&, me](const std::string& text) {
      // Of the two losses, each handler acts on one.
      if (text.find(fmt::format("device {} (", me)) == std::string::npos) return;
      entered[me].set_value();
      entered[1 - me].get_future().wait();
      EXPECT_EQ(qaicReleaseContext(contexts[1 - me]), QS_SUCCESS) << last_error();
      ended[me].set_value();
    };
  }
  run_job(*devices.devices[0]);
  run_job(*devices.devices[1]);
  for (auto& one : ended) one.get_future().wait();
  for (OwnContext& context : contexts) context.gone();
}

TEST(QaicContext, WhatFunctionsThrowIsCaughtAndReportedOnce) {
  const OwnDevices devices({"null:generic:1"});
  LibraryLog library;
  Heard heard;
  heard.on_line = [] { throw std::runtime_error("of the user"); };
  const OwnContext context({0}, 0, Heard::log, &heard);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(qaicContextLog(context, QL_ERROR, "line"), QS_SUCCESS);
  EXPECT_EQ(heard.lines.size(), 5U);
  EXPECT_THAT(library.with("of the user"), ElementsAre("the log callback threw: of the user"));
  EXPECT_EQ(find<ContextObject>(context).value()->exceptions(), 5U);
}

TEST(QaicContext, ALogCallbackMayCallTheContext) {
  const OwnDevices devices({"null:generic:1"});
  Heard heard;
  OwnContext context({0}, 0, Heard::log, &heard);
  heard.on_line = [&] {
    if (heard.lines.size() < 3) EXPECT_EQ(qaicContextLog(context, QL_ERROR, "again"), QS_SUCCESS);
    if (heard.lines.size() == 3) EXPECT_EQ(qaicSetLogLevel(context, QL_DEBUG), QS_SUCCESS);
  };
  EXPECT_EQ(qaicContextLog(context, QL_ERROR, "first"), QS_SUCCESS);
  EXPECT_THAT(heard.texts(), ElementsAre("first", "again", "again"));
}

/// The user may free what the functions use as soon as the release returns.
TEST(QaicContext, NoFunctionIsCalledAfterTheRelease) {
  const OwnDevices devices({"null:generic:1"});
  for (int round = 0; round < 50; ++round) {
    auto heard = std::make_unique<Heard>();
    OwnContext context({0}, 0, Heard::log, heard.get());
    const auto kept = find<ContextObject>(context).value();
    std::atomic<bool> going{true};
    std::thread writer([&] {
      while (going) kept->log(QL_ERROR, "line");
    });
    while (heard->texts().empty()) std::this_thread::yield();
    LibraryLog rest;
    ASSERT_EQ(qaicReleaseContext(context), QS_SUCCESS);
    context.gone();
    heard.reset();
    going = false;
    writer.join();
  }
}

TEST(QaicContext, AContextThatCannotBeMadeIsReportedWithoutANumber) {
  const OwnDevices devices({"null:generic:1"});
  Heard heard;
  const OwnContext context({5}, 0, nullptr, nullptr, Heard::error, &heard);
  EXPECT_EQ(context.status, QS_NODEV);
  ASSERT_EQ(heard.failures.size(), 1U);
  EXPECT_EQ(heard.failures[0].context, 0U);
  EXPECT_EQ(heard.failures[0].type, QAIC_ERROR_CONTEXT_CREATION);
}

TEST(QaicContext, FindDeviceTakesTheFirstWithRoom) {
  // Two cores are wanted; and the program takes 4 x 1024 x 4 bytes.
  const OwnDevices devices(
      {"null:generic:1", "null:generic:4?memory=8k", "null:generic:4?memory=1M", "null:generic:2"});
  ImportOptions import;
  import.cores = 2;
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{1024}}), import));
  QID found = -1;
  EXPECT_EQ(qaicContextFindDevice(OwnContext({0, 1, 2, 3}), qpc, 0, &found), QS_SUCCESS);
  EXPECT_EQ(found, 2);
  EXPECT_EQ(qaicContextFindDevice(OwnContext({3, 2}), qpc, 0, &found), QS_SUCCESS);
  EXPECT_EQ(found, 3) << "in the order of the context";
  found = 77;
  EXPECT_EQ(qaicContextFindDevice(OwnContext({0, 1}), qpc, 0, &found), QS_NODEV);
  EXPECT_EQ(found, 77) << "unchanged";
  EXPECT_THAT(last_error(), HasSubstr("device 0 (null:generic:1#"));
  EXPECT_THAT(last_error(), HasSubstr("2 cores are needed, it has 1"));
  EXPECT_THAT(last_error(), HasSubstr("16 KiB are needed, 8 of its 8 are free"));
}

TEST(QaicContext, FindDeviceSeesWhatIsHeldAndLost) {
  const OwnDevices devices(
      {"null:generic:2", "null:generic:2"},
      std::make_shared<device::ListedFaults>(std::vector{device::Fault::kLost}));
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{4}})));
  const OwnContext context({0, 1});
  device::Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
  const auto executable = devices.devices[0]->prepare(image, {}).value();
  const auto all =
      executable->make_resident(device::CoreSet::first(2), device::Residency::kExclusive).value();
  QID found = -1;
  EXPECT_EQ(qaicContextFindDevice(context, qpc, 0, &found), QS_SUCCESS);
  EXPECT_EQ(found, 1);
  run_job(*devices.devices[1]);
  while (devices.devices[1]->health() != device::Health::kLost) std::this_thread::yield();
  EXPECT_EQ(qaicContextFindDevice(context, qpc, 0, &found), QS_NODEV);
  EXPECT_THAT(last_error(), HasSubstr("1 cores are needed, 0 of its 2 are free"));
  EXPECT_THAT(last_error(), HasSubstr("it is lost"));
  // Without a container: the first that is ready.
  EXPECT_EQ(qaicContextFindDevice(context, nullptr, 0, &found), QS_SUCCESS);
  EXPECT_EQ(found, 0);
}

/// Each function with a handle that is null, released, foreign or of another kind.
TEST(QaicContext, WrongHandlesAreRefused) {
  const OwnDevices devices({"null:generic:1"});
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{4}})));
  const OwnContext live({0});
  OwnContext released({0});
  ASSERT_EQ(qaicReleaseContext(released), QS_SUCCESS);
  int foreign = 0;
  auto* const wrong = reinterpret_cast<QAicContext*>(static_cast<QAicQpcObj*>(qpc));
  for (QAicContext* const handle :
       {static_cast<QAicContext*>(nullptr), static_cast<QAicContext*>(released),
        reinterpret_cast<QAicContext*>(&foreign), wrong}) {
    QLogLevel level = QL_DEBUG;
    QAicContextID id = 0;
    QID device = 0;
    EXPECT_EQ(qaicReleaseContext(handle), QS_INVAL);
    EXPECT_EQ(qaicSetLogLevel(handle, QL_INFO), QS_INVAL);
    EXPECT_EQ(qaicGetLogLevel(handle, &level), QS_INVAL);
    EXPECT_EQ(qaicContextGetId(handle, &id), QS_INVAL);
    EXPECT_EQ(qaicContextFindDevice(handle, nullptr, 0, &device), QS_INVAL);
    EXPECT_EQ(qaicContextLog(handle, QL_ERROR, "line"), QS_INVAL);
    EXPECT_THAT(last_error(), HasSubstr("context"));
  }
  EXPECT_EQ(qaicCloseQpc(reinterpret_cast<QAicQpcObj*>(static_cast<QAicContext*>(live))), QS_INVAL);
  released.gone();
}

TEST(QaicContext, NullArgumentsAndWrongProgramsAreRefused) {
  const OwnDevices devices({"null:generic:1"});
  const OwnContext context({0});
  const OwnQpc qpc(container_of(two_by_two({std::int64_t{4}})));
  QID device = 0;
  EXPECT_EQ(qaicCreateContext(nullptr, nullptr, 1, &device, nullptr, nullptr, nullptr, nullptr),
            QS_INVAL);
  QAicContext* made = nullptr;
  EXPECT_EQ(qaicCreateContext(&made, nullptr, 1, nullptr, nullptr, nullptr, nullptr, nullptr),
            QS_INVAL);
  EXPECT_EQ(qaicGetLogLevel(context, nullptr), QS_INVAL);
  EXPECT_EQ(qaicContextGetId(context, nullptr), QS_INVAL);
  EXPECT_EQ(qaicContextLog(context, QL_ERROR, nullptr), QS_INVAL);
  EXPECT_EQ(qaicContextFindDevice(context, nullptr, 0, nullptr), QS_INVAL);
  EXPECT_EQ(qaicContextFindDevice(context, qpc, 1, &device), QS_INVAL);
  EXPECT_THAT(last_error(), HasSubstr("no program 1"));
}

}  // namespace
}  // namespace corelane::qaic
