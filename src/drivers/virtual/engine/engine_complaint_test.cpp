#include "drivers/virtual/engine/engine_complaint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/virtual/engine/engine_identity.h"

namespace corelane::drivers::virtual_npu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNoRule =
    "Exception from src/inference/src/cpp/core.cpp:105:\n"
    "Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:\n"
    "FrontEnd API failed with OpConversionFailure:\n"
    "Model wasn't fully converted.\n"
    "Summary:\n"
    "-- No conversion rule found for operations: NoSuchOp-17\n"
    "To facilitate the conversion of unsupported operations, refer to the documentation\n\n\n";

constexpr const char* kBadShapes =
    "Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:\n"
    "FrontEnd API failed with OpConversionFailure:\n"
    "Model wasn't fully converted. Failed operations detailed log:\n"
    "-- MatMul-17 with a message:\n"
    "While validating ONNX node '<Node(MatMul): mmbad>': Check 'DimType::merge(a, b, c) || d' "
    "failed at src/core/shape_inference/include/matmul_shape_inference.hpp:65:\n"
    "While validating node 'opset1::MatMul MatMul_26661 (opset1::Parameter x[0]:f32[1,4]) -> "
    "(dynamic[...])' with friendly_name 'MatMul_26661':\n"
    "Incompatible MatMul matrix dimension. First input dimension=4\n\n"
    "Summary:\n"
    "-- Conversion is failed for: MatMul-17\n";

constexpr const char* kAtRun =
    "Exception from src/inference/src/cpp/infer_request.cpp:224:\n"
    "Exception from src/plugins/intel_cpu/src/node.cpp:794:\n"
    "[CPU] Add node with name 'c' Check 'input_shape[j] == 1' failed at "
    "src/plugins/intel_cpu/src/shape_inference/custom/eltwise.cpp:52:\n"
    "Eltwise shape infer input shapes dim index: 0 mismatch\n\n";

TEST(EngineComplaint, MissingOperatorIsNamed) {
  const Status status =
      complaint_status(Code::kUnsupportedModel, "reading", kNoRule, {{"NoSuchOp", "layer7"}});
  EXPECT_EQ(status.message(),
            "reading: operator 'NoSuchOp' (node 'layer7'): the engine has no such operator");
  EXPECT_EQ(status.detail(Detail::kOperator), "NoSuchOp");
  EXPECT_EQ(status.detail(Detail::kNode), "layer7");
}

TEST(EngineComplaint, AnOperatorIsADetailOnlyWhereItIsMissing) {
  const Status status = complaint_status(Code::kUnsupportedModel, "x", kBadShapes, {});
  EXPECT_EQ(status.detail(Detail::kOperator), "");
  EXPECT_EQ(status.detail(Detail::kNode), "mmbad");
}

TEST(EngineComplaint, FailedNodeIsNamedWithItsReason) {
  const Complaint complaint = read_complaint(kBadShapes);
  EXPECT_EQ(complaint.op, "MatMul");
  EXPECT_EQ(complaint.node, "mmbad");
  EXPECT_EQ(complaint.detail, "Incompatible MatMul matrix dimension. First input dimension=4");
}

TEST(EngineComplaint, RunTimeFailureNamesTheNode) {
  const Complaint complaint = read_complaint(kAtRun);
  EXPECT_EQ(complaint.op, "Add");
  EXPECT_EQ(complaint.node, "c");
  EXPECT_THAT(complaint.detail, HasSubstr("dim index: 0 mismatch"));
}

TEST(EngineComplaint, SourcePlacesOfTheEngineAreDropped) {
  for (const char* text : {kNoRule, kBadShapes, kAtRun}) {
    const Status status = complaint_status(Code::kUnsupportedModel, "x", text, {});
    EXPECT_THAT(status.message(), Not(HasSubstr("src/")));
    EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
  }
}

TEST(EngineComplaint, DomainIsDroppedToFindTheNode) {
  const Status status =
      complaint_status(Code::kUnsupportedModel, "x",
                       "-- No conversion rule found for operations: my.MyOp\n", {{"MyOp", "n1"}});
  EXPECT_THAT(status.message(), HasSubstr("(node 'n1')"));
}

TEST(EngineComplaint, EmptyTextStillGivesAMessage) {
  EXPECT_EQ(complaint_status(Code::kEngineFailed, "running", "", {}).message(),
            "running: the engine gave no reason");
}

TEST(EngineComplaint, RefusedNetworksComeWithARemedy) {
  const auto remedy = [](const char* what) {
    return with_remedy(complaint_status(Code::kUnsupportedModel, "x", what, {}));
  };
  const Status missing = remedy("-- No conversion rule found for operations: my.Foo-1\n");
  EXPECT_THAT(missing.message(), HasSubstr("--custom-op my.Foo"));
  EXPECT_EQ(missing.detail(Detail::kOperator), "my.Foo");
  for (const char* rank :
       {"The input data tensor's rank has to be known", "doesn't support If with dynamic rank"})
    EXPECT_THAT(remedy(rank).message(), HasSubstr("depends on the value of an input"));
  EXPECT_THAT(remedy("anything else").message(), HasSubstr("export the model"));
}

TEST(EngineComplaint, OtherFailuresGetNoRemedy) {
  EXPECT_EQ(with_remedy(Status(Code::kOutOfMemory, "no memory")).message(), "no memory");
}

TEST(EngineIdentity, LevelsAreReadFromTheFlags) {
  EXPECT_EQ(isa_from_flags("fpu sse4_1 avx2 fma"), "avx2");
  EXPECT_EQ(isa_from_flags("sse4_1 avx2 avx512f avx512_vnni avx512_bf16"), "avx512+vnni+bf16");
  EXPECT_EQ(isa_from_flags("fp asimd asimdhp asimddp"), "neon+dot+fp16");
  EXPECT_EQ(isa_from_flags("avx20 notavx2"), "baseline");
}

TEST(EngineIdentity, VersionIsTheFrontOfTheBuild) {
  EXPECT_THAT(engine_build(), ::testing::StartsWith(engine_version()));
  EXPECT_THAT(engine_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu
