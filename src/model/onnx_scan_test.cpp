#include "model/onnx_scan.h"

#include <gtest/gtest.h>

#include "model/onnx_test_model.h"

namespace corelane::onnx_import {
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
  EXPECT_EQ(check_wire(field(7, graph)).code(), Code::kMalformed);
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

}  // namespace
}  // namespace corelane::onnx_import
