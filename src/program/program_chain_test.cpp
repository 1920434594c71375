// Files whose first network was cut into the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "corelane/program/program_file.h"
#include "program/program_format.h"
#include "program/testing/program_copy.h"
#include "program/testing/program_surgery.h"

namespace corelane {
namespace {

using ::testing::HasSubstr;
namespace format = program;

IoEntry tensor(const std::string& name, const Shape& shape = Shape{1, 2}) {
  IoEntry entry;
  entry.desc.name = name;
  entry.desc.dtype = entry.reported_dtype = DType::kF32;
  entry.desc.shape = shape;
  return entry;
}

ProgramDescription part(const std::string& name, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
  ProgramDescription d;
  d.name = "g";
  d.part = name;
  for (const auto& input : inputs) d.inputs.push_back(tensor(input));
  for (const auto& output : outputs) d.outputs.push_back(tensor(output));
  return d;
}

using Parts = std::vector<ProgramDescription>;

/// x -> a -> y, with `a` over the cut and z for the second part alone.
Parts two() {
  return {part("net", {"x", "z"}, {"y"}), part("net/0", {"x"}, {"a"}),
          part("net/1", {"a", "z"}, {"y"})};
}

Result<ByteVector> written(const Parts& parts) {
  static const ByteVector constants(100, std::byte{7});
  ProgramWriter writer(parts.front());
  writer.set_chain();
  writer.add_segment(SegmentKind::kConstants, "", constants);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    writer.add_part(parts[i]);
    writer.add_segment(SegmentKind::kGraph, "", as_byte_span("ONNX"));
  }
  return writer.finish();
}

TEST(ProgramChain, IsReadAsItWasWritten) {
  const auto bytes = written(two());
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  EXPECT_EQ(testing::read_at<std::uint16_t>(*bytes, offsetof(format::FixedHeader, minor)), 10U);
  EXPECT_NE(testing::read_at<std::uint32_t>(*bytes, offsetof(format::FixedHeader, flags)) &
                format::kHasChain,
            0U);
  const auto file = ProgramFile::from_bytes(*bytes, nullptr, Verify::kEverything);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_TRUE((*file)->is_chain());
  ASSERT_EQ((*file)->part_count(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ((*file)->description(i), two()[i]);
  EXPECT_FALSE((*file)->find(SegmentKind::kGraph)->has_value());
  EXPECT_TRUE((*file)->find(SegmentKind::kConstants, {}, 2)->has_value());
  EXPECT_EQ(testing::write_again(**file), *bytes);
}

TEST(ProgramChain, AReaderThatTakesItForPartsRefuses) {
  ByteVector bytes = written(two()).value();
  constexpr std::size_t kFlags = offsetof(format::FixedHeader, flags);
  const auto flags = testing::read_at<std::uint32_t>(bytes, kFlags);
  testing::write_at(bytes, kFlags, flags & ~format::kHasChain);
  testing::repair_fixed_header(bytes);
  const auto file = ProgramFile::from_bytes(bytes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::kMalformed);
  EXPECT_THAT(file.error().message(), HasSubstr("chain"));
}

TEST(ProgramChain, PartsThatDoNotFitAreRefusedByName) {
  struct Case {
    std::function<void(Parts&)> change;
    const char* says;
  };
  const std::vector<Case> cases{
      {[](Parts& p) { p.pop_back(); }, "two or more"},
      {[](Parts& p) { p[2].inputs[0] = tensor("b"); }, "reads 'b'"},
      {[](Parts& p) {
         p[2].inputs[0] = tensor("a", Shape{1, 3});
       },
       "reads 'a' as"},
      {[](Parts& p) { p[2].inputs[0].desc.dtype = DType::kI8; }, "reads 'a' as"},
      {[](Parts& p) { p[1].outputs.push_back(tensor("b")); }, "nothing reads 'b'"},
      {[](Parts& p) { p[1].outputs.push_back(tensor("y")); }, "there already"},
      {[](Parts& p) { p[1].outputs.push_back(tensor("x")); }, "there already"},
      {[](Parts& p) { p[0].outputs.push_back(tensor("w")); }, "made by no part"},
      {[](Parts& p) {
         p[0].outputs[0] = tensor("y", Shape{2, 2});
       },
       "another form"},
      {[](Parts& p) { p[0].outputs.push_back(tensor("a")); }, "read by a part"},
      {[](Parts& p) { p[0].inputs.push_back(tensor("w")); }, "reads its input 'w'"},
      {[](Parts& p) { std::swap(p[1], p[2]); }, "reads 'a'"}};
  for (const Case& c : cases) {
    Parts parts = two();
    c.change(parts);
    const auto bytes = written(parts);
    ASSERT_FALSE(bytes) << c.says;
    EXPECT_EQ(bytes.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(bytes.error().message(), HasSubstr(c.says));
  }
}

TEST(ProgramChain, HasNoSegmentsOfItsOwn) {
  const Parts parts = two();
  ProgramWriter writer(parts[0]);
  writer.set_chain();
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("ONNX"));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    writer.add_part(parts[i]);
    writer.add_segment(SegmentKind::kGraph, "", as_byte_span("ONNX"));
  }
  const auto bytes = writer.finish();
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().message(), HasSubstr("its parts have the segments"));
}

}  // namespace
}  // namespace corelane
