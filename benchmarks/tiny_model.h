/// The smallest models of the benchmarks as ONNX bytes: y = op(x), f32[n], encoded by hand in the
/// protobuf wire format so that no tool is needed.
#pragma once

#include <cstdint>
#include <string>

namespace corelane::bench {

namespace wire {
inline std::string varint(std::uint64_t v) {
  std::string out;
  for (; v >= 128; v >>= 7) out += static_cast<char>((v & 127) | 128);
  return out + static_cast<char>(v);
}
inline std::string number(int field, std::uint64_t v) { return varint(field << 3) + varint(v); }
inline std::string bytes(int field, const std::string& s) {
  return varint((field << 3) | 2) + varint(s.size()) + s;
}
/// ValueInfoProto of a float tensor with one dimension.
inline std::string value(const std::string& name, std::uint64_t n) {
  const auto shape = bytes(1, number(1, n));
  const auto tensor = number(1, 1) + bytes(2, shape);
  return bytes(1, name) + bytes(2, bytes(1, tensor));
}
}  // namespace wire

/// Any operator of one operand.
inline std::string unary_model(const std::string& op, std::uint64_t n) {
  using namespace wire;
  const auto node = bytes(1, "x") + bytes(2, "y") + bytes(3, "node") + bytes(4, op);
  const auto graph =
      bytes(1, node) + bytes(2, "tiny") + bytes(11, value("x", n)) + bytes(12, value("y", n));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 13));
}

inline std::string relu_model(std::uint64_t n) { return unary_model("Relu", n); }

}  // namespace corelane::bench
