// A file of format 1.0, as its bytes: what was written once stays readable, and what is written
// today is what docs/formats/program-file.md shows.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "corelane/program/program_file.h"

namespace corelane {
namespace {

constexpr std::string_view kFormat10 =
    "524b4e4e434c50310100000000000000c402000000000000800200008b1f7b25"
    "00000000000000000000000000000000000000000000000000000000268cbabd"
    "3000000000000000000026005c000400080038000c001000140018001c002000"
    "240028002c0030004000480050003400260000007c000000700000005c010000"
    "c8000000c0000000010000000100000050000000ac000000a40000009c000000"
    "2c00000054000000110000000000000000000000000000000000000000000000"
    "0000000000000000000000000e000000636f72656c616e6520302e312e300000"
    "0000000000000000000000000000000001000000670000000100000014000000"
    "00000e00200007000800100018000c000e0000000000000118000000955130f2"
    "c002000000000000040000000000000000000000000000000000000000000000"
    "0000000000000000010000000400000070ffffff000000010000020074000000"
    "640000005c000000000000000000000034000000140000000c00000004000000"
    "00000000000000002affffff00000000ffffffff0c0000000400000000000000"
    "0000000046ffffff00000000ffffffff0c000000040000000000000000000000"
    "0000000001000000020000000000000001000000790000000100000024000000"
    "200030000c00070010001400080018001c002000090024000a0028002c000b00"
    "200000000000000100050200ac00000094000000740000000000000000000000"
    "4c000000140000000c000000040000000000000000000000daffffff00000200"
    "ffffffff100000000400000001000000fdffffff010000000000003f00000e00"
    "14000600070008000c0010000e00000000000000ffffffff0c00000004000000"
    "0000000000000000020000001000000004000000000000000000000001000000"
    "6e00000002000000ffffffffffffffff03000000000000000100000078000000"
    "4f4e4e58";

ByteVector from_hex(std::string_view hex) {
  ByteVector out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

ProgramDescription described() {
  IoEntry in;
  in.desc.name = "x";
  in.desc.dtype = DType::kF32;
  in.desc.shape = Shape{Shape::kOpen, 3};
  in.desc.dim_names = {"n", ""};
  in.reported_dtype = DType::kF16;
  in.quant_dtype = DType::kI8;
  in.quant = Quant::affine(0.5F, -3);
  IoEntry out;
  out.desc.name = "y";
  out.desc.dtype = DType::kF32;
  out.desc.shape = Shape{2};
  out.reported_dtype = DType::kF16;
  ProgramDescription d;
  d.name = "g";
  d.opset = 17;
  d.compiler_version = "corelane 0.1.0";
  d.inputs = {in};
  d.outputs = {out};
  return d;
}

TEST(ProgramGolden, AFileOfFormat10IsReadable) {
  const auto file = ProgramFile::from_bytes(from_hex(kFormat10), nullptr, Verify::kEverything);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ((*file)->description(), described());
  EXPECT_EQ(as_string_view((*file)->find(SegmentKind::kGraph).value().value()), "ONNX");
}

TEST(ProgramGolden, TheSameBytesAreWrittenToday) {
  ProgramWriter writer(described());
  writer.add_segment(SegmentKind::kGraph, "", as_byte_span("ONNX"));
  EXPECT_EQ(writer.finish().value(), from_hex(kFormat10));
}

}  // namespace
}  // namespace corelane
