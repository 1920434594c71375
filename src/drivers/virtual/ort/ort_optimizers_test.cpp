#include "drivers/virtual/ort/ort_optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <sstream>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "drivers/virtual/ort/ort_library.h"
#include "drivers/virtual/test_networks.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> needless(const std::vector<std::string>& operators) {
  std::map<std::string, std::string, std::less<>> nodes;
  for (const std::string& op : operators) nodes[op] = "node";
  std::istringstream text(needless_optimizers(nodes));
  std::vector<std::string> names;
  for (std::string name; std::getline(text, name, ';');) names.push_back(name);
  return names;
}

TEST(OrtOptimizers, ThoseStayWhoseOperatorsTheNetworkHas) {
  EXPECT_THAT(needless({"Conv"}), Not(Contains("NchwcTransformer")));
  EXPECT_THAT(needless({"Relu"}),
              IsSupersetOf({"NchwcTransformer", "AttentionFusion", "GeluFusionL1"}));
  EXPECT_THAT(needless({"ReduceMean", "Erf"}),
              Not(Contains(::testing::AnyOf("LayerNormFusionL1", "GeluFusionL1"))));
  EXPECT_THAT(needless({"DequantizeLinear"}), Not(Contains("QDQSelectorActionTransformer")));
}

TEST(OrtOptimizers, TwoPairsOfQuantizationAreNeverMerged) {
  EXPECT_THAT(needless({"QuantizeLinear", "DequantizeLinear"}), Contains("DoubleQDQPairsRemover"));
}

/// The engine says nothing of a name that it does not know, as after a change of its version.
TEST(OrtOptimizers, TheEngineKnowsEachName) {
  const auto library = OrtLibrary::get();
  ASSERT_TRUE(library) << library.error().to_string();
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        if (std::string_view(info->dlpi_name).find(CORELANE_ORT_LIBRARY) == std::string_view::npos)
          return 0;
        *static_cast<std::string*>(found) = info->dlpi_name;
        return 1;
      },
      &path);
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().to_string();
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  for (const std::string& name : needless({}))
    EXPECT_NE(bytes.find(name), std::string_view::npos) << name;
}

/// A network whose DequantizeLinear makes "d", which `op` reads.
PatchedModel dequantized(std::string_view op, bool quantizes = false) {
  constexpr std::int64_t kUint8 = 2;
  NetworkBuilder b;
  b.input("x", {2, 4}, kUint8).floats("scale", {}, {0.5F}).output("y", {-1, -1});
  b.node("DequantizeLinear", {"x", "scale"}, {"d"}).node(op, {"d"}, {"y"});
  if (quantizes) b.node("QuantizeLinear", {"y", "scale"}, {"q"});
  const auto patched = patch_onnx(onnx_image(b.bytes()), {}, PatchFor::kOnnxRuntime);
  EXPECT_TRUE(patched) << patched.error().to_string();
  return patched.value_or(PatchedModel());
}

TEST(OrtOptimizers, RecurrencesOverDequantizedValuesStayInFloats) {
  for (const char* op : {"LSTM", "GRU", "DynamicQuantizeLSTM", "Shape"})
    EXPECT_FALSE(is_fused_to_integers(dequantized(op))) << op;
  EXPECT_FALSE(is_fused_to_integers(PatchedModel()));
}

TEST(OrtOptimizers, OtherQuantizedNetworksMayBeComputedInIntegers) {
  for (const char* op : {"MatMul", "Gemm", "Conv", "ArgMax", "Transpose", "Relu"})
    EXPECT_TRUE(is_fused_to_integers(dequantized(op))) << op;
  EXPECT_TRUE(is_fused_to_integers(dequantized("LSTM", true)));
}

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
