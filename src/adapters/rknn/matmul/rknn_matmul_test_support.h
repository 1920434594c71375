/// Matrix products through the C API, and what they must give: element by element, in the plainest
/// way, with layouts worked out from the attributes alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "corelane/tensor/convert.h"
#include "rknn_matmul_api.h"

namespace corelane::rknn {

inline constexpr rknn_matmul_type kInts = RKNN_INT8_MM_INT8_TO_INT32;

/// Another device for the length of a test.
class InnerDevice {
 public:
  explicit InnerDevice(const char* text) { setenv("CORELANE_RKNN_INNER", text, 1); }
  ~InnerDevice() { unsetenv("CORELANE_RKNN_INNER"); }
  InnerDevice(const InnerDevice&) = delete;
  InnerDevice& operator=(const InnerDevice&) = delete;
};

/// Reads and writes single elements of any type.
struct Elements {
  void* data;
  rknn_tensor_type type;

  void set(std::size_t i, double value) const {
    auto* bytes = static_cast<std::uint8_t*>(data);
    if (type == RKNN_TENSOR_INT4) {
      const auto nibble = static_cast<unsigned>(static_cast<int>(value)) & 0xFU;
      std::uint8_t& byte = bytes[i / 2];
      byte = static_cast<std::uint8_t>(i % 2 == 0 ? (byte & 0xF0U) | nibble
                                                  : (byte & 0x0FU) | (nibble << 4));
    } else if (type == RKNN_TENSOR_INT8) {
      bytes[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
    } else {
      static_cast<std::uint16_t*>(data)[i] = f32_to_f16(static_cast<float>(value));
    }
  }
  double get(std::size_t i) const {
    switch (type) {
      case RKNN_TENSOR_INT4: {
        const unsigned nibble =
            (static_cast<const std::uint8_t*>(data)[i / 2] >> (i % 2 * 4)) & 15U;
        return nibble < 8 ? nibble : static_cast<int>(nibble) - 16;
      }
      case RKNN_TENSOR_INT8:
        return static_cast<const std::int8_t*>(data)[i];
      case RKNN_TENSOR_INT16:
        return static_cast<const std::int16_t*>(data)[i];
      case RKNN_TENSOR_INT32:
        return static_cast<const std::int32_t*>(data)[i];
      case RKNN_TENSOR_FLOAT16:
        return f16_to_f32(static_cast<const std::uint16_t*>(data)[i]);
      case RKNN_TENSOR_BFLOAT16:
        return bf16_to_f32(static_cast<const std::uint16_t*>(data)[i]);
      default:
        return static_cast<const float*>(data)[i];
    }
  }
};

/// A product with memory of its own and the matrices as numbers.
class Product {
 public:
  explicit Product(const rknn_matmul_info& given) : info(given) {
    code = rknn_matmul_create(&ctx, &info, &io);
    if (code != RKNN_SUCC) return;
    a_mem = rknn_create_mem(ctx, io.A.size);
    b_mem = rknn_create_mem(ctx, io.B.size);
    c_mem = rknn_create_mem(ctx, io.C.size);
    a.resize(size(info.M) * size(info.K));
    b.resize(size(info.K) * size(info.N));
    a_scale = c_scale = 1;
    b_scales = {1};
    b_zeros = {0};
  }
  ~Product() {
    for (rknn_tensor_mem* mem : {a_mem, b_mem, c_mem}) {
      if (mem == nullptr) continue;
      EXPECT_EQ(rknn_destroy_mem(ctx, mem), RKNN_SUCC);
    }
    if (code == RKNN_SUCC) EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  static std::size_t size(int n) { return static_cast<std::size_t>(n); }

  int bind() {
    for (const auto& [mem, attr] :
         {std::pair{a_mem, &io.A}, std::pair{b_mem, &io.B}, std::pair{c_mem, &io.C}})
      if (const int result = rknn_matmul_set_io_mem(ctx, mem, attr); result != 0) return result;
    return 0;
  }

  std::size_t a_at(int m, int k) const { return rows(io.A, m, k); }
  std::size_t c_at(int m, int n) const { return rows(io.C, m, n); }
  std::size_t b_at(int k, int n) const {
    if (info.B_layout == RKNN_MM_LAYOUT_NORM) return size(k) * size(info.N) + size(n);
    if (info.B_layout == RKNN_MM_LAYOUT_TP_NORM) return size(n) * size(info.K) + size(k);
    const int nb = static_cast<int>(io.B.dims[2]);
    const int kb = static_cast<int>(io.B.dims[3]);
    const int first = k / segment * segment;
    const int rows_here = std::min(segment, info.K - first);
    const std::size_t block = size(n / nb) * size(rows_here / kb) + size((k - first) / kb);
    return size(first) * size(info.N) + (block * size(nb) + size(n % nb)) * size(kb) +
           size((k - first) % kb);
  }

  /// Writes `a` and `b` into their memory.
  void write() { write_a(), write_b(); }
  void write_a() {
    const Elements to{a_mem->virt_addr, io.A.type};
    for (int m = 0; m < info.M; ++m)
      for (int k = 0; k < info.K; ++k) to.set(a_at(m, k), a[size(m) * size(info.K) + size(k)]);
  }
  void write_b() {
    const Elements to{b_mem->virt_addr, io.B.type};
    for (int k = 0; k < info.K; ++k)
      for (int n = 0; n < info.N; ++n) to.set(b_at(k, n), b[size(k) * size(info.N) + size(n)]);
  }

  /// Numbers that the types hold exactly.
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    const auto next = [&](rknn_tensor_type type) -> double {
      const int bits = static_cast<int>(random());
      if (type == RKNN_TENSOR_INT4) return bits % 8;  // -7 to 7
      if (type == RKNN_TENSOR_INT8) return bits % 128;
      return (bits % 256) / 64.0;
    };
    for (double& x : a) x = next(io.A.type);
    for (double& x : b) x = next(io.B.type);
  }

