#include "corelane/device/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "corelane/device/device.h"

namespace corelane::device {
namespace {

/// Sets an environment variable for one scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Environment() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Registry, SpecIsReadAndWritten) {
  const auto spec = parse_device_spec("null:generic:4?b=2ms&a=1ms&name=");
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->kind, "null");
  EXPECT_EQ(spec->profile, "generic:4");
  EXPECT_EQ(spec->options.at("a"), "1ms");
  EXPECT_EQ(spec->to_string(), "null:generic:4?a=1ms&b=2ms&name=");
  EXPECT_EQ(parse_device_spec("null")->to_string(), "null");
  for (const char* text : {"", ":rk3588", "null:", "Null", "null?", "null?a", "null?=1",
                           "null?a=1&a=2", "null?a=1&", "a b"}) {
    const auto bad = parse_device_spec(text);
    ASSERT_FALSE(bad.has_value()) << text;
    EXPECT_EQ(bad.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(bad.error().message(), testing::HasSubstr(default_device()));
  }
}

TEST(Registry, AListOfTextsIsDividedBySemicolons) {
  EXPECT_TRUE(parse_device_list(" ", "LIST")->empty());
  EXPECT_THAT(*parse_device_list(" null:generic:4?name=a,b ;null:generic:2; ", "LIST"),
              testing::ElementsAre("null:generic:4?name=a,b", "null:generic:2"));
  EXPECT_EQ(parse_device_list("null?name=a;null;nosuch:x;nosuch;null:generic:99", "LIST")->size(),
            5U);
  for (const char* text : {"null;;null:generic:2", ";", "null;Null", "null?a=1&b=2;null?b=2&a=1",
                           "null;null:rk3588", "null:generic:3;null:generic:03", "null?name=0;null",
                           "nosuch;nosuch", "virtual;virtual:rk3588"}) {
    const auto bad = parse_device_list(text, "LIST");
    ASSERT_FALSE(bad.has_value()) << text;
    EXPECT_EQ(bad.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(bad.error().message(), testing::HasSubstr("LIST")) << text;
  }
  EXPECT_THAT(parse_device_list("null?name=0;null:rk3588", "LIST").error().message(),
              testing::HasSubstr("such as 'null:rk3588?name=second'"));
  EXPECT_THAT(parse_device_list("null?a=1;null?a=1&name=0", "LIST").error().message(),
              testing::HasSubstr("such as 'null?a=1&name=second'"));
}

TEST(Registry, OneTextIsOneDeviceWhileSomebodyHoldsIt) {
  auto one = *open_device("null:rk3588?b=2ms&a=1ms");
  auto same = *open_device("null:rk3588?a=1ms&b=2ms");
  EXPECT_EQ(one, same);
  EXPECT_NE(one, *open_device("null:rk3588"));
  OpenOptions own;
  own.own_instance = true;
  EXPECT_NE(one, *open_device("null:rk3588?a=1ms&b=2ms", own));
  own.own_instance = false;
  own.clock = std::make_shared<VirtualClock>();
  EXPECT_NE(one, *open_device("null:rk3588?a=1ms&b=2ms", own));
}

TEST(Registry, TextsOfOneDeviceAreOneDevice) {
  auto device = *open_device("null:rk3588");
  for (const char* same : {"null", "null:rk3588?name=0", "null?name=0"})
    EXPECT_EQ(*open_device(same), device) << same;
  EXPECT_EQ(*open_device("null:generic:3"), *open_device("null:generic:03"));
  EXPECT_NE(*open_device("null:generic:3"), device);
  EXPECT_NE(*open_device("null?name=other"), device);
}

TEST(Registry, CallersOfOneTextGetOneDeviceAtTheSameTime) {
  std::vector<std::shared_ptr<Device>> devices(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i)
    threads.emplace_back(
        [&devices, i] { devices[i] = *open_device(i % 2 == 0 ? "null?name=race" : "null?b=1ns"); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 2; i < devices.size(); ++i) EXPECT_EQ(devices[i], devices[i % 2]);
  EXPECT_NE(devices[0], devices[1]);
}

TEST(Registry, FilesOfAllDriversAreKnownWithoutOpeningADevice) {
  for (const FileMagic& file : list_file_magics()) {
    EXPECT_FALSE(file.kind.empty());
    EXPECT_FALSE(file.bytes.empty());
    EXPECT_THAT((*open_device("null"))->info().capabilities.image_kinds,
                testing::Contains(file.kind));
  }
}

TEST(Registry, ExecutableKeepsTheSharedDevice) {
  auto device = *open_device("null:rk3588?name=kept");
  Image image;
  image.kind = "null";
  image.bytes = as_byte_span("input x f32 1,4\noutput y f32 1,4\n");
  auto executable = *device->prepare(image, {});
  device.reset();
  device = *open_device("null:rk3588?name=kept");
  Submission job;
  job.executable = executable;
  job.bindings = *executable->new_bindings();
  EXPECT_TRUE((*device->make_queue({}))->run(job).ok());
}

TEST(Registry, InfoSaysWhatWasOpened) {
  auto device = *open_device("null:generic:4?name=left");
  EXPECT_EQ(device->info().kind, "null");
  EXPECT_EQ(device->info().profile, "generic:4");
  EXPECT_EQ(device->info().instance, "null:generic:4#left");
  EXPECT_EQ(device->info().cores.size(), 4U);
  EXPECT_EQ((*open_device("null:rk3576"))->info().cores.size(), 2U);
  for (const char* one : {"null:rk3568", "null:rk3566", "null:rk3562"})
    EXPECT_EQ((*open_device(one))->info().cores.size(), 1U) << one;
  EXPECT_EQ((*open_device("null:aic100"))->info().cores.size(), 16U);
  EXPECT_EQ((*open_device("null"))->info().cores.size(), 3U);
}

TEST(Registry, LimitsOfTheTextAreThoseOfTheDevice) {
  auto device = *open_device("null:rk3588?memory=64M&depth=3&a=1ms");
  EXPECT_EQ(device->info().memory_limit, std::size_t{64} << 20);
  EXPECT_EQ(device->info().depth_limit, 3U);
  EXPECT_EQ((*open_device("null"))->info().memory_limit, 0U);
  EXPECT_EQ((*open_device("null?memory=7"))->info().memory_limit, 7U);
  EXPECT_EQ((*open_device("null?memory=2k"))->info().memory_limit, 2048U);
  EXPECT_EQ((*open_device("null?memory=1G"))->info().memory_limit, std::size_t{1} << 30);
}

TEST(Registry, LimitsThatAreNoneNameTheOptionAndWhatIsAllowed) {
  for (const char* text : {"memory=", "memory=0", "memory=M", "memory=1T", "memory=-1",
                           "memory=1 M", "memory=99999999999G", "depth=", "depth=0", "depth=many",
                           "depth=1.5", "lease=", "lease=yes"}) {
    const auto bad = open_device(std::string("null:rk3588?") + text);
    ASSERT_FALSE(bad.has_value()) << text;
    EXPECT_EQ(bad.error().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(bad.error().message(), testing::HasSubstr(text));
    EXPECT_FALSE(bad.error().detail(Detail::kAllowed).empty()) << text;
  }
  EXPECT_THAT(open_device("null?memry=1").error().message(),
              testing::HasSubstr("memory, depth, lease"));
}

TEST(Registry, EnvironmentNamesTheDefault) {
  const Environment device("CORELANE_DEVICE", "null:rk3576");
  EXPECT_EQ((*open_device())->info().profile, "rk3576");
}

TEST(Registry, UnknownThingsAreNamedWithWhatIsKnown) {
  const auto kind = open_device("nosuch:rk3588");
  ASSERT_FALSE(kind.has_value());
  EXPECT_EQ(kind.error().code(), Code::kNotFound);
  EXPECT_THAT(kind.error().message(), testing::HasSubstr("null"));
  EXPECT_THAT(kind.error().message(), testing::HasSubstr("CORELANE_DRIVER_PATH"));
  for (const char* text : {"null:rk9999", "null:generic:0", "null:generic:65", "null?a=1",
                           "null?speed=1", "null?core9=1", "null?fail=x", "null?threads=2"}) {
    const auto bad = open_device(text);
    ASSERT_FALSE(bad.has_value()) << text;
    EXPECT_EQ(bad.error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(Registry, AKindThatWasMeantOtherwiseIsProposed) {
  const auto advice = [](const std::string& text) {
    const auto bad = open_device(text);
    return bad ? std::string() : bad.error().message();
  };
  const std::string usual = default_device();
  const std::string chip = usual.substr(usual.find(':') + 1);
  ASSERT_NE(chip, usual);
  EXPECT_THAT(advice(chip), testing::HasSubstr("did you mean '" + usual + "'?"));
  EXPECT_THAT(advice(chip + "?name=left"), testing::HasSubstr("did you mean '" + usual + "'?"));
  EXPECT_THAT(advice("nul:generic:2"), testing::HasSubstr("did you mean 'null'?"));
  EXPECT_THAT(advice("nosuch"), testing::Not(testing::HasSubstr("did you mean")));
  const Environment device("CORELANE_DEVICE", chip.c_str());
  EXPECT_EQ(advice(""), "CORELANE_DEVICE cannot be used");
  EXPECT_THAT(open_device().error().cause().message(), testing::HasSubstr("did you mean"));
}

TEST(Registry, EachFolderThatWasSearchedIsNamedOnce) {
  const Environment path("CORELANE_DRIVER_PATH", "/nowhere:/nowhere");
  const std::string message = open_device("nosuch").error().message();
  const std::size_t first = message.find("/nowhere");
  ASSERT_NE(first, std::string::npos) << message;
  EXPECT_EQ(message.find("/nowhere", first + 1), std::string::npos) << message;
}

TEST(Registry, BadFaultsInTheEnvironmentAreAnError) {
  const Environment faults("CORELANE_FAULTS", "hang=often");
  const auto device = open_device("null:rk3588?name=faults");
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(device.error().to_string(), testing::HasSubstr("CORELANE_FAULTS"));
}

TEST(Registry, BuiltInDriversAreListed) {
  const auto drivers = list_drivers();
  const auto null = std::find_if(drivers.begin(), drivers.end(),
                                 [](const DriverInfo& d) { return d.kind == "null"; });
  ASSERT_NE(null, drivers.end());
  EXPECT_EQ(null->origin, "built in");
  for (const std::string& text : null->profiles) EXPECT_TRUE(open_device(text).has_value()) << text;
}

TEST(Registry, FilesThatAreNotDriversAreRefused) {
  std::string pattern = testing::TempDir() + "corelane-modules-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const Environment path("CORELANE_DRIVER_PATH", folder.c_str());
  std::ofstream(folder / "libcorelane_junk.so") << "this is not a library";
  const auto junk = open_device("junk");
  ASSERT_FALSE(junk.has_value());
  EXPECT_EQ(junk.error().code(), Code::kIo);
  EXPECT_THAT(junk.error().message(), testing::HasSubstr("libcorelane_junk.so"));
  bool listed = false;
  for (const DriverInfo& driver : list_drivers()) listed = listed || driver.kind == "junk";
  EXPECT_TRUE(listed);
  std::filesystem::remove_all(folder);
}

TEST(Registry, ModuleOfAnotherBuildIsRefused) {
  const Environment path("CORELANE_DRIVER_PATH", CORELANE_TEST_MODULES);
  const auto stale = open_device("stale:rk3588");
  ASSERT_FALSE(stale.has_value());
  EXPECT_EQ(stale.error().code(), Code::kVersionMismatch) << stale.error().to_string();
  EXPECT_THAT(stale.error().message(), testing::HasSubstr("another tree"));
}

TEST(Registry, ModuleThatThrowsBreaksNoOtherDriver) {
  const Environment path("CORELANE_DRIVER_PATH", CORELANE_TEST_MODULES);
  const auto drivers = list_drivers();
  EXPECT_THAT(drivers, testing::Contains(testing::Field(&DriverInfo::kind, "throwing")));
  EXPECT_TRUE(open_device("null?name=beside").has_value());
  const auto throwing = open_device("throwing");
  ASSERT_FALSE(throwing.has_value());
  EXPECT_THAT(throwing.error().message(), testing::HasSubstr("libcorelane_throwing.so"));
  EXPECT_THAT(throwing.error().message(), testing::HasSubstr("no chip table"));
}

TEST(Registry, ModuleThatOpensANullDeviceIsRefused) {
  const Environment path("CORELANE_DRIVER_PATH", CORELANE_TEST_MODULES);
  for (const bool own : {true, false}) {
    OpenOptions options;
    options.own_instance = own;
    const auto hollow = open_device("hollow", options);
    ASSERT_FALSE(hollow.has_value());
    EXPECT_EQ(hollow.error().code(), Code::kIo) << hollow.error().to_string();
    EXPECT_THAT(hollow.error().message(), testing::HasSubstr("'hollow'"));
  }
}

}  // namespace
}  // namespace corelane::device
