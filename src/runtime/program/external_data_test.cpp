#include "corelane/runtime/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "corelane/base/file.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane {
namespace {

using testing::OnnxBuilder;

std::string model_with_external() {
  return OnnxBuilder()
      .input("x", {4})
      .output("y", {4})
      .external("a", {4}, testing::kOnnxFloat, "weights.bin", 0, 16)
      .external("b", {4}, testing::kOnnxFloat, "more/weights.bin", 0, 16)
      .external("c", {4}, testing::kOnnxFloat, "weights.bin", 16, 16)
      .node("Add", {"x", "a"}, {"y"})
      .build();
}

TEST(ExternalData, LocationsAreListedOnceInOrder) {
  const auto locations = external_data_locations(as_byte_span(model_with_external()));
  ASSERT_TRUE(locations) << locations.error().to_string();
  EXPECT_EQ(*locations, (std::vector<std::string>{"weights.bin", "more/weights.bin"}));
}

TEST(ExternalData, FilesAreTheLocationsThatAreThere) {
  std::string name = ::testing::TempDir() + "corelane-external-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const std::string model = model_with_external();
  EXPECT_THAT(external_data_files(as_byte_span(model), folder), ::testing::IsEmpty());
  ASSERT_TRUE(write_file_atomic(folder / "more/weights.bin", {}).ok());
  EXPECT_THAT(external_data_files(as_byte_span(model), folder),
              ::testing::ElementsAre(folder / "more/weights.bin"));
  EXPECT_THAT(external_data_files(as_byte_span(model).first(7), folder), ::testing::IsEmpty())
      << "7 bytes are not a model";
  std::filesystem::remove_all(folder);
}

TEST(ExternalData, ModelWithoutAnyHasNone) {
  const auto locations = external_data_locations(as_byte_span(testing::relu_model({4})));
  ASSERT_TRUE(locations);
  EXPECT_TRUE(locations->empty());
}

TEST(ExternalData, EveryTruncationIsAnErrorOrFindsNoMore) {
  const std::string model = model_with_external();
  for (std::size_t size = 0; size < model.size(); ++size) {
    const auto locations = external_data_locations(as_byte_span(model).first(size));
    if (locations)
      EXPECT_LE(locations->size(), 2U);
    else
      EXPECT_EQ(locations.error().code(), Code::kMalformed);
  }
}

TEST(ExternalData, DeepNestingIsRefused) {
  std::string message;
  for (int i = 0; i < 300; ++i) {  // graph > node > attribute > graph > ...
    const char tags[] = {0x32, 0x2A, 0x0A};
    std::string outer(1, tags[i % 3]);
    for (std::size_t n = message.size();; n >>= 7) {
      outer += static_cast<char>((n & 0x7F) | (n >= 0x80 ? 0x80 : 0));
      if (n < 0x80) break;
    }
    message = outer + message;
  }
  std::string model = "\x3A";
  for (std::size_t n = message.size();; n >>= 7) {
    model += static_cast<char>((n & 0x7F) | (n >= 0x80 ? 0x80 : 0));
    if (n < 0x80) break;
  }
  model += message;
  EXPECT_EQ(external_data_locations(as_byte_span(model)).error().code(), Code::kMalformed);
}

}  // namespace
}  // namespace corelane
