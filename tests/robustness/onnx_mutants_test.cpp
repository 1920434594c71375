// 10,000 damaged ONNX models, of our own making and from the tools' packages.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "mutator.h"
#include "onnx/onnx_test_model.h"
#include "onnx_outcome.h"
#include "sample_models.h"

namespace corelane::robustness {
namespace {

namespace fs = std::filesystem;

ImportOptions options_of(Mutator& m, const std::string& name = {}) {
  ImportOptions o;
  if (name == "custom") o.custom_operators = {"mine.MyOp"};
  o.refuse_known_wrong = m.below(2) == 0;
  if (name == "convolution" && m.below(4) == 0) o.dims = {{"d0", 2}};
  if (m.below(8) == 0) o.batch = 4;
  return o;
}

TEST(OnnxMutants, TheModelsThemselvesAreImported) {
  for (const SampleModel& model : sample_models()) {
    ImportOptions options;
    if (model.name == "custom") options.custom_operators = {"mine.MyOp"};
    const auto imported = import_onnx(model.bytes, options);
    ASSERT_TRUE(imported) << model.name << ": " << imported.error().to_string();
    EXPECT_TRUE(import_and_judge(model.bytes, options)) << model.name;
  }
}

TEST(OnnxMutants, TruncationAtEveryByteDoesNoHarm) {
  for (const SampleModel& model : sample_models()) {
    for (std::size_t n = 0; n < model.bytes.size(); ++n) {
      const ByteVector cut(model.bytes.begin(),
                           model.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      import_and_judge(cut, {});
      ASSERT_FALSE(::testing::Test::HasFailure()) << model.name << " cut at " << n;
    }
  }
}

TEST(OnnxMutants, NineThousandSmallOnesDoNoHarm) {
  const std::vector<SampleModel> models = sample_models();
  std::size_t imported = 0;
  for (std::uint64_t seed = 0; seed < 9000; ++seed) {
    Mutator mutator(seed);
    const SampleModel& model = models[mutator.below(models.size())];
    const ByteVector& other = models[mutator.below(models.size())].bytes;
    const ByteVector mutant = mutator.mutate(model.bytes, other, 0, model.bytes.size());
    imported += import_and_judge(mutant, options_of(mutator, model.name)) ? 1 : 0;
    ASSERT_FALSE(::testing::Test::HasFailure()) << model.name << ", seed " << seed;
  }
  // Damage to a weight or a name leaves a model; damage to the framing does not.
  EXPECT_GT(imported, 500U);
  EXPECT_LT(imported, 8500U);
}

TEST(OnnxMutants, ThreeThousandOfRewrittenOperatorsDoNoHarm) {
  const std::vector<SampleModel> models = rule_models();
  for (const SampleModel& model : models) import_and_judge(model.bytes, {});
  ASSERT_FALSE(::testing::Test::HasFailure());
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Mutator mutator(seed);
    const SampleModel& model = models[mutator.below(models.size())];
    const ByteVector& other = models[mutator.below(models.size())].bytes;
    import_and_judge(mutator.mutate(model.bytes, other, 0, model.bytes.size()),
                     options_of(mutator));
    ASSERT_FALSE(::testing::Test::HasFailure()) << model.name << ", seed " << seed;
  }
}

/// Small models that the onnx and onnxruntime packages carry.
std::vector<ByteVector> packaged_models(std::size_t at_least, std::size_t at_most) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(ROBUSTNESS_VENV, ignored)) {
    const bool fits = entry.path().extension() == ".onnx" && entry.is_regular_file() &&
                      entry.file_size() >= at_least && entry.file_size() <= at_most;
    if (fits) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ByteVector> models;
  for (const fs::path& path : paths)
    if (auto bytes = read_file(path)) models.push_back(std::move(*bytes));
  return models;
}

TEST(OnnxMutants, ThousandOfPackagedModelsDoNoHarm) {
  const std::vector<ByteVector> models = packaged_models(1, 8192);
  if (models.empty()) GTEST_SKIP() << "no small .onnx below " << ROBUSTNESS_VENV;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Mutator mutator(seed);
    const ByteVector& model = models[mutator.below(models.size())];
    const ByteVector& other = models[mutator.below(models.size())];
    import_and_judge(mutator.mutate(model, other, 0, model.size()), options_of(mutator));
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(OnnxMutants, ARealModelDoesNoHarmEither) {
  // The text direction classifier of the OCR package, 0.6 MB.
  const std::vector<ByteVector> models = packaged_models(500'000, 700'000);
  if (models.empty()) GTEST_SKIP() << "no .onnx of 0.5 to 0.7 MB below " << ROBUSTNESS_VENV;
  const ByteVector& model = models[0];
  EXPECT_TRUE(import_and_judge(model, {}));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Mutator mutator(seed);
    import_and_judge(mutator.mutate(model, model, 0, model.size()), options_of(mutator));
    const auto cut = static_cast<std::ptrdiff_t>(mutator.below(model.size()));
    import_and_judge(ByteVector(model.begin(), model.begin() + cut), {});
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

/// Initialisers that stay in the graph: what is known of each must not outgrow the file.
TEST(OnnxMutants, ManySmallConstantsStayWithinTheMemoryBound) {
  onnx::TestModel m;
  m.input("x", {4}).output("y", {4}).node("Relu", {"x"}, {"y"});
  for (int i = 0; i < 60'000; ++i) {
    auto& t = *m.graph().add_initializer();
    t.set_name("c" + std::to_string(i));
    t.set_data_type(::onnx::TensorProto::INT8);
    t.add_dims(1023);
    t.mutable_raw_data()->assign(1023, '\1');
  }
  EXPECT_TRUE(import_and_judge(m.bytes(), {}));
}

}  // namespace
}  // namespace corelane::robustness
