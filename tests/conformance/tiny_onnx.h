/// ONNX models of a few nodes as bytes, written by hand so that the suite needs no ONNX library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace corelane::conformance {

/// Appends protobuf fields to a string.
class ProtoWriter {
 public:
  ProtoWriter& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  ProtoWriter& bytes(unsigned field, std::string_view value) {
    varint(field << 3 | 2U);
    varint(value.size());
    text_ += value;
    return *this;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

/// An f32 ValueInfoProto; -1 is an open dimension.
inline std::string tiny_value(std::string_view name, const std::vector<std::int64_t>& dims) {
  ProtoWriter shape;
  for (const std::int64_t dim : dims) {
    ProtoWriter entry;
    if (dim >= 0)
      entry.number(1, static_cast<std::uint64_t>(dim));
    else
      entry.bytes(2, "n");
    shape.bytes(1, entry.text());
  }
  const std::string tensor = ProtoWriter().number(1, 1).bytes(2, shape.text()).text();
  const std::string type = ProtoWriter().bytes(1, tensor).text();
  return ProtoWriter().bytes(1, name).bytes(2, type).text();
}

/// `length` nodes of `op` in a row from x to y; with two inputs each takes its input twice.
inline std::string tiny_chain(std::string_view op, int inputs, int length,
                              const std::vector<std::int64_t>& dims) {
  ProtoWriter graph;
  std::string from = "x";
  for (int i = 0; i < length; ++i) {
    const std::string to = i + 1 == length ? "y" : "v" + std::to_string(i);
    ProtoWriter node;
    for (int n = 0; n < inputs; ++n) node.bytes(1, from);
    node.bytes(2, to).bytes(3, "node" + std::to_string(i)).bytes(4, op);
    graph.bytes(1, node.text());
    from = to;
  }
  graph.bytes(2, "tiny").bytes(11, tiny_value("x", dims)).bytes(12, tiny_value("y", dims));
  const std::string opset = ProtoWriter().bytes(1, "").number(2, 13).text();
  return ProtoWriter().number(1, 8).bytes(7, graph.text()).bytes(8, opset).text();
}

}  // namespace corelane::conformance
