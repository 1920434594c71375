#include "cli/qaic/vendor_container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "counted_memory.h"
#include "mutator.h"
#include "vendor_containers.h"

namespace corelane::cli {
namespace {

using robustness::vendor_container;
using robustness::vendor_containers;

/// A listing that is right: all that it names lies in the file, apart from each other.
void judge(const VendorContainer& listed, ByteSpan bytes) {
  ASSERT_LE(listed.size, bytes.size());
  ASSERT_LE(listed.segments.size(), VendorContainer::kMostSegments);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const VendorSegment& s : listed.segments) {
    ASSERT_FALSE(s.name.empty());
    ASSERT_LE(s.name.size(), VendorContainer::kMostName);
    ASSERT_EQ(s.name.find('\0'), std::string::npos);
    ASSERT_LE(s.at, listed.size);
    ASSERT_LE(s.size, listed.size - s.at);
    if (s.size > 0) places.emplace_back(s.at, s.at + s.size);
  }
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) ASSERT_GE(places[i].first, places[i - 1].second);
}

void set(ByteVector& file, std::size_t at, std::uint64_t value, std::size_t width = 8) {
  std::memcpy(file.data() + at, &value, width);
}

void expect(const ByteVector& file, Code code, const std::string& text) {
  const auto listed = VendorContainer::read(file);
  ASSERT_FALSE(listed.has_value()) << text;
  EXPECT_EQ(listed.error().code(), code) << listed.error().to_string();
  EXPECT_THAT(listed.error().message(), testing::HasSubstr(text));
}

TEST(VendorContainer, ListsSegmentsByTheirPlacesInTheFile) {
  const ByteVector file = vendor_containers()[1];
  const auto listed = VendorContainer::read(file);
  ASSERT_TRUE(listed.has_value()) << listed.error().to_string();
  EXPECT_EQ(listed->major, 0);
  EXPECT_EQ(listed->minor, 1);
  EXPECT_EQ(listed->compression, 1);
  EXPECT_EQ(listed->size, file.size());
  ASSERT_EQ(listed->segments.size(), 6U);
  EXPECT_EQ(listed->segments[0].name, "constants.bin");
  EXPECT_EQ(listed->segments[0].size, 200U);
  EXPECT_EQ(listed->segments[0].split, 128U);
  EXPECT_EQ(file[listed->segments[3].at], static_cast<std::byte>(17 * 3));
  EXPECT_FALSE(listed->segments[3].meaning.empty());
}

TEST(VendorContainer, TheBaseMayBeAnyAddress) {
  for (const std::uint64_t base : {0ULL, 0x10ULL, 0x7FFF00000000ULL, 0xFFFFFFFFFFFFFFF0ULL}) {
    const ByteVector file = vendor_container({{"network.elf", 8}}, base);
    const auto listed = VendorContainer::read(file);
    ASSERT_TRUE(listed.has_value()) << base;
    EXPECT_EQ(listed->segments[0].at, 40U + 32U + 16U);
  }
}

TEST(VendorContainer, WhatFollowsTheSizeOfTheHeaderIsNotLookedAt) {
  ByteVector file = vendor_containers()[0];
  const auto whole = VendorContainer::read(file);
  file.resize(file.size() + 100);
  const auto longer = VendorContainer::read(file);
  ASSERT_TRUE(longer.has_value());
  EXPECT_EQ(longer->size, whole->size);
}

TEST(VendorContainer, EachFieldIsCheckedByName) {
  const ByteVector good = vendor_containers()[1];
  const auto with = [&](std::size_t at, std::uint64_t value, std::size_t width = 8) {
    ByteVector file = good;
    set(file, at, value, width);
    return file;
  };
  expect(with(0, 0x1234, 4), Code::kForeignImage, "not a container");
  expect(with(4, 9, 1), Code::kVersionMismatch, "9.1");
  expect(with(6, 2, 2), Code::kMalformed, "compression 2");
  expect(with(8, good.size() + 1), Code::kMalformed, "it says that it has");
  expect(with(8, 39), Code::kMalformed, "it says that it has 39");
  expect(with(24, 1025), Code::kMalformed, "1025 segments");
  expect(with(24, UINT64_MAX), Code::kMalformed, "segments");
  expect(with(24, 1024), Code::kMalformed, "1024 segments at 40");
  expect(with(32, UINT64_MAX), Code::kMalformed, "leave the");
  expect(with(32, 0), Code::kMalformed, "");
  expect(with(40, UINT64_MAX), Code::kMalformed, "'constants.bin'");
  expect(with(40, 1ULL << 33), Code::kMalformed, "'constants.bin'");
  expect(with(48, 201), Code::kMalformed, "divided at 201");
  expect(with(56, good.size()), Code::kMalformed, "the name of segment 0");
  expect(with(64, good.size() - 1), Code::kMalformed, "'constants.bin'");
  expect(with(64, 50), Code::kMalformed, "overlap");
}

