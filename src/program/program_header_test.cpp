#include "program/program_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program/program_format.h"
#include "program/testing/random_program.h"
#include "program_schema/program_generated.h"

namespace corelane {
namespace {

using ::testing::HasSubstr;
namespace fb = flatbuffers;

std::string decode_error(fb::FlatBufferBuilder& builder) {
  const auto decoded =
      decode_header(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())), "'f'");
  if (decoded) return "ok";
  EXPECT_EQ(decoded.error().code(), Code::kMalformed);
  return decoded.error().to_string();
}

fb::Offset<schema::Io> output(fb::FlatBufferBuilder& b, const char* name = "y") {
  return schema::CreateIoDirect(b, name, /*dtype=*/1);
}

TEST(ProgramHeader, ItsSizeDoesNotDependOnPlacesAndChecksums) {
  const ProgramDescription d = testing::RandomProgram(3).description();
  const auto with = [&](std::uint64_t n, std::uint32_t crc) {
    const SegmentInfo segment{SegmentKind::kGraph, "tag", n, n, crc};
    return encode_header({&d, 1}, {&segment, 1}).size();
  };
  EXPECT_EQ(with(0, 0), with(~std::uint64_t{0}, ~0U));
}

TEST(ProgramHeader, AbsentFieldsTakeTheirDefaults) {
  fb::FlatBufferBuilder b;
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  const auto decoded =
      decode_header(std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())), "'f'");
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  ProgramDescription expected;
  expected.outputs.resize(1);
  expected.outputs[0].desc.name = "y";
  expected.outputs[0].desc.dtype = DType::kF32;
  EXPECT_EQ(decoded->parts, std::vector{expected});
}

TEST(ProgramHeader, FieldsOfALaterVersionAreSkipped) {
  fb::FlatBufferBuilder b;
  const auto outputs = b.CreateVector(std::vector{output(b)});
  const auto extra = b.CreateString("from the future");
  const fb::uoffset_t start = b.StartTable();
  b.AddOffset(schema::Program::VT_OUTPUTS, outputs);
  b.AddOffset(static_cast<fb::voffset_t>(schema::Program::VT_SEGMENTS + 20), extra);
  b.Finish(fb::Offset<schema::Program>(b.EndTable(start)));
  EXPECT_EQ(decode_error(b), "ok");
}

TEST(ProgramHeader, JunkDoesNotVerify) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    testing::RandomProgram random(seed);
    const ByteVector junk = random.bytes(random.below(200));
    const auto decoded = decode_header(junk, "'f'");
    ASSERT_FALSE(decoded);
    ASSERT_EQ(decoded.error().code(), Code::kMalformed);
  }
}

