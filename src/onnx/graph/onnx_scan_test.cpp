#include "onnx/graph/onnx_scan.h"

#include <gtest/gtest.h>

#include <string>

#include "base/wire.h"
#include "onnx/graph/onnx_proto.h"
#include "onnx/onnx_test_model.h"

namespace corelane::onnx {
namespace {

void put(ByteVector& bytes, std::uint64_t v) {
  while (v >= 0x80) {
    bytes.push_back(static_cast<std::byte>((v & 0x7F) | 0x80));
    v >>= 7;
  }
  bytes.push_back(static_cast<std::byte>(v));
}

/// A length-delimited field around `inner`.
ByteVector field(std::uint32_t number, const ByteVector& inner) {
  ByteVector bytes;
  put(bytes, (number << 3) | 2);
  put(bytes, inner.size());
  bytes.insert(bytes.end(), inner.begin(), inner.end());
  return bytes;
}

TEST(OnnxScan, AcceptsAModel) {
  TestModel m;
  m.input("x", {1}).output("y", {1});
  m.node("Relu", {"x"}, {"y"});
  EXPECT_TRUE(check_wire(m.bytes()).ok());
}

TEST(OnnxScan, BrokenFramingIsMalformed) {
  const std::vector<std::vector<int>> cases{
      {0x3A}, {0x3A, 0x05, 0x01}, {0x3A, 0x80}, {0x00, 0x01}, {0x08, 0x80}, {0x0B}, {0x39, 0, 0}};
  for (const auto& bytes : cases) {
    ByteVector model;
    for (const int b : bytes) model.push_back(static_cast<std::byte>(b));
    EXPECT_EQ(check_wire(model).code(), Code::kMalformed) << bytes.size();
  }
}

TEST(OnnxScan, DeepNestingIsMalformed) {
  // node -> attribute -> graph -> node -> ...
  ByteVector graph;
  for (int i = 0; i < 40; ++i) graph = field(1, field(5, field(6, graph)));
  const Status deep = check_wire(field(7, graph));
  EXPECT_EQ(deep.code(), Code::kMalformed);
  EXPECT_EQ(deep.detail(Detail::kLimit), std::to_string(kMaxWireDepth));
  EXPECT_EQ(deep.cause().code(), Code::kMalformed);
}

TEST(OnnxScan, DepthLimitIsThatOfProtobuf) {
  // Model, graph, then node -> attribute -> graph: the innermost lies 100 and 101 messages deep.
  for (const bool over : {false, true}) {
    ByteVector graph = over ? field(5, {}) : ByteVector{};
    for (int i = 0; i < 33; ++i) graph = field(1, field(5, field(6, graph)));
    const ByteVector model = field(7, graph);
    ::onnx::ModelProto parsed;
    EXPECT_EQ(parsed.ParseFromArray(model.data(), static_cast<int>(model.size())), !over);
    EXPECT_EQ(check_wire(model).ok(), !over);
  }
}

TEST(OnnxScan, ManyTinyMessagesAreRefusedBeforeTheyAreParsed) {
  const ByteVector node = field(1, {});
  ByteVector graph;
  for (int i = 0; i < 2'000'000; ++i) graph.insert(graph.end(), node.begin(), node.end());
  EXPECT_EQ(check_wire(field(7, graph)).code(), Code::kOutOfMemory);
}

TEST(OnnxScan, SmallIntegersCountWithTheirParsedSize) {
  // 40 MB of one-byte integers become 320 MB of int64.
  const ByteVector data(std::size_t{40} << 20, std::byte{1});
  EXPECT_EQ(check_wire(field(7, field(5, field(7, data)))).code(), Code::kOutOfMemory);
  // As raw bytes they stay what they are.
  EXPECT_TRUE(check_wire(field(7, field(5, field(9, data)))).ok());
}

/// `count` copies of `one`.
ByteVector many(const ByteVector& one, int count) {
  ByteVector bytes;
  bytes.reserve(one.size() * static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) bytes.insert(bytes.end(), one.begin(), one.end());
  return bytes;
}

TEST(OnnxScan, DimensionsCountBelowEveryKindOfType) {
  const ByteVector tensor = field(2, many(field(1, {}), 3'000'000));
  const ByteVector type = field(1, tensor);
  const ByteVector sparse = field(8, tensor);
  for (const ByteVector& t :
       {type, sparse, field(4, field(1, type)), field(9, field(1, type)), field(5, field(2, type)),
        field(5, field(2, field(4, field(1, type))))}) {
    EXPECT_EQ(check_wire(field(7, field(13, field(2, t)))).code(), Code::kOutOfMemory);
  }
}

TEST(OnnxScan, ListsOfNumbersCountWhereverTheyAre) {
  const ByteVector data(std::size_t{20} << 20, std::byte{1});
  const auto sharding = [](const ByteVector& spec) {
    return field(7, field(1, field(10, field(2, spec))));
  };
  // Dimensions of sparse tensors, devices of shardings and their groups.
  EXPECT_EQ(check_wire(field(7, field(15, field(3, data)))).code(), Code::kOutOfMemory);
  EXPECT_EQ(check_wire(sharding(field(2, data))).code(), Code::kOutOfMemory);
  EXPECT_EQ(check_wire(sharding(field(3, field(2, data)))).code(), Code::kOutOfMemory);
  const ByteVector empty = many(field(2, {}), 3'000'000);
  EXPECT_EQ(check_wire(sharding(field(4, empty))).code(), Code::kOutOfMemory);
  EXPECT_EQ(check_wire(field(7, field(14, empty))).code(), Code::kOutOfMemory);
}

TEST(OnnxScan, ListsCountWithTheRoomTheyGrowInto) {
  // 12 million integers are 96 MB, in a list that may hold 192 MB.
  ByteVector data(std::size_t{12} << 20, std::byte{1});
  EXPECT_EQ(check_wire(field(7, field(5, field(7, data)))).code(), Code::kOutOfMemory);
  // One by one, as older writers have them.
  ByteVector one;
  put(one, 8 << 3);
  one.push_back(std::byte{1});
  EXPECT_EQ(check_wire(field(7, field(1, field(5, many(one, 12 << 20))))).code(),
            Code::kOutOfMemory);
}

}  // namespace
}  // namespace corelane::onnx
