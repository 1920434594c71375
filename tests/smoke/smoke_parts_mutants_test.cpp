// Damaged files of several networks are loaded and run: each is an error, or computes what it did
// before. CORELANE_MUTANTS says how many there are; a short round by default.
#include <gmock/gmock.h>

#include <cstdlib>

#include "corelane/program/program_file.h"
#include "parts_support.h"
#include "program/program_format.h"
#include "program/testing/program_surgery.h"
#include "robustness/mutator.h"

namespace corelane {
namespace {

using namespace testing;
namespace format = program;

constexpr int kFewParts = 3;
constexpr std::int64_t kFewRows = 8;

std::uint64_t mutants() {
  const char* const text = std::getenv("CORELANE_MUTANTS");
  return text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
}

/// Three networks over one table of 8 KiB, with or without pre-compiled forms.
ByteVector parts_file(const PartsFolder& folder, bool precompile) {
  std::vector<PartSource> sources;
  for (int i = 0; i < kFewParts; ++i) {
    const std::string name = "part" + std::to_string(i);
    sources.push_back(
        {folder.write(name + ".onnx", lookup_model(kFewRows, static_cast<float>(i + 1))), {}, {}});
  }
  CompileOptions options;
  options.precompile = precompile;
  return compile_parts(sources, options).value();
}

/// What came of one mutant.
struct Outcome {
  bool opened = false;
  int right = 0;   ///< Parts that computed what the undamaged one does.
  int failed = 0;  ///< Parts that were refused, or whose run was.
};

Outcome judge(const ByteVector& bytes, const std::shared_ptr<device::Device>& device) {
  Outcome outcome;
  const auto file = ProgramFile::from_bytes(bytes);
  if (!file) {
    EXPECT_NE(file.error().code(), Code::kInternal) << file.error().to_string();
    // What the file does not give, a program of it does not give either.
    EXPECT_FALSE(Program::load(bytes, on(device)));
    return outcome;
  }
  outcome.opened = true;
  for (std::size_t i = 0; i < (*file)->part_count(); ++i) {
    LoadOptions options = on(device);
    options.part = (*file)->description(i).part;
    const auto program = Program::load(*file, options);
    const auto rows =
        program ? looked_up(*program) : Result<std::vector<float>>(error(program.error()));
    if (!rows) {
      EXPECT_NE(rows.error().code(), Code::kInternal) << rows.error().to_string();
      ++outcome.failed;
      continue;
    }
    const float scale = static_cast<float>(i + 1);
    EXPECT_THAT(*rows, ::testing::ElementsAre(1.5F * scale, 3.5F * scale)) << "part " << i;
    ++outcome.right;
  }
  return outcome;
}

TEST(SmokePartsMutants, AreErrorsOrComputeWhatTheyDid) {
  const PartsFolder folder("mutants");
  const ByteVector files[] = {parts_file(folder, false), parts_file(folder, true)};
  const auto device = own_device();
  for (const ByteVector& file : files) ASSERT_EQ(judge(file, device).right, kFewParts);
  std::uint64_t opened = 0;
  std::uint64_t right = 0;
  for (std::uint64_t seed = 0; seed < mutants(); ++seed) {
    robustness::Mutator mutator(seed);
    const std::size_t which = mutator.below(2);
    const ByteVector& file = files[which];
    const std::size_t header_end =
        format::kFixedHeaderBytes +
        read_at<std::uint32_t>(file, offsetof(format::FixedHeader, header_size));
    ByteVector mutant;
    if (seed % 2 == 0) {
      // Anywhere, the checksums as they were.
      mutant = mutator.mutate(file, files[1 - which], 0, file.size());
    } else {
      // In the description, with its checksums mended.
      mutant = mutator.mutate(file, files[1 - which], format::kFixedHeaderBytes, header_end);
      repair_header(mutant);
    }
    const Outcome outcome = judge(mutant, device);
    opened += outcome.opened ? 1 : 0;
    right += outcome.right > 0 ? 1 : 0;
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  // Proof that what comes after the checksums is reached.
  if (mutants() >= 300) {
    EXPECT_GT(opened, mutants() / 100);
    EXPECT_GT(right, 0U);
  }
  std::printf("%llu mutants: %llu opened, %llu computed\n",
              static_cast<unsigned long long>(mutants()), static_cast<unsigned long long>(opened),
              static_cast<unsigned long long>(right));
}

}  // namespace
}  // namespace corelane
