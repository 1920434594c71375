#include "drivers/virtual/direct/direct_kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/leaked.h"

namespace corelane::drivers::virtual_npu {
namespace {

template <auto F>
void unary(const DirectStep& step, const float* a, const float*, float* y) {
  for (std::size_t i = 0; i < step.count; ++i) y[i] = F(a[i]);
}

template <auto F>
void binary(const DirectStep& step, const float* a, const float* b, float* y) {
  const std::size_t count = step.count;
  if (!step.from_a.empty())
    for (std::size_t i = 0; i < count; ++i) y[i] = F(a[step.from_a[i]], b[step.from_b[i]]);
  else
    for (std::size_t i = 0; i < count; ++i) y[i] = F(a[i], b[i]);
}

void clamp(const DirectStep& step, const float* a, const float*, float* y) {
  for (std::size_t i = 0; i < step.count; ++i) {
    const float low = a[i] < step.low ? step.low : a[i];
    y[i] = low > step.high ? step.high : low;
  }
}

// NaN goes through, as in ONNX Runtime.
constexpr auto kRelu = [](float x) { return x < 0 ? 0.0F : x; };
constexpr auto kLarger = [](float a, float b) { return a > b || std::isnan(a) ? a : b; };
constexpr auto kSmaller = [](float a, float b) { return a < b || std::isnan(a) ? a : b; };

constexpr std::size_t kDear = 24;  ///< Cost of the functions of the C library.

}  // namespace

const DirectOperator* find_elementwise(const ov::Node& node) {
  static Leaked<const std::unordered_map<std::string_view, DirectOperator>> operators({
      {"Relu", {unary<kRelu>, 1, 1}},
      {"Abs", {unary<[](float x) { return std::fabs(x); }>, 1, 1}},
      {"Negative", {unary<[](float x) { return -x; }>, 1, 1}},
      {"Clamp", {clamp, 1, 1}},
      {"Sqrt", {unary<[](float x) { return std::sqrt(x); }>, 1, 4}},
      {"Floor", {unary<[](float x) { return std::floor(x); }>, 1, 8}},
      {"Ceiling", {unary<[](float x) { return std::ceil(x); }>, 1, 8}},
      {"Exp", {unary<[](float x) { return std::exp(x); }>, 1, kDear}},
      {"Log", {unary<[](float x) { return std::log(x); }>, 1, kDear}},
      {"Tanh", {unary<[](float x) { return std::tanh(x); }>, 1, kDear}},
      {"Sigmoid", {unary<[](float x) { return 1.0F / (1.0F + std::exp(-x)); }>, 1, kDear}},
      {"Add", {binary<std::plus<float>{}>, 2, 1}},
      {"Subtract", {binary<std::minus<float>{}>, 2, 1}},
      {"Multiply", {binary<std::multiplies<float>{}>, 2, 1}},
      {"Divide", {binary<std::divides<float>{}>, 2, 2}},
      {"Maximum", {binary<kLarger>, 2, 2}},
      {"Minimum", {binary<kSmaller>, 2, 2}},
  });
  const auto found = operators->find(node.get_type_name());
  return found == operators->end() ? nullptr : &found->second;
}

/// Row by row of B, so that the inner loop runs along memory and can be vectorised.
void direct_matmul(const DirectStep& step, const float* a, const float* b, float* y) {
  for (std::size_t i = 0; i < step.m; ++i) {
    float* row = y + i * step.n;
    std::fill(row, row + step.n, 0.0F);
    for (std::size_t p = 0; p < step.k; ++p) {
      const float factor = a[i * step.k + p];
      const float* other = b + p * step.n;
      for (std::size_t j = 0; j < step.n; ++j) row[j] += factor * other[j];
    }
  }
}

/// With the largest value subtracted, so that no exponential overflows.
void direct_softmax(const DirectStep& step, const float* a, const float*, float* y) {
  for (std::size_t first = 0; first < step.count; first += step.n) {
    const float* x = a + first;
    const float most = *std::max_element(x, x + step.n);
    float total = 0;
    for (std::size_t i = 0; i < step.n; ++i) total += y[first + i] = std::exp(x[i] - most);
    for (std::size_t i = 0; i < step.n; ++i) y[first + i] /= total;
  }
}

}  // namespace corelane::drivers::virtual_npu
