/// Small ONNX models for tests, written field by field: no ONNX library is needed to have one.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "corelane/base/bytes.h"

namespace corelane::testing {

/// Element types by their ONNX numbers.
enum OnnxType : int { kOnnxFloat = 1, kOnnxUint8 = 2, kOnnxInt8 = 3, kOnnxInt64 = 7 };

class OnnxBuilder {
 public:
  /// A size, or the name of an open dimension.
  using Dim = std::variant<std::int64_t, std::string>;

  OnnxBuilder& input(std::string_view name, const std::vector<Dim>& dims, int type = kOnnxFloat) {
    bytes(graph_, 11, value_info(name, dims, type));
    return *this;
  }
  OnnxBuilder& output(std::string_view name, const std::vector<Dim>& dims, int type = kOnnxFloat) {
    bytes(graph_, 12, value_info(name, dims, type));
    return *this;
  }
  /// Type and shape of an inner value.
  OnnxBuilder& inner(std::string_view name, const std::vector<Dim>& dims, int type = kOnnxFloat) {
    bytes(graph_, 13, value_info(name, dims, type));
    return *this;
  }
  /// Attributes of a node, each encoded.
  using Attributes = std::vector<std::string>;
  static std::string attribute(std::string_view name, std::int64_t value) {
    return attribute_of(name, 2,
                        [&](std::string& a) { number(a, 3, static_cast<std::uint64_t>(value)); });
  }
  static std::string attribute(std::string_view name, float value) {
    return attribute_of(name, 1, [&](std::string& a) { real(a, 2, value); });
  }
  static std::string attribute(std::string_view name, const char* value) {
    return attribute_of(name, 3, [&](std::string& a) { bytes(a, 4, value); });
  }
  static std::string attribute(std::string_view name, const std::vector<std::int64_t>& values) {
    return attribute_of(name, 7, [&](std::string& a) {
      for (const auto v : values) number(a, 8, static_cast<std::uint64_t>(v));
    });
  }
  static std::string attribute(std::string_view name, const std::vector<float>& values) {
    return attribute_of(name, 6, [&](std::string& a) {
      for (const float v : values) real(a, 7, v);
    });
  }
  static std::string attribute(std::string_view name, const std::vector<std::string>& values) {
    return attribute_of(name, 8, [&](std::string& a) {
      for (const auto& v : values) bytes(a, 9, v);
    });
  }
  OnnxBuilder& node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, std::string_view domain = {},
                    const Attributes& attributes = {}) {
    std::string n;
    for (const auto& i : inputs) bytes(n, 1, i);
    for (const auto& o : outputs) bytes(n, 2, o);
    bytes(n, 3, std::string(op) + "_" + outputs.front());
    bytes(n, 4, op);
    for (const auto& a : attributes) bytes(n, 5, a);
    if (!domain.empty()) {
      bytes(n, 7, domain);
      domains_.emplace_back(domain);
    }
    bytes(graph_, 1, n);
    return *this;
  }
  template <class T>
  OnnxBuilder& constant(std::string_view name, const std::vector<std::int64_t>& dims, int type,
                        const std::vector<T>& values) {
    std::string t = tensor(name, dims, type);
    bytes(t, 9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
    bytes(graph_, 5, t);
    return *this;
  }
  /// A constant whose bytes lie in a file beside the model.
  OnnxBuilder& external(std::string_view name, const std::vector<std::int64_t>& dims, int type,
                        std::string_view location, std::size_t offset, std::size_t length) {
    std::string t = tensor(name, dims, type);
    bytes(t, 13, entry("location", location));
    bytes(t, 13, entry("offset", std::to_string(offset)));
    bytes(t, 13, entry("length", std::to_string(length)));
    number(t, 14, 1);
    bytes(graph_, 5, t);
    return *this;
  }
  std::string build(std::string_view name = "tiny", std::uint64_t version = 17) const {
    std::string graph = graph_;
    bytes(graph, 2, name);
    std::string model;
    number(model, 1, 8);
    bytes(model, 2, "corelane tests");
    bytes(model, 7, graph);
    std::string opset;
    number(opset, 2, version);
    bytes(model, 8, opset);
    for (const std::string& domain : domains_) {
      std::string own;
      bytes(own, 1, domain);
      number(own, 2, 1);
      bytes(model, 8, own);
    }
    return model;
  }

 private:
  static void varint(std::string& out, std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) out += static_cast<char>(0x80 | (v & 0x7F));
    out += static_cast<char>(v);
  }
  static void number(std::string& out, unsigned field, std::uint64_t v) {
    varint(out, field << 3);
    varint(out, v);
  }
  static void bytes(std::string& out, unsigned field, std::string_view b) {
    varint(out, field << 3 | 2U);
    varint(out, b.size());
    out += b;
  }
  static void real(std::string& out, unsigned field, float v) {
    varint(out, field << 3 | 5U);
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    out.append(raw, sizeof v);
  }
  template <class F>
  static std::string attribute_of(std::string_view name, unsigned kind, const F& value) {
    std::string a;
    bytes(a, 1, name);
    value(a);
    number(a, 20, kind);
    return a;
  }
  static std::string entry(std::string_view key, std::string_view value) {
    std::string e;
    bytes(e, 1, key);
    bytes(e, 2, value);
    return e;
  }
  static std::string tensor(std::string_view name, const std::vector<std::int64_t>& dims,
                            int type) {
    std::string t;
    for (const auto d : dims) number(t, 1, static_cast<std::uint64_t>(d));
    number(t, 2, static_cast<std::uint64_t>(type));
    bytes(t, 8, name);
    return t;
  }
  static std::string value_info(std::string_view name, const std::vector<Dim>& dims, int type) {
    std::string shape;
    for (const Dim& d : dims) {
      std::string dim;
      if (const auto* size = std::get_if<std::int64_t>(&d))
        number(dim, 1, static_cast<std::uint64_t>(*size));
      else
        bytes(dim, 2, std::get<std::string>(d));
      bytes(shape, 1, dim);
    }
    std::string tensor_type;
    number(tensor_type, 1, static_cast<std::uint64_t>(type));
    bytes(tensor_type, 2, shape);
    std::string wrapped;
    bytes(wrapped, 1, tensor_type);
    std::string info;
    bytes(info, 1, name);
    bytes(info, 2, wrapped);
    return info;
  }

  std::string graph_;
  std::vector<std::string> domains_;
};

/// y = Relu(x) over f32.
inline std::string relu_model(const std::vector<OnnxBuilder::Dim>& dims) {
  return OnnxBuilder().input("x", dims).output("y", dims).node("Relu", {"x"}, {"y"}).build("relu");
}

}  // namespace corelane::testing
