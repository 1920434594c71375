#include "device/registry/driver_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace corelane::device {
namespace {

/// What the module of a test says of itself.
DriverDescription told;

const DriverDescription& tell() { return told; }

Result<OpenedEngine> no_engine(const OpenRequest& request) {
  return OpenedEngine{request.info, nullptr};
}

Result<std::shared_ptr<Device>> no_device(const OpenRequest&) { return std::shared_ptr<Device>(); }

class DriverLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    told = {};
    told.kind = "duo";
    told.chips = {{"duo", 2, 0}};
    told.files = {{"duo-image", "DUO"}};
  }
  static Status check(const DriverModule* module) {
    return check_module(module, "/drivers/libcorelane_duo.so", "duo");
  }
  /// Refused as the driver's mistake, named by its file.
  static void expect_refused(const DriverModule& module, Code code, const std::string& why) {
    const Status status = check(&module);
    EXPECT_EQ(status.code(), code) << why;
    EXPECT_THAT(status.message(), testing::HasSubstr("libcorelane_duo.so"));
    EXPECT_THAT(status.message(), testing::HasSubstr(why));
  }
  static constexpr DriverModule kGood = {CORELANE_DRIVER_BUILD, &tell, &no_engine};
};

TEST_F(DriverLoaderTest, AModuleThatKeepsItsContractIsTaken) {
  EXPECT_TRUE(check(&kGood).ok()) << check(&kGood).to_string();
  told.chips.clear();
  told.most_generic_cores = CoreSet::kMaxCores;
  const DriverModule device = {CORELANE_DRIVER_BUILD, &tell, nullptr, &no_device};
  EXPECT_TRUE(check(&device).ok()) << check(&device).to_string();
}

TEST_F(DriverLoaderTest, AModuleWithoutAFunctionIsRefused) {
  EXPECT_EQ(check(nullptr).code(), Code::kVersionMismatch);
  expect_refused({nullptr, &tell, &no_engine}, Code::kVersionMismatch, "'none'");
  expect_refused({CORELANE_DRIVER_BUILD, nullptr, &no_engine}, Code::kIo, "describe()");
  expect_refused({CORELANE_DRIVER_BUILD, &tell, nullptr}, Code::kIo, "none of open_engine()");
  expect_refused({CORELANE_DRIVER_BUILD, &tell, &no_engine, &no_device}, Code::kIo,
                 "both of open_engine()");
}

TEST_F(DriverLoaderTest, ADescriptionOfNoDeviceIsRefused) {
  told.kind = "trio";
  expect_refused(kGood, Code::kIo, "rename the file");
  SetUp();
  told.chips.clear();
  expect_refused(kGood, Code::kIo, "no chip");
  told.engine_only = true;
  EXPECT_TRUE(check(&kGood).ok()) << "an engine has no chips";
  SetUp();
  told.most_generic_cores = 99'999'999'999;
  expect_refused(kGood, Code::kIo, "up to 64");
  for (const std::size_t cores : {std::size_t{0}, std::size_t{65}}) {
    SetUp();
    told.chips.push_back({"odd", cores, 0});
    expect_refused(kGood, Code::kIo, "1 to 64");
  }
  SetUp();
  told.files.push_back({"any", ""});
  expect_refused(kGood, Code::kIo, "'any'");
}

}  // namespace
}  // namespace corelane::device
