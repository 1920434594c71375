#include "drivers/virtual/ort/ort_optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <sstream>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "drivers/virtual/ort/ort_library.h"

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

}  // namespace
}  // namespace corelane::drivers::virtual_npu::ort
