/// What the tests of this adapter share: small models, a context that destroys
/// itself, and conversions written from the formulas of the API, independently
/// of the library's.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "corelane/onnx/onnx_import.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"
#include "edge/testing/environment.h"
#include "rknn_api.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::rknn::test {

using testing::OnnxBuilder;
using Dims = std::vector<std::int64_t>;

/// Element types by their ONNX numbers that the builder does not name.
enum OnnxMoreTypes : int { kOnnxInt32 = 6, kOnnxBool = 9 };

// --- Models.
// ------------------------------------------------------------------------------------

inline std::vector<OnnxBuilder::Dim> dims_of(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

inline Dims dims(const rknn_tensor_attr& attr) { return {attr.dims, attr.dims + attr.n_dims}; }

/// y = 2 * x over f32: what the network sees is half of what it gives, exactly.
inline std::string doubling(const Dims& dims) {
  return OnnxBuilder()
      .input("x", dims_of(dims))
      .output("y", dims_of(dims))
      .constant<float>("two", {1}, testing::kOnnxFloat, {2.0F})
      .node("Mul", {"x", "two"}, {"y"})
      .build("doubling");
}

/// a and b in, "sum" and "difference" out.
inline std::string two_by_two(const Dims& dims) {
  return OnnxBuilder()
      .input("a", dims_of(dims))
      .input("b", dims_of(dims))
      .output("sum", dims_of(dims))
      .output("difference", dims_of(dims))
      .node("Add", {"a", "b"}, {"sum"})
      .node("Sub", {"a", "b"}, {"difference"})
      .build("two_by_two");
}

struct Affine {
  float scale = 1;
  std::int32_t zp = 0;
};

/// The input is quantised by `in`, the output by `out`, to T (i8 or u8).
template <class T>
std::string quantised(const Dims& dims, Affine in, Affine out) {
  const int type = std::is_signed_v<T> ? testing::kOnnxInt8 : testing::kOnnxUint8;
  return OnnxBuilder()
      .input("x", dims_of(dims))
      .output("y", dims_of(dims))
      .constant("s", {}, testing::kOnnxFloat, std::vector<float>{in.scale})
      .constant("z", {}, type, std::vector<T>{static_cast<T>(in.zp)})
      .constant("t", {}, testing::kOnnxFloat, std::vector<float>{out.scale})
      .constant("u", {}, type, std::vector<T>{static_cast<T>(out.zp)})
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"d"})
      .node("QuantizeLinear", {"d", "t", "u"}, {"p"})
      .node("DequantizeLinear", {"p", "t", "u"}, {"y"})
      .build("quantised");
}

/// A program file; `edit` may change what it says of itself.
inline std::string compiled(const std::string& onnx, const ImportOptions& options = {},
                            const std::function<void(ProgramDescription&)>& edit = {}) {
  if (!edit) {
    CompileOptions compile;
    compile.import = options;
    const auto bytes = compile_bytes(as_byte_span(onnx), compile);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return bytes ? std::string(as_string_view(*bytes)) : std::string();
  }
  auto model = import_onnx(as_byte_span(onnx), options);
  EXPECT_TRUE(model) << model.error().to_string();
  edit(model->description);
  ProgramWriter writer(model->description);
  writer.add_segment(SegmentKind::kGraph, "", ByteSpan(model->graph));
  if (!model->constants.empty())
    writer.add_segment(SegmentKind::kConstants, "", ByteSpan(model->constants));
  const auto bytes = writer.finish();
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return bytes ? std::string(as_string_view(*bytes)) : std::string();
}

// --- Environment and log.
// -----------------------------------------------------------------------

using edge::testing::Environment;

/// The lines that `call` writes to stderr.
template <class F>
std::string lines_of(F&& call) {
  ::testing::internal::CaptureStderr();
  call();
  return ::testing::internal::GetCapturedStderr();
}

/// Ends a child process with what its checks say.
[[noreturn]] inline void leave() { std::exit(::testing::Test::HasFailure() ? 1 : 0); }

