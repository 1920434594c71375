/// Small ONNX networks written by hand, for the tests of this folder and tests/compat.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wire.h"
#include "corelane/device/executable.h"

namespace corelane::drivers::virtual_npu {

inline constexpr std::int64_t kOnnxFloat = 1;
inline constexpr std::int64_t kOnnxInt64 = 7;

/// Puts a ModelProto together, opset 17 where none is named.
class NetworkBuilder {
 public:
  using Names = std::vector<std::string>;

  /// -1 is an open dimension.
  NetworkBuilder& input(std::string_view name, const std::vector<std::int64_t>& dims,
                        std::int64_t type = kOnnxFloat) {
    append_bytes_field(graph_, 11, value(name, dims, type));
    return *this;
  }
  NetworkBuilder& output(std::string_view name, const std::vector<std::int64_t>& dims,
                         std::int64_t type = kOnnxFloat) {
    append_bytes_field(graph_, 12, value(name, dims, type));
    return *this;
  }
  /// An input of any type, given as an encoded TypeProto.
  NetworkBuilder& typed_input(std::string_view name, std::string_view type) {
    append_bytes_field(graph_, 11, typed(name, type));
    return *this;
  }
  NetworkBuilder& typed_output(std::string_view name, std::string_view type) {
    append_bytes_field(graph_, 12, typed(name, type));
    return *this;
  }
  /// `attributes`: encoded AttributeProtos.
  NetworkBuilder& node(std::string_view op, const Names& inputs, const Names& outputs,
                       std::string_view name = {}, const Names& attributes = {},
                       std::string_view domain = {}) {
    std::string node;
    for (const auto& i : inputs) append_bytes_field(node, 1, i);
    for (const auto& o : outputs) append_bytes_field(node, 2, o);
    if (!name.empty()) append_bytes_field(node, 3, name);
    append_bytes_field(node, 4, op);
    for (const auto& a : attributes) append_bytes_field(node, 5, a);
    if (!domain.empty()) append_bytes_field(node, 7, domain);
    append_bytes_field(graph_, 1, node);
    return *this;
  }
  NetworkBuilder& floats(std::string_view name, const std::vector<std::int64_t>& dims,
                         const std::vector<float>& values) {
    std::string raw(values.size() * sizeof(float), '\0');
    std::memcpy(raw.data(), values.data(), raw.size());
    return constant(name, dims, kOnnxFloat, raw);
  }
  NetworkBuilder& constant(std::string_view name, const std::vector<std::int64_t>& dims,
                           std::int64_t type, std::string_view raw) {
    std::string tensor = tensor_head(name, dims, type);
    append_bytes_field(tensor, 9, raw);
    append_bytes_field(graph_, 5, tensor);
    return *this;
  }
  /// External data with any location, offset and length.
  NetworkBuilder& external(std::string_view name, const std::vector<std::int64_t>& dims,
                           std::int64_t type, std::string_view location, std::string_view offset,
                           std::string_view length) {
    append_bytes_field(graph_, 5, external_tensor(name, dims, type, location, offset, length));
    return *this;
  }
  static std::string external_tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                                     std::int64_t type, std::string_view location,
                                     std::string_view offset, std::string_view length) {
    std::string tensor = tensor_head(name, dims, type);
    const auto entry = [&](std::string_view key, std::string_view text) {
      std::string e;
      append_bytes_field(e, 1, key);
      append_bytes_field(e, 2, text);
      append_bytes_field(tensor, 13, e);
    };
    entry("location", location);
    entry("offset", offset);
    entry("length", length);
    append_varint_field(tensor, 14, 1);
    return tensor;
  }

  /// `version`: of the operators; `ir`: of the format.
  std::string bytes(std::uint64_t version = 17, std::uint64_t ir = 9) const {
    std::string model;
    append_varint_field(model, 1, ir);
    const auto opset = [&](std::string_view domain, std::uint64_t number) {
      std::string entry;
      if (!domain.empty()) append_bytes_field(entry, 1, domain);
      append_varint_field(entry, 2, number);
      append_bytes_field(model, 8, entry);
    };
    opset("", version);
    opset("my", 1);
    append_bytes_field(model, 7, graph_);
    return model;
  }

