#include "drivers/virtual/direct/direct_kernels.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

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
float relu(float x) { return x < 0 ? 0.0F : x; }
float larger(float a, float b) { return a > b || std::isnan(a) ? a : b; }
float smaller(float a, float b) { return a < b || std::isnan(a) ? a : b; }
float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }
float negative(float x) { return -x; }
float absolute(float x) { return std::fabs(x); }
float root(float x) { return std::sqrt(x); }
float down(float x) { return std::floor(x); }
float up(float x) { return std::ceil(x); }
float power_of_e(float x) { return std::exp(x); }
float logarithm(float x) { return std::log(x); }
float tangent(float x) { return std::tanh(x); }
float sum(float a, float b) { return a + b; }
float difference(float a, float b) { return a - b; }
float product(float a, float b) { return a * b; }
float quotient(float a, float b) { return a / b; }

constexpr std::size_t kDear = 24;  ///< Cost of the functions of the C library.

}  // namespace

const DirectOperator* find_elementwise(const ov::Node& node) {
  static const std::unordered_map<std::string_view, DirectOperator> operators = {
      {"Relu", {unary<relu>, 1, 1}},
      {"Abs", {unary<absolute>, 1, 1}},
      {"Negative", {unary<negative>, 1, 1}},
      {"Clamp", {clamp, 1, 1}},
      {"Sqrt", {unary<root>, 1, 4}},
      {"Floor", {unary<down>, 1, 8}},
      {"Ceiling", {unary<up>, 1, 8}},
      {"Exp", {unary<power_of_e>, 1, kDear}},
      {"Log", {unary<logarithm>, 1, kDear}},
      {"Tanh", {unary<tangent>, 1, kDear}},
      {"Sigmoid", {unary<sigmoid>, 1, kDear}},
      {"Add", {binary<sum>, 2, 1}},
      {"Subtract", {binary<difference>, 2, 1}},
      {"Multiply", {binary<product>, 2, 1}},
      {"Divide", {binary<quotient>, 2, 2}},
      {"Maximum", {binary<larger>, 2, 2}},
      {"Minimum", {binary<smaller>, 2, 2}},
  };
  const auto found = operators.find(node.get_type_name());
  return found == operators.end() ? nullptr : &found->second;
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
