// What the RKNN device makes of failures, old libraries, and answers that cannot be.
#include <cstdlib>

#include "corelane/device/host_operator.h"
#include "stub_support.h"

namespace corelane::stub {
namespace {

class StubFailure : public StubTest {};

constexpr const char* kTwoFloats = "in x f32 undef none 0 0 2\nout y f32 undef none 0 0 2\n";

std::string failing(const std::string& function, int code) {
  return image_text(kTwoFloats + ("fail " + function + " " + std::to_string(code) + "\n"));
}

TEST_F(StubFailure, CodesOfTheApiKeepTheirMeaning) {
  open_stub("vendor");
  const std::pair<int, Code> kCodes[] = {
      {-1, Code::kUnsupportedModel}, {-2, Code::kTimeout},          {-3, Code::kEngineFailed},
      {-4, Code::kOutOfMemory},      {-5, Code::kInvalidArgument},  {-6, Code::kMalformed},
      {-7, Code::kWrongState},       {-8, Code::kInvalidArgument},  {-9, Code::kInvalidArgument},
      {-10, Code::kVersionMismatch}, {-11, Code::kVersionMismatch}, {-12, Code::kVersionMismatch},
      {-13, Code::kForeignImage},    {-99, Code::kUnsupportedModel}};
  for (const auto& [code, expected] : kCodes) {
    const auto made = device_->prepare(image_of(failing("rknn_init", code)), {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), expected) << code;
    const std::string& message = made.error().message();
    EXPECT_NE(message.find("rknn_init returned " + std::to_string(code)), std::string::npos)
        << message;
    EXPECT_NE(message.find("2.3.2"), std::string::npos) << message;
    EXPECT_NE(message.find("libstub_vendor.so"), std::string::npos) << message;
  }
}

TEST_F(StubFailure, EachFunctionThatFailsInARunIsNamed) {
  open_stub("vendor");
  for (const char* function :
       {"rknn_inputs_set", "rknn_run", "rknn_outputs_get", "rknn_outputs_release"}) {
    prepare(failing(function, -1));
    const Status status = run();
    EXPECT_EQ(status.code(), Code::kEngineFailed);
    EXPECT_NE(status.message().find(function), std::string::npos) << status.message();
  }
  prepare(failing("rknn_run", -2));
  EXPECT_EQ(run().code(), Code::kTimeout);
}

TEST_F(StubFailure, NpuThatIsNotAvailableIsNoLostDevice) {
  open_stub("vendor");
  prepare(image_text(std::string(kTwoFloats) + "once rknn_run -3\n"));
  const Status status = run();
  EXPECT_EQ(status.code(), Code::kEngineFailed) << "nothing says when it is back";
  EXPECT_EQ(status.cause().code(), Code::kDeviceLost);
  EXPECT_NE(status.message().find("the NPU is not available"), std::string::npos);
  EXPECT_EQ(device_->health(), device::Health::kGood);
  EXPECT_FALSE(executable_->lost());
  EXPECT_TRUE(run().ok());
}

TEST_F(StubFailure, ShortOutputIsABadResult) {
  open_stub("vendor");
  prepare(failing("short_output", 1));
  EXPECT_EQ(run().code(), Code::kBadResult);
}

TEST_F(StubFailure, FailedQueryRefusesTheImageAndLeavesNoContext) {
  open_stub("vendor");
  const auto made = device_->prepare(image_of(failing("rknn_query", -1)), {});
  EXPECT_EQ(made.error().code(), Code::kEngineFailed);
  EXPECT_NE(made.error().message().find("rknn_query"), std::string::npos);
  EXPECT_EQ(counters_->now().inits, 1U);
  EXPECT_EQ(counters_->now().destroys, 1U);
}

TEST_F(StubFailure, ImagesThatTheLibraryDoesNotKnowAreRefused) {
  open_stub("vendor");
  for (const std::string& text :
       {std::string("RKNN of another kind, and long enough"), image_text(""), std::string("x")}) {
    const auto made = device_->prepare(image_of(text), {});
    ASSERT_FALSE(made);
    EXPECT_TRUE(made.error().code() == Code::kUnsupportedModel ||
                made.error().code() == Code::kMalformed)
        << made.error().to_string();
  }
}

TEST_F(StubFailure, TensorsThatCannotBeAreRefusedByName) {
  open_stub("vendor");
  const std::pair<const char*, Code> kImages[] = {
      {"in x f32 blocked none 0 0 1,1,2,2,8\nout y f32 undef none 0 0 2\n", Code::kUnsupported},
      {"in x i4 undef none 0 0 4\nout y f32 undef none 0 0 2\n", Code::kUnsupported},
      {"in x f32 undef none 0 0 4294967295,4294967295,4294967295\nout y f32 undef none 0 0 2\n",
       Code::kMalformed},
      {"in x u8 undef none 0 0 2\nout y f32 undef none 0 0 70000,70000\n", Code::kUnsupported}};
  for (const auto& [lines, code] : kImages) {
    const auto made = device_->prepare(image_of(image_text(lines)), {});
    ASSERT_FALSE(made) << lines;
    EXPECT_EQ(made.error().code(), code) << made.error().to_string();
  }
}

TEST_F(StubFailure, WhatAnOpaqueImageCannotDoIsRefused) {
  open_stub("vendor");
  const auto refused = [&](const device::PrepareOptions& options) {
    return device_->prepare(image_of(image_text(kTwoFloats)), options).error().code();
  };
  device::PrepareOptions options;
  options.exposed_values = {"inner"};
  EXPECT_EQ(refused(options), Code::kUnsupported);
  options = {};
  options.custom_operators = {{"MyOp", ""}};
  options.host_operators = std::make_shared<device::HostOperatorTable>();
  EXPECT_EQ(refused(options), Code::kUnsupported);
  options = {};
  options.precision = device::Precision::kF16;
  EXPECT_EQ(refused(options), Code::kUnsupported);
  options = {};
  options.fast_math = true;
  EXPECT_EQ(refused(options), Code::kUnsupported);
  device::Image ours = image_of(image_text(kTwoFloats));
  ours.kind = "program";
  EXPECT_EQ(device_->prepare(ours, {}).error().code(), Code::kForeignImage);
  prepare(image_text(kTwoFloats));
  EXPECT_EQ(executable_->export_precompiled().error().code(), Code::kUnsupported);
}

TEST_F(StubFailure, OldLibraryWorksWithoutItsYoungerFunctions) {
  open_stub("old");
  EXPECT_EQ(device_->info().engine, "librknnrt 1.2.0 (old@2022)");
  prepare(image_text(kTwoFloats));
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(output<float>()[0], 1);
  EXPECT_EQ(counters_->now().inits, 2U) << "without rknn_dup_context the image is loaded again";
  device::PrepareOptions options;
  options.input_shapes = {Shape{3}};
  const auto refused = device_->prepare(image_of(image_text(kTwoFloats)), options);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("rknn_set_input_shapes"), std::string::npos);
  EXPECT_NE(refused.error().message().find("1.2.0"), std::string::npos);
}

TEST_F(StubFailure, ImageThatChangedIsNotLoadedAgain) {
  open_stub("old");
  Status now;
  device::Image image = image_of(image_text(kTwoFloats));
  image.intact = [&now] { return now; };
  executable_ = *device_->prepare(image, {});
  bindings_ = *executable_->new_bindings();
  ASSERT_TRUE(run().ok());
  now = error(Code::kIo, "the file was cut");
  ASSERT_TRUE(run().ok()) << "a context that is there reads no file";
  bindings_ = *executable_->new_bindings();
  EXPECT_EQ(run().code(), Code::kIo);
  EXPECT_EQ(device_->prepare(image, {}).error().code(), Code::kIo);
  EXPECT_EQ(counters_->now().inits, 2U);
}

TEST_F(StubFailure, SeveralCoresNeedACoreMask) {
  const auto refused = open("no_mask");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("rknn_set_core_mask"), std::string::npos);
  EXPECT_NE(refused.error().message().find("0.9.1"), std::string::npos);
  open_stub("no_mask", "rk3566");
  prepare(image_text(kTwoFloats));
  EXPECT_TRUE(run().ok());
}

