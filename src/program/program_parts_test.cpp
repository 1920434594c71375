// Files of several networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "corelane/program/program_file.h"
#include "program/program_format.h"
#include "program/testing/program_copy.h"
#include "program/testing/program_surgery.h"
#include "program/testing/random_program.h"

namespace corelane {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace format = program;

ProgramDescription described(const std::string& part) {
  ProgramDescription d;
  d.name = "main_graph";
  IoEntry out;
  out.desc.name = "y";
  out.desc.dtype = DType::kF32;
  out.desc.shape = Shape{2};
  d.outputs = {out};
  d.part = part;
  return d;
}

/// Decoder and encoder, with constants in common and a form for an engine each.
ByteVector two_parts(const std::string& first = "decoder", const std::string& second = "encoder") {
  static const ByteVector constants(5000, std::byte{7});
  ProgramWriter writer(described(first));
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("the decoder"));
  writer.add_segment(SegmentKind::kConstants, "", constants);
  writer.add_segment(SegmentKind::kPrecompiled, "engine", as_byte_span("decoder's"));
  writer.add_part(described(second));
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("the encoder"));
  writer.add_segment(SegmentKind::kPrecompiled, "engine", as_byte_span("encoder's"));
  auto file = writer.finish();
  EXPECT_TRUE(file) << file.error().to_string();
  return file ? *file : ByteVector();
}

std::string text_of(const ProgramFile& file, SegmentKind kind, std::size_t part) {
  return std::string(as_string_view(file.find(kind, {}, part).value().value()));
}

TEST(ProgramParts, EachHasItsOwnSegmentsAndTheConstantsOfAll) {
  const auto file = ProgramFile::from_bytes(two_parts(), nullptr, Verify::kEverything).value();
  ASSERT_EQ(file->part_count(), 2U);
  EXPECT_EQ(file->description(), described("decoder"));
  EXPECT_EQ(file->description(1), described("encoder"));
  EXPECT_EQ(text_of(*file, SegmentKind::kGraph, 0), "the decoder");
  EXPECT_EQ(text_of(*file, SegmentKind::kGraph, 1), "the encoder");
  EXPECT_EQ(text_of(*file, SegmentKind::kPrecompiled, 1), "encoder's");
  const auto own = file->find(SegmentKind::kConstants).value().value();
  EXPECT_EQ(own.size(), 5000U);
  EXPECT_EQ(file->find(SegmentKind::kConstants, {}, 1).value()->data(), own.data());
}

TEST(ProgramParts, AreFoundByName) {
  const auto file = ProgramFile::from_bytes(two_parts()).value();
  EXPECT_EQ(file->find_part(""), 0U);
  EXPECT_EQ(file->find_part("decoder"), 0U);
  EXPECT_EQ(file->find_part("encoder"), 1U);
  const auto unknown = file->find_part("encodr");
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_THAT(unknown.error().message(), AllOf(HasSubstr("'decoder'"), HasSubstr("'encoder'")));
  const auto single = ProgramFile::from_bytes(testing::sample_program(3)).value();
  EXPECT_EQ(single->find_part(""), 0U);
  EXPECT_THAT(single->find_part("x").error().message(), HasSubstr("without a name"));
}

TEST(ProgramParts, OnlyNamesMakeTheFormatNewer) {
  const auto header = [](const ByteVector& file) {
    return std::pair{testing::read_at<std::uint16_t>(file, offsetof(format::FixedHeader, minor)),
                     testing::read_at<std::uint32_t>(file, offsetof(format::FixedHeader, flags))};
  };
  EXPECT_EQ(header(two_parts()), (std::pair{std::uint16_t{3}, std::uint32_t{2}}));
  for (const bool named : {true, false}) {
    ProgramWriter writer(described(named ? "alone" : ""));
    writer.add_segment(SegmentKind::kGraph, "", as_byte_span("graph"));
    const ByteVector file = writer.finish().value();
    EXPECT_EQ(header(file), named ? (std::pair{std::uint16_t{3}, std::uint32_t{2}})
                                  : (std::pair{std::uint16_t{0}, std::uint32_t{0}}));
    EXPECT_EQ(ProgramFile::from_bytes(file).value()->find_part("alone").has_value(), named);
  }
}