TEST(VendorContainer, TwoSegmentsOfOneNameAreRefused) {
  expect(vendor_container({{"network.elf", 8}, {"network.elf", 8}}, 0), Code::kMalformed,
         "two segments are named 'network.elf'");
}

TEST(VendorContainer, ANameWithoutAnEndIsRefused) {
  expect(vendor_container({{std::string(256, 'n'), 8}}, 0), Code::kMalformed, "has no end");
  EXPECT_TRUE(VendorContainer::read(vendor_container({{std::string(255, 'n'), 8}}, 0)));
  expect(vendor_container({{"", 8}}, 0), Code::kMalformed, "is empty");
}

TEST(VendorContainer, EveryTruncationIsAnError) {
  for (const ByteVector& file : vendor_containers()) {
    ASSERT_TRUE(VendorContainer::read(file).has_value());
    for (std::size_t n = 0; n < file.size(); ++n) {
      // A copy of its own, so that a sanitizer sees a read past its end.
      const ByteVector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
      ASSERT_FALSE(VendorContainer::read(cut).has_value()) << n << " of " << file.size();
    }
  }
}

TEST(VendorContainer, EveryTruncationWhoseHeaderAgreesIsAnErrorOrARightListing) {
  for (const ByteVector& file : vendor_containers()) {
    for (std::size_t n = 40; n < file.size(); ++n) {
      ByteVector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
      set(cut, 8, n);
      const auto listed = VendorContainer::read(cut);
      if (listed) judge(*listed, cut);
      // Only what fills up to a multiple of 8 may be missing.
      if (n + 8 <= file.size()) ASSERT_FALSE(listed.has_value()) << n << " of " << file.size();
    }
  }
}

TEST(VendorContainer, TenThousandMutantsAreErrorsOrRightListings) {
  const auto files = vendor_containers();
  std::size_t listed_ones = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    robustness::Mutator mutator(seed);
    const ByteVector& file = files[seed % files.size()];
    const ByteVector mutant =
        mutator.mutate(file, files[(seed + 1) % files.size()], seed % 2 == 0 ? 0 : 4,
                       seed % 4 < 2 ? 300 : file.size());
    const robustness::PeakMemory peak;
    const auto listed = VendorContainer::read(mutant);
    if (robustness::memory_is_counted()) ASSERT_LE(peak.bytes(), 64U << 10) << seed;
    if (!listed) {
      ASSERT_FALSE(listed.error().message().empty());
      continue;
    }
    ++listed_ones;
    judge(*listed, mutant);
  }
  // Both outcomes occur, so that neither check is idle.
  EXPECT_GT(listed_ones, 100U);
  EXPECT_LT(listed_ones, 9'900U);
}

TEST(VendorContainer, TheMostSegmentsTakeBoundedMemory) {
  std::vector<robustness::ContainerPart> parts;
  for (std::size_t i = 0; i < VendorContainer::kMostSegments; ++i)
    parts.push_back({std::to_string(i) + std::string(200, 'x'), 1});
  const ByteVector file = vendor_container(parts, 4096);
  const robustness::PeakMemory peak;
  const auto listed = VendorContainer::read(file);
  ASSERT_TRUE(listed.has_value()) << listed.error().to_string();
  if (robustness::memory_is_counted())
    EXPECT_LE(peak.bytes(), 2048U * (VendorContainer::kMostSegments + 1));
}

}  // namespace
}  // namespace corelane::cli
