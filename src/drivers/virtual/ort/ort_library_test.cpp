#include "drivers/virtual/ort/ort_library.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "drivers/virtual/ort/ort_telemetry.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

TEST(OrtLibrary, OpensTheReleaseThatTheBuildNames) {
  const auto library = OrtLibrary::get();
  ASSERT_TRUE(library) << library.error().to_string();
  EXPECT_NE(std::string_view(CORELANE_ORT_LIBRARY).find((*library)->version()),
            std::string_view::npos);
  EXPECT_EQ(*library, *OrtLibrary::get());
}

TEST(OrtLibrary, AForkedChildEndsByExit) {
  ASSERT_TRUE(OrtLibrary::get());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // It may hang; it takes milliseconds.
    std::exit(7);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state));
  EXPECT_EQ(WEXITSTATUS(state), 7);
}

TEST(OrtLibrary, TelemetryIsOffWhateverTheEnvironmentSays) {
  ::setenv("ORT_DISABLE_TELEMETRY", "0", 1);
  {
    const TelemetryOff off;
    EXPECT_STREQ(std::getenv("ORT_DISABLE_TELEMETRY"), "1");
  }
  EXPECT_STREQ(std::getenv("ORT_DISABLE_TELEMETRY"), "0");
  ::unsetenv("ORT_DISABLE_TELEMETRY");
}

TEST(OrtLibrary, WhatOthersChangeInTheEnvironmentStays) {
  ::setenv("CORELANE_ORT_TEST", "before", 1);
  {
    const TelemetryOff off;
    ::setenv("CORELANE_ORT_TEST", "changed", 1);
  }
  EXPECT_EQ(std::getenv("ORT_DISABLE_TELEMETRY"), nullptr);
  EXPECT_STREQ(std::getenv("CORELANE_ORT_TEST"), "changed");
  ::unsetenv("CORELANE_ORT_TEST");
}

TEST(OrtComplaint, NamesNodeAndOperatorOfARun) {
  const OrtComplaint complaint = read_ort_complaint(
      "Non-zero status code returned while running Gather node. Name:'pick' Status Message: "
      "indices element out of data bounds, idx=9 must be within the inclusive range [-3,2]");
  EXPECT_EQ(complaint.op, "Gather");
  EXPECT_EQ(complaint.node, "pick");
  EXPECT_EQ(complaint.detail,
            "indices element out of data bounds, idx=9 must be within the inclusive range [-3,2]");
}

TEST(OrtComplaint, NamesNodeAndOperatorOfALoad) {
  const OrtComplaint complaint =
      read_ort_complaint("Node (sum) Op (Add) [ShapeInferenceError] Incompatible dimensions");
  EXPECT_EQ(complaint.op, "Add");
  EXPECT_EQ(complaint.node, "sum");
}

TEST(OrtComplaint, LeavesOutThePlaceInTheSources) {
  const OrtComplaint complaint = read_ort_complaint(
      "/onnxruntime_src/core/graph.cc:120 Status onnxruntime::Graph::Check(const std::string&) "
      "Name "
      "is\nused twice ");
  EXPECT_EQ(complaint.detail, "Name is used twice");
  EXPECT_EQ(complaint.op, "");
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