// --- A context.
// ---------------------------------------------------------------------------------

class Model {
 public:
  Model() = default;
  explicit Model(std::string bytes, std::uint32_t flags = 0) {
    EXPECT_EQ(
        rknn_init(&ctx, bytes.data(), static_cast<std::uint32_t>(bytes.size()), flags, nullptr),
        RKNN_SUCC);
  }
  ~Model() { destroy(); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  void destroy() {
    if (ctx == 0) return;
    EXPECT_EQ(rknn_destroy(std::exchange(ctx, 0)), RKNN_SUCC);
  }

  rknn_tensor_attr attr(rknn_query_cmd cmd, std::uint32_t index = 0) const {
    rknn_tensor_attr attr;
    std::memset(&attr, 0, sizeof attr);
    attr.index = index;
    EXPECT_EQ(rknn_query(ctx, cmd, &attr, sizeof attr), RKNN_SUCC);
    return attr;
  }
  template <class T>
  int set(std::uint32_t index, const std::vector<T>& data, rknn_tensor_type type,
          rknn_tensor_format fmt, bool pass_through = false) const {
    rknn_input input{};
    input.index = index;
    input.buf = const_cast<T*>(data.data());
    input.size = static_cast<std::uint32_t>(data.size() * sizeof(T));
    input.pass_through = pass_through ? 1 : 0;
    input.type = type;
    input.fmt = fmt;
    return rknn_inputs_set(ctx, 1, &input);
  }
  int set(const std::vector<float>& data, std::uint32_t index = 0) const {
    return set(index, data, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  }
  int run(rknn_run_extend* extend = nullptr) const { return rknn_run(ctx, extend); }
  /// An output in elements of T, as the library allocates it; empty after a
  /// failure.
  template <class T>
  std::vector<T> get(std::uint32_t index, bool want_float) const {
    rknn_output output{};
    output.index = index;
    output.want_float = want_float ? 1 : 0;
    const int code = rknn_outputs_get(ctx, 1, &output, nullptr);
    EXPECT_EQ(code, RKNN_SUCC);
    if (code != RKNN_SUCC || output.buf == nullptr) return {};
    const auto* first = static_cast<const T*>(output.buf);
    std::vector<T> values(first, first + output.size / sizeof(T));
    EXPECT_EQ(rknn_outputs_release(ctx, 1, &output), RKNN_SUCC);
    return values;
  }
  std::vector<float> floats(std::uint32_t index = 0) const { return get<float>(index, true); }

  rknn_context ctx = 0;
};

/// Memory that destroys itself; `T* as<T>()` is where the tensor begins.
class Mem {
 public:
  Mem(rknn_context ctx, std::uint32_t size) : mem(rknn_create_mem(ctx, size)) {
    EXPECT_NE(mem, nullptr);
    if (mem != nullptr) std::memset(mem->virt_addr, 0xA5, size);
  }
  explicit Mem(rknn_tensor_mem* made) : mem(made) { EXPECT_NE(mem, nullptr); }
  Mem(rknn_context, rknn_tensor_mem* made) : Mem(made) {}
  ~Mem() { destroy(); }
  Mem(const Mem&) = delete;
  Mem& operator=(const Mem&) = delete;
  void destroy() {
    if (mem == nullptr) return;
    EXPECT_EQ(rknn_destroy_mem(0, std::exchange(mem, nullptr)), RKNN_SUCC);
  }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(static_cast<char*>(mem->virt_addr) + mem->offset);
  }
  template <class T>
  void fill(const std::vector<T>& values) const {
    ASSERT_LE(values.size() * sizeof(T), mem->size);
    std::memcpy(as<T>(), values.data(), values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> values(std::size_t count) const {
    return {as<T>(), as<T>() + count};
  }

  rknn_tensor_mem* mem;
};

// --- References, by the formulas of the API.
// ----------------------------------------------------

/// clamp(round(x / scale + zp)).
template <class T>
T quantise(double x, Affine q) {
  const double value = std::nearbyint(x / q.scale + q.zp);
  return static_cast<T>(
      std::clamp<double>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
/// (q - zp) * scale.
template <class T>
float dequantise(T q, Affine a) {
  return static_cast<float>((static_cast<int>(q) - a.zp) * static_cast<double>(a.scale));
}

/// The bits of the half nearest to x, ties to even.
inline std::uint16_t half_bits(double x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), -14);
  const double units = std::nearbyint(std::ldexp(x, 10 - exponent));  // Of 2^(exponent - 10).
  if (std::ldexp(units, exponent - 10) > 65504) return sign | 0x7C00;
  const int bits = ((exponent + 14) << 10) + static_cast<int>(units);  // A carry is right as it is.
  return static_cast<std::uint16_t>(sign | bits);
}
inline float half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

/// A picture's dimensions and where an element lies in each memory order.
struct Picture {
  std::size_t n = 1, c = 1, h = 1, w = 1;
  Dims dims() const {
    return {static_cast<std::int64_t>(n), static_cast<std::int64_t>(c),
            static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)};
  }
  std::size_t size() const { return n * c * h * w; }
  std::size_t nchw(std::size_t in, std::size_t ic, std::size_t ih, std::size_t iw) const {
    return ((in * c + ic) * h + ih) * w + iw;
  }
  std::size_t nhwc(std::size_t in, std::size_t ic, std::size_t ih, std::size_t iw,
                   std::size_t stride) const {
    return ((in * h + ih) * stride + iw) * c + ic;
  }
  std::size_t nc1hwc2(std::size_t in, std::size_t ic, std::size_t ih, std::size_t iw,
                      std::size_t c2) const {
    const std::size_t c1 = (c + c2 - 1) / c2;
    return (((in * c1 + ic / c2) * h + ih) * w + iw) * c2 + ic % c2;
  }
  /// Calls f(position in NCHW, channel, position elsewhere) for all elements.
  template <class Place, class F>
  void each(const Place& place, const F& f) const {
    for (std::size_t in = 0; in < n; ++in)
      for (std::size_t ic = 0; ic < c; ++ic)
        for (std::size_t ih = 0; ih < h; ++ih)
          for (std::size_t iw = 0; iw < w; ++iw) f(nchw(in, ic, ih, iw), ic, place(in, ic, ih, iw));
  }
  /// From NCHW to rows of `stride` pixels (0: the width); `pad` between them.
  template <class T>
  std::vector<T> to_nhwc(const std::vector<T>& from, std::size_t stride = 0, T pad = {}) const {
    if (stride == 0) stride = w;
    std::vector<T> to(n * h * stride * c, pad);
    each([&](auto... i) { return nhwc(i..., stride); },
         [&](std::size_t a, std::size_t, std::size_t b) { to[b] = from[a]; });
    return to;
  }
  /// From NCHW to blocks of c2 channels; `pad` in the tail of the last one.
  template <class T>
  std::vector<T> to_blocks(const std::vector<T>& from, std::size_t c2, T pad = {}) const {
    std::vector<T> to(n * ((c + c2 - 1) / c2) * c2 * h * w, pad);
    each([&](auto... i) { return nc1hwc2(i..., c2); },
         [&](std::size_t a, std::size_t, std::size_t b) { to[b] = from[a]; });
    return to;
  }
};

/// Rows of 5 pixels: 16 with padding.
inline constexpr Picture kPicture{1, 3, 4, 5};

/// Values that tell elements apart: i * step + first.
inline std::vector<float> ramp(std::size_t count, float first = -3, float step = 0.25F) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i) * step;
  return values;
}
template <class To, class From, class F>
std::vector<To> each(const std::vector<From>& from, const F& f) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From& x : from) to.push_back(static_cast<To>(f(x)));
  return to;
}
inline std::vector<float> times(const std::vector<float>& from, float factor) {
  return each<float>(from, [&](float x) { return x * factor; });
}
inline std::vector<std::uint16_t> halves(const std::vector<float>& from) {
  return each<std::uint16_t>(from, [](float x) { return half_bits(x); });
}

}  // namespace corelane::rknn::test
