// 10,000 damaged program files, and false descriptions with right checksums.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "corelane/program/program_file.h"
#include "mutator.h"
#include "outcome.h"
#include "program/program_format.h"
#include "program/testing/program_surgery.h"
#include "program/testing/random_program.h"
#include "program_lies.h"

namespace corelane::robustness {
namespace {

namespace format = program;

constexpr std::size_t kSamples = 60;

/// Forty files of one network, twenty of several.
const std::vector<ByteVector>& samples() {
  static const std::vector<ByteVector> all = [] {
    std::vector<ByteVector> files;
    for (std::size_t i = 0; i < kSamples; ++i) {
      files.push_back(i % 3 == 2 ? testing::sample_parts(100 + i)
                                 : testing::sample_program(100 + i));
    }
    return files;
  }();
  return all;
}

std::size_t header_end(const ByteVector& file) {
  return format::kFixedHeaderBytes +
         testing::read_at<std::uint32_t>(file, offsetof(format::FixedHeader, header_size));
}

/// Checksums cover every byte, so a file that differs at all is refused.
TEST(ProgramMutants, FourThousandWithStaleChecksumsAreAllRefused) {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Mutator mutator(seed);
    const ByteVector& file = samples()[mutator.below(kSamples)];
    const ByteVector& other = samples()[mutator.below(kSamples)];
    const ByteVector mutant = mutator.mutate(file, other, 0, file.size());
    ASSERT_EQ(open_and_judge(mutant), mutant == file) << "seed " << seed;
  }
}

TEST(ProgramMutants, ThreeThousandDescriptionsWithRightChecksumsDoNoHarm) {
  std::size_t valid = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Mutator mutator(seed);
    const ByteVector& file = samples()[mutator.below(kSamples)];
    const ByteVector& other = samples()[mutator.below(kSamples)];
    ByteVector mutant = mutator.mutate(file, other, format::kFixedHeaderBytes, header_end(file));
    testing::repair_header(mutant);
    valid += open_and_judge(mutant) ? 1 : 0;
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  // Some say something else and are valid: proof that the checks after the checksums are reached.
  EXPECT_GT(valid, 100U);
  EXPECT_LT(valid, 2900U);
}

TEST(ProgramMutants, AThousandHeadersWithRightChecksumsDoNoHarm) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Mutator mutator(seed);
    const ByteVector& file = samples()[mutator.below(kSamples)];
    ByteVector mutant = mutator.mutate(file, samples()[0], 8, format::kFixedHeaderBytes);
    if (mutator.below(2) == 0)
      testing::repair_header(mutant);
    else
      testing::repair_fixed_header(mutant);
    open_and_judge(mutant);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

/// The FlatBuffer is well formed, what it says is not.
TEST(ProgramMutants, TwoThousandLiesDoNoHarm) {
  std::map<std::string, int> refused;
  std::size_t valid = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Mutator mutator(seed);
    testing::RandomProgram random(seed);
    Parts parts = seed % 2 == 0 ? Parts::random(random) : Parts::random_networks(random);
    const std::string lie = tell_lie(parts, mutator);
    const ByteVector mutant = parts.assemble();
    if (open_and_judge(mutant))
      ++valid;
    else
      ++refused[lie];
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << ": " << lie;
  }
  EXPECT_GE(refused.size(), 25U);
  EXPECT_LT(valid, 1000U);
}

TEST(ProgramMutants, OverlappingSegmentsAreRefused) {
  testing::RandomProgram random(5);
  Parts parts = Parts::random(random);
  parts.segments[0].size += 64 * 1024;
  EXPECT_FALSE(open_and_judge(parts.assemble(), Verify::kHeader));
}

TEST(ProgramMutants, HugeSegmentsAreRefused) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t huge : {kMax, kMax - 63, kMax / 2 + 1, std::uint64_t{1} << 32}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      testing::RandomProgram random(seed);
      Parts by_size = Parts::random(random);
      by_size.segments.back().size = huge;
      EXPECT_FALSE(open_and_judge(by_size.assemble(), Verify::kHeader));
      Parts by_offset = Parts::random(random);
      by_offset.segments.back().offset = huge / 64 * 64;
      EXPECT_FALSE(open_and_judge(by_offset.assemble(), Verify::kHeader));
    }
  }
}

TEST(ProgramMutants, AWrongSegmentChecksumIsRefused) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    testing::RandomProgram random(seed);
    Parts parts = Parts::random(random);
    ASSERT_TRUE(open_and_judge(parts.assemble())) << seed;
    parts.segments[random.below(parts.segments.size())].crc32c ^= 1U << random.below(32);
    const ByteVector file = parts.assemble();
    EXPECT_FALSE(open_and_judge(file, Verify::kEverything));
    EXPECT_TRUE(open_and_judge(file, Verify::kHeader));
  }
}

/// The most that a header of a megabyte can unfold to.
TEST(ProgramMutants, ManySmallPartsStayWithinTheMemoryBound) {
  testing::RandomProgram random(1);
  for (int form = 0; form < 3; ++form) {
    Parts parts = Parts::random(random);
    ProgramDescription& d = parts.description;
    if (form == 0) d.findings.assign(200'000, {ImportFinding::Kind::kWarning, "", "", ""});
    if (form == 1)
      for (int i = 0; i < 100'000; ++i) d.metadata[std::to_string(i)];
    if (form == 2) d.shape_sets.assign(100'000, std::vector<Shape>(d.inputs.size()));
    parts.place();
    open_and_judge(parts.assemble());
    ASSERT_FALSE(::testing::Test::HasFailure()) << form;
  }
}

}  // namespace
}  // namespace corelane::robustness