  /// As an attribute of a node, such as the body of a Loop.
  std::string graph_attribute(std::string_view name) const {
    std::string graph = graph_;
    append_bytes_field(graph, 2, name);
    std::string a;
    append_bytes_field(a, 1, name);
    append_bytes_field(a, 6, graph);
    append_varint_field(a, 20, 5);
    return a;
  }
  static std::string int_attribute(std::string_view name, std::int64_t v) {
    std::string a;
    append_bytes_field(a, 1, name);
    append_varint_field(a, 3, static_cast<std::uint64_t>(v));
    append_varint_field(a, 20, 2);
    return a;
  }
  static std::string ints_attribute(std::string_view name, std::initializer_list<std::int64_t> v) {
    std::string a;
    append_bytes_field(a, 1, name);
    for (const std::int64_t i : v) append_varint_field(a, 8, static_cast<std::uint64_t>(i));
    append_varint_field(a, 20, 7);
    return a;
  }
  static std::string strings_attribute(std::string_view name, const Names& v) {
    std::string a;
    append_bytes_field(a, 1, name);
    for (const auto& s : v) append_bytes_field(a, 9, s);
    append_varint_field(a, 20, 8);
    return a;
  }

 private:
  static std::string typed(std::string_view name, std::string_view type) {
    std::string info;
    append_bytes_field(info, 1, name);
    append_bytes_field(info, 2, type);
    return info;
  }
  static std::string value(std::string_view name, const std::vector<std::int64_t>& dims,
                           std::int64_t type) {
    std::string shape;
    for (const std::int64_t d : dims) {
      std::string dim;
      if (d >= 0) append_varint_field(dim, 1, static_cast<std::uint64_t>(d));
      append_bytes_field(shape, 1, dim);
    }
    std::string tensor;
    append_varint_field(tensor, 1, static_cast<std::uint64_t>(type));
    append_bytes_field(tensor, 2, shape);
    std::string wrapped;
    append_bytes_field(wrapped, 1, tensor);
    std::string info;
    append_bytes_field(info, 1, name);
    append_bytes_field(info, 2, wrapped);
    return info;
  }
  static std::string tensor_head(std::string_view name, const std::vector<std::int64_t>& dims,
                                 std::int64_t type) {
    std::string tensor;
    for (const std::int64_t d : dims) append_varint_field(tensor, 1, static_cast<std::uint64_t>(d));
    append_varint_field(tensor, 2, static_cast<std::uint64_t>(type));
    append_bytes_field(tensor, 8, name);
    return tensor;
  }

  std::string graph_;
};

/// An image that owns its bytes.
inline device::Image onnx_image(std::string bytes, ByteVector constants = {}) {
  struct Owner {
    std::string bytes;
    ByteVector constants;
  };
  auto owner = std::make_shared<Owner>();
  owner->bytes = std::move(bytes);
  owner->constants = std::move(constants);
  device::Image image;
  image.kind = "onnx";
  image.bytes = as_byte_span(owner->bytes);
  image.constants = owner->constants;
  image.keep_alive = owner;
  return image;
}

/// y = relu(x), 16 floats.
inline std::string relu_network() {
  return NetworkBuilder()
      .input("x", {1, 16})
      .node("Relu", {"x"}, {"y"}, "relu")
      .output("y", {1, 16})
      .bytes();
}

/// y = relu(x * w) with x [n, 2] and w [2, 3] = 1..6, n open.
inline std::string matmul_network(std::int64_t n = -1) {
  return NetworkBuilder()
      .input("x", {n, 2})
      .floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})
      .node("MatMul", {"x", "w"}, {"h"}, "mm")
      .node("Relu", {"h"}, {"y"}, "relu")
      .output("y", {n, 3})
      .bytes();
}

/// c = a + b along open dimensions: sizes that do not fit fail only when the job runs.
inline std::string open_add_network() {
  return NetworkBuilder()
      .input("a", {-1})
      .input("b", {-1})
      .node("Add", {"a", "b"}, {"c"}, "sum")
      .output("c", {-1})
      .bytes();
}

/// `data` as a bound tensor; the memory is the caller's.
template <class T>
device::TensorRef tensor_ref(std::vector<T>& data, Shape shape) {
  device::TensorRef ref;
  ref.data = data.data();
  ref.size = data.size() * sizeof(T);
  ref.shape = std::move(shape);
  return ref;
}

}  // namespace corelane::drivers::virtual_npu