TEST(ProgramParts, TheFlagAndTheNamesSayTheSame) {
  ByteVector file = two_parts();
  testing::write_at(file, offsetof(format::FixedHeader, flags), std::uint32_t{0});
  testing::repair_fixed_header(file);
  EXPECT_THAT(ProgramFile::from_bytes(file).error().message(), HasSubstr("2 parts with names"));
  ByteVector single = testing::sample_program(3);
  const auto flags = testing::read_at<std::uint32_t>(single, offsetof(format::FixedHeader, flags));
  testing::write_at(single, offsetof(format::FixedHeader, flags), flags | 2U);
  testing::repair_fixed_header(single);
  EXPECT_THAT(ProgramFile::from_bytes(single).error().message(), HasSubstr("without a name"));
}

TEST(ProgramParts, AnyComeBackAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    testing::RandomProgram random(seed);
    const std::vector<ProgramDescription> parts = random.parts();
    const auto bytes = random.file(parts);
    ASSERT_TRUE(bytes) << seed << ": " << bytes.error().to_string();
    const auto file = ProgramFile::from_bytes(*bytes, nullptr, Verify::kEverything);
    ASSERT_TRUE(file) << seed << ": " << file.error().to_string();
    ASSERT_EQ((*file)->part_count(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      ASSERT_TRUE((*file)->description(i) == parts[i]) << seed;
    ASSERT_EQ(testing::write_again(**file).value(), *bytes) << seed;
  }
}

TEST(ProgramParts, EveryFlippedByteIsFound) {
  ByteVector bytes = two_parts();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    ASSERT_FALSE(ProgramFile::from_bytes(bytes, nullptr, Verify::kEverything)) << "byte " << i;
    bytes[i] ^= std::byte{0x10};
  }
}

TEST(ProgramParts, AnErrorNamesThePart) {
  ByteVector bytes = two_parts();
  const auto good = ProgramFile::from_bytes(bytes).value();
  bytes[good->segments().back().offset] ^= std::byte{1};
  const auto file = ProgramFile::from_bytes(bytes).value();
  EXPECT_TRUE(file->find(SegmentKind::kPrecompiled));
  const auto broken = file->find(SegmentKind::kPrecompiled, {}, 1);
  EXPECT_EQ(broken.error().code(), Code::kCorrupted);
  EXPECT_THAT(broken.error().message(), HasSubstr("of part 'encoder'"));
  EXPECT_EQ(file->verify_segments().code(), Code::kCorrupted);
}

Status finish_with(const std::vector<std::string>& names,
                   const std::vector<SegmentKind>& more_in_last = {}) {
  ProgramWriter writer(described(names[0]));
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("graph"));
  for (std::size_t i = 1; i < names.size(); ++i) {
    writer.add_part(described(names[i]));
    writer.add_segment(SegmentKind::kGraph, "", as_byte_span("graph"));
  }
  for (const SegmentKind kind : more_in_last) writer.add_segment(kind, "", as_byte_span("bytes"));
  const auto file = writer.finish();
  return file ? Status() : file.error();
}

TEST(ProgramParts, TheWriterRefusesNamesThatCannotBeTold) {
  EXPECT_TRUE(finish_with({"a", "b", std::string(255, 'c')}).ok());
  EXPECT_THAT(finish_with({"a", "b", "a"}).message(), HasSubstr("two parts are named 'a'"));
  EXPECT_THAT(finish_with({"", "b"}).message(), HasSubstr("network 0 of 2 has no name"));
  EXPECT_THAT(finish_with({"a", ""}).message(), HasSubstr("network 1 of 2 has no name"));
  EXPECT_THAT(finish_with({"a", std::string(256, 'c')}).message(), HasSubstr("256 bytes"));
  std::vector<std::string> many;
  for (int i = 0; i < 257; ++i) many.push_back(std::to_string(i));
  EXPECT_THAT(finish_with(many).message(), HasSubstr("257 networks"));
}

TEST(ProgramParts, TheWriterRefusesSegmentsOfTheWrongPart) {
  EXPECT_THAT(finish_with({"a", "b"}, {SegmentKind::kConstants}).message(),
              HasSubstr("the first part has it"));
  EXPECT_THAT(finish_with({"a", "b"}, {SegmentKind::kGraph}).message(),
              HasSubstr("two graph segments"));
  ProgramWriter writer(described("a"));
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("graph"));
  writer.add_part(described("b"));
  EXPECT_THAT(writer.finish().error().message(), HasSubstr("no graph in part 1"));
}

}  // namespace
}  // namespace corelane
