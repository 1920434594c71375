#include "tensor/convert/convert_walk.h"

#include <cmath>

namespace corelane::detail {

namespace {

/// Keeps every integer before and after the zero point within 2^22, where the kernels can round an
/// f32 by adding to it.
constexpr std::int32_t kMaxZeroPoint = 1 << 21;

/// Scales and deviations within this and its reciprocal keep products away from overflow and
/// denormals.
constexpr float kLeastScale = 0x1p-30F;

/// Elements with the same parameters from which on a proof that they can be converted in a shorter
/// way is made up for.
constexpr std::size_t kWorthShortening = 2048;

bool zero_points_fit(const QuantPlan& q) {
  return std::all_of(q.zero_points.begin(), q.zero_points.end(),
                     [](std::int32_t z) { return z >= -kMaxZeroPoint && z <= kMaxZeroPoint; });
}

/// Parameters must be constant along a row of pixels: the axis is that of images or channels.
bool axis_fits(const ConvertPlan& p, const QuantPlan& q) {
  return q.count <= 1 || q.inner >= p.h * p.w;
}

bool depends_on_image(const ConvertPlan& p, const QuantPlan& q) {
  return q.count > 1 && q.inner >= p.c * p.h * p.w;
}

template <class T>
bool all_equal(const std::vector<T>& list) {
  return std::all_of(list.begin(), list.end(), [&](const T& x) { return x == list.front(); });
}

bool depends_on_channel(const ConvertPlan& p, const QuantPlan& q) {
  return q.count > 1 && !depends_on_image(p, q) &&
         !(all_equal(q.scales) && all_equal(q.zero_points));
}

bool is_dense_plain(const Layout& layout, const ConvertPlan& p) {
  return layout.kind == LayoutKind::kPlain && (layout.w_stride == 0 || layout.w_stride == p.w);
}

/// A tensor that is plain on both sides has no structure but its quantization axis: images before
/// it, channels along it, pixels after it. False when the sides have different axes.
bool restructure(ConvertPlan& p) {
  QuantPlan& axis = p.dequant.count > 1 ? p.dequant : p.quant;
  if (p.dequant.count > 1 && p.quant.count > 1 &&
      (p.dequant.count != p.quant.count || p.dequant.inner != p.quant.inner)) {
    return false;
  }
  const std::size_t total = p.elements();
  p.c = axis.count;
  p.h = 1;
  p.w = axis.count > 1 ? axis.inner : total;
  p.n = total / (p.c * p.w);
  Addressing a;
  a.stored_c = a.c2 = p.c;
  a.sw = 1;
  a.stored_w = a.sh = a.sc = p.w;
  a.sn = p.c * p.w;
  if (p.w == 1 && p.c > 1) {  // Channels lie side by side: NHWC with the images as pixels.
    p.src_layout.kind = p.dst_layout.kind = LayoutKind::kNHWC;
    std::swap(p.n, p.w);
    a.stored_w = p.w;
    a.sc = 1;
    a.sw = p.c;
    a.sh = a.sn = p.c * p.w;
  }
  p.from = p.to = a;
  for (QuantPlan* q : {&p.dequant, &p.quant}) q->inner = p.w;
  return true;
}

Side make_side(const ConvertPlan& p, const Addressing& a, LayoutKind kind, DType type,
               const std::byte* data) {
  Side s;
  s.data = const_cast<std::byte*>(data);
  s.size = dtype_bits(type) / 8;
  // With one channel per pixel the layouts are the same in memory.
  const std::size_t block = kind == LayoutKind::kNHWC ? p.c : a.c2;
  s.planar = kind == LayoutKind::kPlain || block == 1;
  s.block = s.planar ? 1 : block;
  s.blocks = (p.c + s.block - 1) / s.block;
  s.image_step = a.sn * s.size;
  s.block_step = (kind == LayoutKind::kPlain ? a.sc : a.sc1) * s.size;
  s.row_step = a.sh * s.size;
  return s;
}

/// A plane of one pixel is the same in memory as NHWC.
void see_single_pixels_as_nhwc(Walk& w) {
  if (w.rows * w.pixels != 1 || w.channels == 1 || (!w.src.planar && !w.dst.planar)) return;
  for (Side* s : {&w.src, &w.dst}) {
    if (!s->planar || s->block_step != s->size) continue;
    s->planar = false;
    s->block = w.channels;
    s->blocks = 1;
    s->row_step = s->pixel_step();
  }
}

/// Rows that follow each other without a gap on both sides are one row; so are images of a single
/// block.
void merge_rows(Walk& w) {
  const auto is_dense = [&w](const Side& s) { return s.row_step == w.pixels * s.pixel_step(); };
  if (!is_dense(w.src) || !is_dense(w.dst)) return;
  w.pixels *= w.rows;
  w.rows = 1;
  const auto is_one_block = [&w](const Side& s) {
    return s.blocks == 1 && s.image_step == w.pixels * s.pixel_step();
  };
  if (!w.by_image && is_one_block(w.src) && is_one_block(w.dst)) {
    w.pixels *= w.images;
    w.images = 1;
  }
  for (Side* s : {&w.src, &w.dst}) s->row_step = w.pixels * s->pixel_step();
}

/// Bounds of the integer type, and what may stand in for the division.
void set_bounds(const ConvertPlan& p, RowParams& r) {
  const std::int32_t range = 1 << dtype_bits(p.dst_type);  // At most 16 bits come here.
  const bool is_signed = p.dst_type == DType::kI8 || p.dst_type == DType::kI16;
  const std::int32_t lowest = is_signed ? -range / 2 : 0;
  r.low = static_cast<float>(lowest - r.dst_zero);
  r.high = static_cast<float>(lowest + range - 1 - r.dst_zero);
  if (!r.quantize || r.dst_scale < kLeastScale || r.dst_scale > 1 / kLeastScale) return;
  int exponent = 0;
  r.exact_reciprocal = std::frexp(r.dst_scale, &exponent) == 0.5F;
  r.dst_reciprocal = 1 / r.dst_scale;
}

RowParams make_params(const ConvertPlan& p, std::size_t n, std::size_t c) {
  RowParams r;
  const std::size_t place = p.place(n, c, 0, 0);
  if (p.dequant.active) {
    const std::size_t k = p.dequant.index(place);
    r.dequantize = true;
    r.src_zero = p.dequant.zero_points[k];
    r.src_scale = p.dequant.scales[k];
  }
  if (p.normalise) {
    r.normalise = true;
    r.mean = p.mean[p.mean.size() > 1 ? c : 0];
    r.std = p.std[p.std.size() > 1 ? c : 0];
    const float size = std::abs(r.std);
    if (size >= kLeastScale && size <= 1 / kLeastScale) r.std_reciprocal = 1 / r.std;
  }
  if (p.quant.active) {
    const std::size_t k = p.quant.index(place);
    r.quantize = true;
    r.dst_zero = p.quant.zero_points[k];
    r.dst_scale = p.quant.scales[k];
  }
  if (is_integer(p.dst_type)) set_bounds(p, r);
  const double divisor = static_cast<double>(r.std) * static_cast<double>(r.dst_scale);
  const double offset = -static_cast<double>(r.src_scale) * r.src_zero - r.mean;
  r.factor = static_cast<float>(r.src_scale / divisor);
  r.offset = static_cast<float>(offset / divisor);
  return r;
}

ZeroPattern make_zero(const ConvertPlan& p, std::size_t n, std::size_t c) {
  ZeroPattern pattern{};
  if (!is_integer(p.dst_type) || !p.quant.active) return pattern;
  const std::int32_t zero = p.quant.zero_points[p.quant.index(p.place(n, c, 0, 0))];
  const std::size_t size = dtype_bits(p.dst_type) / 8;
  for (std::size_t i = 0; i < pattern.size() / size; ++i)
    store_zero_point(p.dst_type, pattern.data(), i, zero);
  return pattern;
}

}  // namespace

void Walk::set_image(std::size_t n) {
  if (n > 0 && !by_image) return;
  zeros_.clear();
  const bool many_zeros = plan.quant.count > 1 && !depends_on_image(plan, plan.quant) &&
                          !all_equal(plan.quant.zero_points);
  for (std::size_t c = 0; c < (many_zeros ? channels : 1); ++c)
    zeros_.push_back(make_zero(plan, n, c));
  if (!kernel) return;
  params_.clear();
  for (std::size_t c = 0; c < (uniform ? 1 : channels); ++c)
    params_.push_back(make_params(plan, n, c));
  if (!shortens) return;
  results_.resize(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) kernel.shorten(params_[i], results_[i]);
}

bool Walk::looks_pixels_up() const noexcept {
  return shortens && fused.look_up != nullptr && src.block == channels && channels >= 2 &&
         channels <= 4;
}

bool make_walk(const ConvertPlan& plan, Walk& w) {
  w.plan = plan;
  ConvertPlan& p = w.plan;
  if (p.elements() == 0 || p.src == p.dst || dtype_bits(p.src_type) < 8) return false;
  const bool moves = p.arithmetic == Arithmetic::kMoveBits;
  if (!moves) {
    if (p.arithmetic != Arithmetic::kF32) return false;
    w.kernel = find_row_kernel(p.src_type, p.dst_type);
    if (!w.kernel || !zero_points_fit(p.dequant) || !zero_points_fit(p.quant)) return false;
  }
  if (!p.normalise && is_dense_plain(p.src_layout, p) && is_dense_plain(p.dst_layout, p)) {
    if (moves) p.dequant = p.quant = QuantPlan();  // No padding, so no zero point either.
    if (!restructure(p)) return false;
  }
  const bool needs_zero = p.to.stored_c != p.c || p.to.stored_w != p.w;
  if (moves && !needs_zero) p.quant = QuantPlan();
  if (moves) p.dequant = QuantPlan();
  if (!axis_fits(p, p.dequant) || !axis_fits(p, p.quant)) return false;

  w.images = p.n;
  w.channels = p.c;
  w.rows = p.h;
  w.pixels = p.w;
  w.by_image = depends_on_image(p, p.dequant) || depends_on_image(p, p.quant);
  w.uniform = moves || (!depends_on_channel(p, p.dequant) && !depends_on_channel(p, p.quant) &&
                        all_equal(p.mean) && all_equal(p.std));
  w.src = make_side(p, p.from, p.src_layout.kind, p.src_type, p.src);
  w.dst = make_side(p, p.to, p.dst_layout.kind, p.dst_type, p.dst);
  w.exceeds_cache = p.from.total * w.src.size + p.to.total * w.dst.size > p.cache_bytes;
  if (w.kernel) {
    w.fused = find_fused_kernels(p.src_type, p.dst_type);
    // A single pass is short already.
    const bool passes = p.normalise || (w.kernel.load != nullptr && w.kernel.store != nullptr);
    const std::size_t sharing = (w.uniform ? w.channels : 1) * (w.by_image ? 1 : w.images);
    w.shortens = passes && w.kernel.shortcuts[0] != nullptr &&
                 sharing * w.rows * w.pixels >= kWorthShortening;
  }
  see_single_pixels_as_nhwc(w);
  merge_rows(w);
  return true;
}

}  // namespace corelane::detail