TEST(ProgramHeader, ASharedStringDoesNotUnfold) {
  fb::FlatBufferBuilder b;
  const auto text = b.CreateString(std::string(100'000, 'x'));
  std::vector<fb::Offset<schema::Finding>> findings;
  for (int i = 0; i < 10'000; ++i)
    findings.push_back(schema::CreateFinding(b, 0, text, text, text));
  const auto list = b.CreateVector(findings);
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_findings(list);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("shared"));
}

TEST(ProgramHeader, ASharedTableDoesNotUnfold) {
  fb::FlatBufferBuilder b;
  const auto dims = schema::CreateDimsDirect(b);
  const auto shapes = b.CreateVector(std::vector(20'000, dims));
  const auto set = schema::CreateShapeSet(b, shapes);
  const auto sets = b.CreateVector(std::vector(50'000, set));
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_shape_sets(sets);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  // A thousand million shapes: the verifier's limit on tables stops before they are counted.
  EXPECT_THAT(decode_error(b), HasSubstr("does not verify"));
}

TEST(ProgramHeader, AnIoWithoutANameDoesNotVerify) {
  fb::FlatBufferBuilder b;
  const fb::uoffset_t start = b.StartTable();
  b.AddElement<std::uint8_t>(schema::Io::VT_DTYPE, 1, 0);
  const fb::Offset<schema::Io> io(b.EndTable(start));
  const auto outputs = b.CreateVector(std::vector{io});
  schema::ProgramBuilder program(b);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("does not verify"));
}

TEST(ProgramHeader, NumbersOutsideTheEnumsAreRefused) {
  const auto with = [](std::uint8_t dtype, std::uint8_t layout, std::uint8_t quant) {
    fb::FlatBufferBuilder b;
    const auto q = schema::CreateQuant(b, quant);
    const auto name = b.CreateString("y");
    const auto io = schema::CreateIo(b, name, dtype, 0, 0, layout, 0, 0, q);
    const auto outputs = b.CreateVector(std::vector{io});
    schema::ProgramBuilder program(b);
    program.add_outputs(outputs);
    b.Finish(program.Finish());
    return decode_error(b);
  };
  EXPECT_EQ(with(1, 0, 0), "ok");
  EXPECT_THAT(with(0, 0, 0), HasSubstr("element type"));
  EXPECT_THAT(with(200, 0, 0), HasSubstr("element type"));
  EXPECT_THAT(with(1, 7, 0), HasSubstr("layout 7"));
  EXPECT_THAT(with(1, 0, 9), HasSubstr("quantization kind 9"));
}

TEST(ProgramHeader, AMetadataKeyIsGivenOnce) {
  fb::FlatBufferBuilder b;
  const auto one = schema::CreatePropertyDirect(b, "k", "1");
  const auto two = schema::CreatePropertyDirect(b, "k", "2");
  const auto list = b.CreateVector(std::vector{one, two});
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_metadata(list);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("'k' is given twice"));
}

TEST(ProgramHeader, ManySegmentsAreRefused) {
  fb::FlatBufferBuilder b;
  std::vector<fb::Offset<schema::Segment>> segments;
  for (int i = 0; i < 1025; ++i) segments.push_back(schema::CreateSegmentDirect(b, 4, "t"));
  const auto list = b.CreateVector(segments);
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_segments(list);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("1025 segments"));
}

TEST(ProgramHeader, ARankOfSeventeenIsRefused) {
  fb::FlatBufferBuilder b;
  const std::vector<std::int64_t> dims(17, 1);
  const auto io = schema::CreateIoDirect(b, "y", 1, &dims);
  const auto outputs = b.CreateVector(std::vector{io});
  schema::ProgramBuilder program(b);
  program.add_outputs(outputs);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("17 dimensions"));
}

/// One object of the file may stand for any number of outputs, each of which takes memory.
TEST(ProgramHeader, OutputsOfAllPartsAreCounted) {
  fb::FlatBufferBuilder b;
  const auto outputs = b.CreateVector(std::vector(4096, output(b)));
  std::vector<fb::Offset<schema::Program>> parts;
  for (int i = 0; i < 64; ++i) {
    const auto name = b.CreateString(std::to_string(i));
    schema::ProgramBuilder part(b);
    part.add_part(name);
    part.add_outputs(outputs);
    parts.push_back(part.Finish());
  }
  const auto list = b.CreateVector(parts);
  // What is copied may be as large as all bytes, used or not.
  b.CreateString(std::string(std::size_t{60} << 20, ' '));
  const auto name = b.CreateString("all");
  schema::ProgramBuilder program(b);
  program.add_part(name);
  program.add_outputs(outputs);
  program.add_parts(list);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("more than 262144 inputs, outputs and initializers"));
}

/// An output, and as many parts as `others` says, each with `depth` parts one within the other.
fb::Offset<schema::Program> nested(fb::FlatBufferBuilder& b, int others, int depth) {
  std::vector<fb::Offset<schema::Program>> parts;
  for (int i = 0; depth > 0 && i < others; ++i) parts.push_back(nested(b, others, depth - 1));
  const auto list = b.CreateVector(parts);
  const auto outputs = b.CreateVector(std::vector{output(b)});
  const auto name = b.CreateString(std::to_string(b.GetSize()));
  schema::ProgramBuilder program(b);
  program.add_outputs(outputs);
  program.add_part(name);
  program.add_parts(list);
  return program.Finish();
}

TEST(ProgramHeader, PartsHaveNoPartsAndAreFew) {
  const auto with = [](int others, int depth) {
    fb::FlatBufferBuilder b;
    b.Finish(nested(b, others, depth));
    return decode_error(b);
  };
  EXPECT_EQ(with(255, 1), "ok");
  EXPECT_THAT(with(256, 1), HasSubstr("257 parts"));
  EXPECT_THAT(with(1, 2), HasSubstr("has parts itself"));
  EXPECT_THAT(with(1, 30), HasSubstr("does not verify"));
}

TEST(ProgramHeader, ASharedPartDoesNotUnfold) {
  fb::FlatBufferBuilder b;
  const auto part = nested(b, 0, 0);
  const auto list = b.CreateVector(std::vector(200, part));
  const auto outputs = b.CreateVector(std::vector{output(b)});
  schema::ProgramBuilder program(b);
  program.add_outputs(outputs);
  program.add_parts(list);
  b.Finish(program.Finish());
  EXPECT_THAT(decode_error(b), HasSubstr("shared"));
}

}  // namespace
}  // namespace corelane