  double b_scale_at(int k, int n) const {
    if (info.B_quant_type >= RKNN_QUANT_TYPE_PER_GROUP_SYM)
      return b_scales[size(k / info.group_size) * size(info.N) + size(n)];
    return b_scales.size() == 1 ? b_scales[0] : b_scales[size(n)];
  }
  double b_zero_at(int n) const { return b_zeros.size() == 1 ? b_zeros[0] : b_zeros[size(n)]; }

  /// What C must be, before and after it is brought to its type, and what it may be off.
  struct Expected {
    double value;
    double tolerance;
  };
  Expected expected(int m, int n) const {
    double sum = 0;
    double scaled = 0;
    double magnitude = 0;
    for (int k = 0; k < info.K; ++k) {
      const double left = a[size(m) * size(info.K) + size(k)] - a_zero;
      const double right = b[size(k) * size(info.N) + size(n)] - b_zero_at(n);
      const double part = left * right * a_scale * b_scale_at(k, n);
      sum += left * right;
      scaled += part;
      magnitude += std::abs(part);
    }
    switch (io.C.type) {
      case RKNN_TENSOR_INT32: {
        const double most = *std::max_element(b_scales.begin(), b_scales.end());
        return {info.type == RKNN_INT8_MM_INT8_TO_INT32
                    ? std::nearbyint(sum * b_scale_at(0, n) / most)
                    : sum,
                0};
      }
      case RKNN_TENSOR_INT16:
        return {std::clamp(sum, -32768.0, 32767.0), 0};
      case RKNN_TENSOR_INT8: {
        const double value = std::clamp(std::nearbyint(scaled / c_scale) + c_zero, -128.0, 127.0);
        const double off = scaled / c_scale - std::floor(scaled / c_scale);
        // Half way: what the last bit of the scales says.
        return {value, std::abs(off - 0.5) < 1e-3 ? 1.0 : 0.0};
      }
      default: {
        const double f32 = (info.K + 4) * std::ldexp(magnitude, -24);
        const double type = io.C.type == RKNN_TENSOR_FLOAT16    ? std::ldexp(1, -11)
                            : io.C.type == RKNN_TENSOR_BFLOAT16 ? std::ldexp(1, -8)
                                                                : 0.0;
        return {scaled, f32 + std::abs(scaled) * type + 1e-7};
      }
    }
  }

