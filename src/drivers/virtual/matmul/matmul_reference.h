/// Matrix products by definition, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "corelane/device/matmul_image.h"
#include "corelane/driver/lane_engine.h"
#include "corelane/tensor/convert.h"
#include "drivers/virtual/virtual_engine.h"

namespace corelane::drivers::virtual_npu {

inline void put_element(std::vector<std::byte>& bytes, DType type, std::size_t index, float value) {
  const auto integer = is_float(type) ? 0 : static_cast<std::int32_t>(value);
  if (type == DType::kI4) {
    std::byte& byte = bytes[index / 2];
    const auto nibble = static_cast<std::byte>(integer & 0xF);
    byte =
        index % 2 == 0 ? (byte & std::byte{0xF0}) | nibble : (byte & std::byte{0x0F}) | nibble << 4;
  } else if (type == DType::kI8) {
    bytes[index] = static_cast<std::byte>(integer);
  } else {
    const std::uint16_t half = f32_to_f16(value);
    std::memcpy(bytes.data() + 2 * index, &half, 2);
  }
}

template <class T>
T element_as(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

inline double get_element(const std::byte* data, DType type, std::size_t index) {
  switch (type) {
    case DType::kI8:
      return element_as<std::int8_t>(data, index);
    case DType::kI16:
      return element_as<std::int16_t>(data, index);
    case DType::kI32:
      return element_as<std::int32_t>(data, index);
    case DType::kF16:
      return f16_to_f32(element_as<std::uint16_t>(data, index));
    case DType::kBF16:
      return bf16_to_f32(element_as<std::uint16_t>(data, index));
    default:
      return element_as<float>(data, index);
  }
}

/// Values for a product, its memory, and the expected result.
struct Product {
  device::MatmulDesc desc;
  std::vector<float> a;  ///< [m][k], as stored (integers, or f16 values).
  std::vector<float> b;  ///< [k][n].
  std::vector<std::byte> a_bytes;
  std::vector<std::byte> b_bytes;
  std::vector<std::byte> c_bytes;

  explicit Product(device::MatmulDesc description, unsigned seed = 1)
      : desc(std::move(description)), a(count(desc.m, desc.k)), b(count(desc.k, desc.n)) {
    std::mt19937 random(seed);
    fill(a, desc.a, random);
    fill(b, desc.b, random);
    allocate();
  }

  void fill_with(float a_value, float b_value) {
    std::fill(a.begin(), a.end(), a_value);
    std::fill(b.begin(), b.end(), b_value);
    store();
  }

  void store() {
    // The content of padding must not matter.
    std::fill(a_bytes.begin(), a_bytes.end(), std::byte{0x7F});
    std::fill(b_bytes.begin(), b_bytes.end(), std::byte{0x7F});
    for (std::int64_t m = 0; m < desc.m; ++m)
      for (std::int64_t k = 0; k < desc.k; ++k)
        put_element(a_bytes, desc.a, device::a_index(desc, m, k),
                    a[count(m, desc.k) + count(k, 1)]);
    for (std::int64_t k = 0; k < desc.k; ++k)
      for (std::int64_t n = 0; n < desc.n; ++n)
        put_element(b_bytes, desc.b, device::b_index(desc, k, n),
                    b[count(k, desc.n) + count(n, 1)]);
  }

  device::Image image() const {
    auto bytes = std::make_shared<ByteVector>(device::encode(desc));
    device::Image made;
    made.kind = device::kMatmulKind;
    made.bytes = *bytes;
    made.keep_alive = bytes;
    return made;
  }

  static device::TensorRef ref(std::vector<std::byte>& bytes, const Shape& shape) {
    return {bytes.data(), bytes.size(), shape, nullptr};
  }

  /// Checks each element of `c` against the definition; `what` names the case on failure.
  void check(const std::string& what) const {
    for (std::int64_t m = 0; m < desc.m; ++m)
      for (std::int64_t n = 0; n < desc.n; ++n) {
        const Expected expected = expect(m, n);
        const double got = get_element(c_bytes.data(), desc.c, device::c_index(desc, m, n));
        const bool same = got == expected.value || (std::isinf(got) && expected.overflows);
        if (same || std::abs(got - expected.value) <= expected.tolerance) continue;
        FAIL() << what << " " << desc.to_string() << " at " << m << ", " << n << ": " << got
               << ", not " << expected.value << " +- " << expected.tolerance;
      }
    check_padding(what);
  }

 private:
  struct Expected {
    double value = 0;
    double tolerance = 0;
    bool overflows = false;
  };

  static std::size_t count(std::int64_t x, std::int64_t y) {
    return static_cast<std::size_t>(x * y);
  }

  static void fill(std::vector<float>& values, DType type, std::mt19937& random) {
    std::uniform_int_distribution<int> integers(type == DType::kI4 ? -8 : -128,
                                                type == DType::kI4 ? 7 : 127);
    std::uniform_real_distribution<float> reals(-1, 1);
    for (float& value : values)
      value = type == DType::kF16 ? f16_to_f32(f32_to_f16(reals(random)))
                                  : static_cast<float>(integers(random));
  }

  void allocate() {
    const auto tensors = device::describe(desc);
    ASSERT_TRUE(tensors) << tensors.error().to_string();
    a_bytes.resize(*tensors->a.bytes());
    b_bytes.resize(*tensors->b.bytes());
    c_bytes.resize(*tensors->c.bytes(), std::byte{0x55});
    store();
  }

  std::size_t scale_index(std::int64_t k, std::int64_t n) const {
    if (desc.b_quant == device::MatmulQuantB::kLayer) return 0;
    if (desc.b_quant == device::MatmulQuantB::kChannel) return count(n, 1);
    return count(k / desc.group_size, desc.n) + count(n, 1);
  }

  Expected expect(std::int64_t m, std::int64_t n) const {
    const bool scales = desc.c != DType::kI32 && desc.c != DType::kI16;
    const bool exact = is_integer(desc.a) && desc.b_quant != device::MatmulQuantB::kGroup;
    std::int64_t integers = 0;
    double sum = 0;
    double size = 0;
    double scale = 1;
    for (std::int64_t k = 0; k < desc.k; ++k) {
      const std::size_t which = scale_index(k, n);
      const float zero_b =
          desc.b_zero_points.empty() ? 0 : static_cast<float>(desc.b_zero_points[which]);
      scale = desc.b_scales.empty() ? 1 : desc.b_scales[which];
      const double x = a[count(m, desc.k) + count(k, 1)] - static_cast<float>(desc.a_zero_point);
      const double y = b[count(k, desc.n) + count(n, 1)] - zero_b;
      if (exact) integers += static_cast<std::int64_t>(x) * static_cast<std::int64_t>(y);
      sum += x * y * scale;
      size += std::abs(x * y * scale);
    }
    if (!scales) {
      if (desc.c == DType::kI16) integers = std::clamp<std::int64_t>(integers, -32768, 32767);
      return {static_cast<double>(integers), 0, false};
    }
    const auto a_scale = static_cast<double>(desc.a_scale);
    if (desc.c == DType::kI8) {
      const auto c_scale = static_cast<double>(desc.c_scale);
      const double real = exact ? static_cast<double>(integers) * (a_scale * scale / c_scale)
                                : sum * (a_scale / c_scale);
      const double whole = std::nearbyint(real) + desc.c_zero_point;
      return {std::clamp(whole, -128.0, 127.0), exact ? 0.0 : 1.0, false};
    }
    const double value = exact ? static_cast<double>(integers) * (a_scale * scale) : sum * a_scale;
    double tolerance = exact ? std::abs(value) * std::ldexp(1, -22)
                             : static_cast<double>(desc.k + 4) * std::ldexp(size * a_scale, -24);
    if (desc.c == DType::kF16)
      tolerance += std::max(std::ldexp(std::abs(value), -11), std::ldexp(1, -25));
    if (desc.c == DType::kBF16) tolerance += std::ldexp(std::abs(value), -8);
    return {value, tolerance, desc.c == DType::kF16 && std::abs(value) > 65504};
  }

  void check_padding(const std::string& what) const {
    if (desc.c_block == 0) return;
    const std::int64_t block = desc.c_block;
    for (std::int64_t m = 0; m < desc.m; ++m)
      for (std::int64_t n = desc.n; n < (desc.n + block - 1) / block * block; ++n)
        ASSERT_EQ(get_element(c_bytes.data(), desc.c, device::c_index(desc, m, n)), 0) << what;
  }
};

/// Prepares and runs it on `cores` cores, through the lane classes.
inline void run_product(
    Product& product, std::size_t cores = 1,
    const std::shared_ptr<device::LaneEngine>& engine = make_virtual_engine(3)) {
  auto program = engine->prepare(product.image(), {});
  ASSERT_TRUE(program) << program.error().to_string();
  auto request = (*program)->new_request(cores, 0);
  ASSERT_TRUE(request) << request.error().to_string();
  const auto& in = (*program)->inputs();
  ASSERT_TRUE((*request)->set_input(0, Product::ref(product.a_bytes, in[0].shape)).ok());
  ASSERT_TRUE((*request)->set_input(1, Product::ref(product.b_bytes, in[1].shape)).ok());
  ASSERT_TRUE((*request)
                  ->set_output(0, Product::ref(product.c_bytes, (*program)->outputs()[0].shape))
                  .ok());
  const Status status = (*request)->run((std::uint64_t{1} << cores) - 1);
  ASSERT_TRUE(status.ok()) << status.to_string();
}

}  // namespace corelane::drivers::virtual_npu