TEST_F(StubFailure, ChipWithFewerCoresThanTheProfileIsReported) {
  open_stub("one_core", "rk3588");
  prepare(image_text(kTwoFloats));
  const Status status = run();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("rknn_set_core_mask"), std::string::npos);
  EXPECT_NE(status.message().find("if this chip has one core, open rknn:rk3566"), std::string::npos)
      << status.message();
}

TEST_F(StubFailure, LibraryThatIsNoneIsRefused) {
  const auto no_run = open("no_run");
  ASSERT_FALSE(no_run);
  EXPECT_EQ(no_run.error().code(), Code::kUnsupported);
  EXPECT_NE(no_run.error().message().find("rknn_run"), std::string::npos);
  const auto none = device::open_device("rknn?library=/nowhere/librknnrt.so");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kIo);
  EXPECT_NE(none.error().message().find("/nowhere/librknnrt.so"), std::string::npos);
  EXPECT_NE(none.error().message().find("CORELANE_RKNN_LIBRARY"), std::string::npos);
}

TEST_F(StubFailure, TextsThatMeanNothingAreRefused) {
  for (const std::string& text :
       {device_text("vendor", "aic100"), device_text("vendor", "generic:4"),
        device_text("vendor", "rk9999"), device_text("vendor") + "&speed=high"}) {
    const auto opened = device::open_device(text);
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code(), Code::kInvalidArgument) << opened.error().to_string();
  }
}

TEST_F(StubFailure, EnvironmentNamesTheLibraryAndTheOptionGoesFirst) {
  ::setenv("CORELANE_RKNN_LIBRARY", library_of("old").c_str(), 1);
  device::OpenOptions own;
  own.own_instance = true;
  const auto by_environment = device::open_device("rknn:rk3588", own);
  const auto by_option = open("vendor");
  ::unsetenv("CORELANE_RKNN_LIBRARY");
  ASSERT_TRUE(by_environment) << by_environment.error().to_string();
  EXPECT_EQ((*by_environment)->info().engine, "librknnrt 1.2.0 (old@2022)");
  EXPECT_EQ((*by_option)->info().engine, "librknnrt 2.3.2 (stub@2025-04-09)");
}

TEST_F(StubFailure, OptionWithoutALibraryIsLeftOut) {
  ::setenv("CORELANE_RKNN_LIBRARY", library_of("old").c_str(), 1);
  device::OpenOptions own;
  own.own_instance = true;
  const auto opened = device::open_device("rknn:rk3588?library=", own);
  ::unsetenv("CORELANE_RKNN_LIBRARY");
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ((*opened)->info().engine, "librknnrt 1.2.0 (old@2022)");
}

}  // namespace
}  // namespace corelane::stub