  /// How many elements of C are not what they must be; reports the first.
  int wrong() const {
    const Elements from{c_mem->virt_addr, io.C.type};
    int count = 0;
    for (int m = 0; m < info.M; ++m)
      for (int n = 0; n < info.N; ++n) {
        const Expected want = expected(m, n);
        const double got = from.get(c_at(m, n));
        const bool overflow =
            io.C.type == RKNN_TENSOR_FLOAT16 && std::abs(want.value) > 65504 && std::isinf(got);
        if (overflow || std::abs(got - want.value) <= want.tolerance) continue;
        if (count++ == 0)
          ADD_FAILURE() << "C(" << m << ", " << n << ") is " << got << ", not " << want.value
                        << " +- " << want.tolerance;
      }
    return count;
  }

  rknn_quant_params quant(const char* name, std::vector<float>& scales,
                          std::vector<std::int32_t>& zeros) const {
    rknn_quant_params params;
    std::memset(&params, 0, sizeof params);
    std::strncpy(params.name, name, sizeof params.name - 1);
    params.scale = scales.data();
    params.scale_len = static_cast<std::int32_t>(scales.size());
    params.zp = zeros.data();
    params.zp_len = static_cast<std::int32_t>(zeros.size());
    return params;
  }
  int set_quant(const char* name, std::vector<float> scales, std::vector<std::int32_t> zeros) {
    rknn_quant_params params = quant(name, scales, zeros);
    return rknn_matmul_set_quant_params(ctx, &params);
  }

  rknn_matmul_info info;
  int code = 0;
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_io_attr io{};
  rknn_tensor_mem* a_mem = nullptr;
  rknn_tensor_mem* b_mem = nullptr;
  rknn_tensor_mem* c_mem = nullptr;
  std::vector<double> a, b;
  double a_scale = 1, c_scale = 1, a_zero = 0, c_zero = 0;
  std::vector<float> b_scales;
  std::vector<std::int32_t> b_zeros;
  int segment = 8192;

 private:
  static std::size_t rows(const rknn_matmul_tensor_attr& attr, int row, int column) {
    if (attr.n_dims == 2) return size(row) * attr.dims[1] + size(column);
    const std::size_t block = attr.dims[2];
    return (size(column) / block * attr.dims[1] + size(row)) * block + size(column) % block;
  }
};

inline rknn_matmul_info product_info(rknn_matmul_type type, int m, int k, int n,
                                     rknn_matmul_layout b = RKNN_MM_LAYOUT_NORM,
                                     rknn_matmul_layout ac = RKNN_MM_LAYOUT_NORM) {
  rknn_matmul_info info;
  std::memset(&info, 0, sizeof info);
  info.M = m;
  info.K = k;
  info.N = n;
  info.type = type;
  info.B_layout = static_cast<std::int16_t>(b);
  info.AC_layout = static_cast<std::int16_t>(ac);
  return info;
}

inline constexpr rknn_matmul_type kMatmulTypes[] = {
    RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, RKNN_INT8_MM_INT8_TO_INT32,
    RKNN_INT8_MM_INT8_TO_INT8,          RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16,
    RKNN_FLOAT16_MM_INT8_TO_FLOAT32,    RKNN_FLOAT16_MM_INT8_TO_FLOAT16,
    RKNN_FLOAT16_MM_INT4_TO_FLOAT32,    RKNN_FLOAT16_MM_INT4_TO_FLOAT16,
    RKNN_INT8_MM_INT8_TO_FLOAT32,       RKNN_INT4_MM_INT4_TO_INT16,
    RKNN_INT8_MM_INT4_TO_INT32,         RKNN_FLOAT16_MM_INT4_TO_BFLOAT16,
    RKNN_INT8_MM_INT4_TO_FLOAT16};

/// The lines a call writes to stderr.
template <class F>
std::string log_of(F&& call) {
  ::testing::internal::CaptureStderr();
  call();
  return ::testing::internal::GetCapturedStderr();
}

}  // namespace corelane::rknn
