#include "adapters/rknn/model/rknn_attr.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>

#include "adapters/rknn/api/rknn_chip.h"

namespace corelane::rknn {
namespace {

struct TypeRow {
  rknn_tensor_type type;
  DType dtype;
  const char* name;
};
/// Types that programs see. u64 and u4 have no number of their own, see type_of().
constexpr std::array<TypeRow, 12> kTensorTypes = {
    {{RKNN_TENSOR_FLOAT32, DType::kF32, "FLOAT32"},
     {RKNN_TENSOR_FLOAT16, DType::kF16, "FLOAT16"},
     {RKNN_TENSOR_INT8, DType::kI8, "INT8"},
     {RKNN_TENSOR_UINT8, DType::kU8, "UINT8"},
     {RKNN_TENSOR_INT16, DType::kI16, "INT16"},
     {RKNN_TENSOR_UINT16, DType::kU16, "UINT16"},
     {RKNN_TENSOR_INT32, DType::kI32, "INT32"},
     {RKNN_TENSOR_UINT32, DType::kU32, "UINT32"},
     {RKNN_TENSOR_INT64, DType::kI64, "INT64"},
     {RKNN_TENSOR_BOOL, DType::kBool, "BOOL"},
     {RKNN_TENSOR_INT4, DType::kI4, "INT4"},
     {RKNN_TENSOR_BFLOAT16, DType::kBF16, "BFLOAT16"}}};

bool is_picture(const IoTensor& io) noexcept { return io.shape.rank() == 4; }

/// Open dimensions are reported as 0; the API's fields have 32 bits.
std::uint32_t dim(std::int64_t d) noexcept {
  return d < 0 ? 0 : static_cast<std::uint32_t>(std::min<std::int64_t>(d, UINT32_MAX));
}

std::uint32_t clamp_bytes(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
}

std::uint32_t align_up(std::uint32_t x, std::uint32_t to) noexcept {
  return to == 0 ? x : (x + to - 1) / to * to;
}

/// Types that this API never reorders to NHWC: exact ones, and those of which several lie in a
/// byte.
bool keeps_order(DType dtype) noexcept {
  return dtype == DType::kBool || dtype == DType::kI64 || dtype == DType::kU64 ||
         dtype_bits(dtype) < 8;
}

std::size_t bits_of(const IoTensor& io) noexcept {
  const Result<DType> dtype = dtype_of(type_of(io.entry->reported_dtype));
  return dtype ? dtype_bits(*dtype) : 8;
}

/// Elements of one C2 block of the tensor's own type.
std::uint32_t block_of(DType dtype, const Chip& chip) noexcept {
  const std::size_t bits = std::max<std::size_t>(dtype_bits(dtype), 8);
  return std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>(std::size_t{chip.block_bytes} * 8 / bits));
}

void set_dims(rknn_tensor_attr& attr, std::span<const std::uint32_t> dims, std::size_t bits) {
  attr.n_dims = static_cast<std::uint32_t>(std::min<std::size_t>(dims.size(), RKNN_MAX_DIMS));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < attr.n_dims; ++i) {
    attr.dims[i] = dims[i];
    elements = std::min<std::uint64_t>(elements * dims[i], UINT32_MAX);
  }
  attr.n_elems = static_cast<std::uint32_t>(elements);
  attr.size = clamp_bytes((elements * bits + 7) / 8);
}

/// A float model reports FLOAT16 with a quantization of scale 1, as vendor builds do.
void describe_values(rknn_tensor_attr& attr, const IoEntry& entry) {
  attr.type = type_of(entry.reported_dtype);
  attr.scale = 1.0F;
  const bool integer_form = entry.quant_dtype != DType::kUndefined;
  const bool half = attr.type == RKNN_TENSOR_FLOAT16;
  attr.qnt_type = integer_form || half ? RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC : RKNN_TENSOR_QNT_NONE;
  if (!integer_form) return;
  if (entry.quant.kind == QuantKind::kDfp) {
    attr.qnt_type = RKNN_TENSOR_QNT_DFP;
    attr.fl = entry.quant.fl;
  } else if (!entry.quant.scales.empty()) {
    attr.scale = entry.quant.scales.front();
    attr.zp = entry.quant.zero_points.empty() ? 0 : entry.quant.zero_points.front();
  }
}

rknn_tensor_attr begin_attr(const IoTensor& io) {
  rknn_tensor_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.index = io.index;
  const std::string& name = io.entry->desc.name;
  std::memcpy(attr.name, name.data(), std::min<std::size_t>(name.size(), sizeof attr.name - 1));
  describe_values(attr, *io.entry);
  attr.fmt = RKNN_TENSOR_UNDEFINED;
  return attr;
}

std::uint32_t padded_channels(const IoTensor& io, const Chip& chip) {
  return align_up(dim(io.shape[1]), block_of(io.entry->reported_dtype, chip));
}

/// Bytes with rows of `stride` pixels.
std::uint32_t strided_bytes(const IoTensor& io, std::uint32_t stride, std::uint32_t channels) {
  const std::uint64_t pixels = std::uint64_t{dim(io.shape[0])} * dim(io.shape[2]) * stride;
  return clamp_bytes((pixels * channels * bits_of(io) + 7) / 8);
}

/// Rows of NHWC inputs are padded. Other rows lie one after another, as they are read and written.
rknn_tensor_attr picture_attr(const IoTensor& io, const Chip& chip, rknn_tensor_format fmt) {
  rknn_tensor_attr attr = begin_attr(io);
  const std::uint32_t n = dim(io.shape[0]), c = dim(io.shape[1]), h = dim(io.shape[2]),
                      w = dim(io.shape[3]);
  attr.fmt = fmt;
  const bool nhwc = fmt == RKNN_TENSOR_NHWC;
  const std::array<std::uint32_t, 4> dims = {n, nhwc ? h : c, nhwc ? w : h, nhwc ? c : w};
  set_dims(attr, dims, bits_of(io));
  attr.size_with_stride = attr.size;
  if (io.side == Side::kOutput) return attr;
  attr.w_stride = nhwc ? align_up(w, chip.row_pixels) : w;
  attr.size_with_stride = strided_bytes(io, attr.w_stride, c);
  return attr;
}

rknn_tensor_attr other_rank_attr(const IoTensor& io) {
  rknn_tensor_attr attr = begin_attr(io);
  std::vector<std::uint32_t> dims;
  for (const std::int64_t d : io.shape.dims()) dims.push_back(dim(d));
  if (dims.empty()) dims.push_back(1);  // A scalar: the API has no rank 0.
  set_dims(attr, dims, bits_of(io));
  attr.size_with_stride = attr.size;
  return attr;
}

bool native_is_nhwc(const IoTensor& io) noexcept {
  const std::int64_t c = io.shape[1];
  return io.side == Side::kInput && (c == 1 || c == 3 || c == 4);
}

}  // namespace

rknn_tensor_type type_of(DType dtype) noexcept {
  for (const TypeRow& row : kTensorTypes)
    if (row.dtype == dtype) return row.type;
  if (dtype == DType::kU64) return RKNN_TENSOR_INT64;
  return dtype == DType::kU4 ? RKNN_TENSOR_INT4 : RKNN_TENSOR_FLOAT32;
}

Result<DType> dtype_of(rknn_tensor_type type) {
  const auto number = static_cast<std::uint32_t>(type);
  for (const TypeRow& row : kTensorTypes)
    if (static_cast<std::uint32_t>(row.type) == number) return row.dtype;
  return error(Code::kInvalidArgument, "tensor type {} does not exist; types are 0 (FLOAT32) to {}",
               number, RKNN_TENSOR_TYPE_MAX - 1);
}

const char* type_name(rknn_tensor_type type) noexcept {
  for (const TypeRow& row : kTensorTypes)
    if (row.type == type) return row.name;
  return "unknown";
}

void keep_one_scale(IoEntry& entry) {
  const auto differ = [](const auto& list) {
    return std::ranges::adjacent_find(list, std::ranges::not_equal_to()) != list.end();
  };
  if (!differ(entry.quant.scales) && !differ(entry.quant.zero_points)) return;
  if (entry.reported_dtype == entry.quant_dtype) entry.reported_dtype = DType::kF16;
  entry.quant_dtype = DType::kUndefined;
  entry.quant = Quant::none();
}

/// An output's size_with_stride counts whole blocks of channels, as its native form takes them.
rknn_tensor_attr normal_attr(const IoTensor& io, const Chip& chip) {
  if (!is_picture(io)) return other_rank_attr(io);
  const bool nhwc =
      io.entry->preferred_layout == LayoutKind::kNHWC && !keeps_order(io.entry->reported_dtype);
  rknn_tensor_attr attr = picture_attr(io, chip, nhwc ? RKNN_TENSOR_NHWC : RKNN_TENSOR_NCHW);
  if (io.side == Side::kOutput)
    attr.size_with_stride = strided_bytes(io, dim(io.shape[3]), padded_channels(io, chip));
  return attr;
}

/// C1 x C2 hold the channels, padded to whole blocks of C2.
rknn_tensor_attr native_attr(const IoTensor& io, const Chip& chip) {
  if (!is_picture(io) || keeps_order(io.entry->reported_dtype)) return normal_attr(io, chip);
  if (native_is_nhwc(io)) return native_nhwc_attr(io, chip);
  rknn_tensor_attr attr = begin_attr(io);
  const std::uint32_t c2 = block_of(io.entry->reported_dtype, chip);
  attr.fmt = RKNN_TENSOR_NC1HWC2;
  const std::array<std::uint32_t, 5> dims = {dim(io.shape[0]), padded_channels(io, chip) / c2,
                                             dim(io.shape[2]), dim(io.shape[3]), c2};
  set_dims(attr, dims, bits_of(io));
  attr.w_stride = io.side == Side::kInput ? dim(io.shape[3]) : 0;
  attr.size_with_stride = attr.size;
  return attr;
}

rknn_tensor_attr native_nhwc_attr(const IoTensor& io, const Chip& chip) {
  if (!is_picture(io) || keeps_order(io.entry->reported_dtype)) return normal_attr(io, chip);
  return picture_attr(io, chip, RKNN_TENSOR_NHWC);
}

Result<std::uint32_t> blocks_said(const rknn_tensor_attr& attr, const IoTensor& io,
                                  const Chip& chip) {
  if (attr.fmt != RKNN_TENSOR_NC1HWC2 || attr.n_dims != 5 || !is_picture(io)) return 0U;
  const std::uint32_t c2 = attr.dims[4];
  const std::uint32_t own = block_of(io.entry->reported_dtype, chip);
  const Result<DType> asked = dtype_of(attr.type);
  const bool known = c2 == own || (asked && c2 == block_of(*asked, chip));
  // The others follow the shapes, and may be those of another query.
  if (known && attr.dims[1] == align_up(dim(io.shape[1]), c2) / c2) return c2;
  return error(Code::kInvalidArgument,
               "{} {} '{}': C1 {} and C2 {} in dims do not hold its {} channels in blocks of {}; "
               "pass the dims that the native query filled in",
               side_name(io.side), io.index, io.entry->desc.name, attr.dims[1], c2, io.shape[1],
               own);
}

rknn_tensor_type passed_type(const IoTensor& io, rknn_tensor_type said) {
  const Result<DType> dtype = dtype_of(said);
  if (!dtype || is_float(*dtype)) return said;
  for (const DType own : {io.entry->reported_dtype, io.entry->quant_dtype})
    if (own != DType::kUndefined && dtype_bits(own) == dtype_bits(*dtype)) return type_of(own);
  return said;
}

Form native_form(const IoTensor& io, const Chip& chip) {
  const rknn_tensor_attr attr = native_attr(io, chip);
  return {attr.type, attr.fmt, true, attr.fmt == RKNN_TENSOR_NHWC ? attr.w_stride : 0};
}

namespace {

/// The pitch is of NHWC rows alone; a pitch equal to the width counts as none.
Result<Layout> layout_of(const IoTensor& io, const Form& form, DType dtype, const Chip& chip) {
  rknn_tensor_format fmt = form.fmt;
  // No order named: the one that INPUT_ATTR and OUTPUT_ATTR report.
  if (fmt == RKNN_TENSOR_UNDEFINED) fmt = normal_attr(io, chip).fmt;
  if (!is_picture(io)) return Layout{};
  const auto width = static_cast<std::uint32_t>(io.shape[3]);
  if (form.w_stride != 0 && form.w_stride < width)
    return error(Code::kInvalidArgument, "w_stride {} is less than the width {}; 0 means the width",
                 form.w_stride, width);
  const std::uint32_t stride = form.w_stride == width ? 0 : form.w_stride;
  switch (static_cast<std::uint32_t>(fmt)) {
    case RKNN_TENSOR_NCHW:
      return Layout{};
    case RKNN_TENSOR_NHWC:
      return Layout{LayoutKind::kNHWC, 0, stride};
    case RKNN_TENSOR_NC1HWC2:
      return Layout{LayoutKind::kNC1HWC2, form.c2 != 0 ? form.c2 : block_of(dtype, chip), 0};
    default:
      return error(Code::kInvalidArgument,
                   "fmt {} does not exist; use RKNN_TENSOR_NCHW (0), NHWC (1), NC1HWC2 (2) or "
                   "UNDEFINED (3)",
                   static_cast<std::uint32_t>(fmt));
  }
}

/// Bool and 64-bit integers are never converted: other types could not hold their values.
Status check_type(const IoTensor& io, DType dtype) {
  const DType own = io.entry->reported_dtype;
  const bool exact = own == DType::kBool || own == DType::kI64 || own == DType::kU64;
  if (dtype == DType::kI4 && dtype_bits(own) != 4)
    return error(Code::kTypeMismatch, "INT4 is not offered for this tensor, which is {}",
                 type_name(type_of(own)));
  if (io.side == Side::kInput && exact && type_of(dtype) != type_of(own))
    return error(Code::kTypeMismatch,
                 "it is {} and takes only that, not {}; set `type` (a zeroed "
                 "struct says "
                 "FLOAT32) and give {}-bit elements",
                 type_name(type_of(own)), type_name(type_of(dtype)), dtype_bits(own));
  return {};
}

/// True where the bytes are pixels or real values that mean and std apply to.
/// Halves of a model that is reported as FLOAT16 are its own form, as INT8 is that
/// of a quantised one.
bool is_normalised(const IoTensor& io, const Form& form, DType dtype) {
  if (io.side != Side::kInput || form.pass_through || !is_picture(io)) return false;
  if (form.fmt == RKNN_TENSOR_UNDEFINED) return false;
  if (dtype == DType::kU8 || dtype == DType::kF32) return true;
  return is_float(dtype) && dtype != io.entry->reported_dtype;
}

}  // namespace

Result<ViewPlan> plan_view(const IoTensor& io, const Form& form, const Chip& chip) {
  const IoEntry& entry = *io.entry;
  const char* what = side_name(io.side);
  if (!io.shape.is_static() && io.side == Side::kInput)
    return error(Code::kWrongState,
                 "{} {} '{}' has open dimensions {}; call rknn_set_input_shapes first", what,
                 io.index, entry.desc.name, io.shape.to_string());
  auto named = [&](const Status& status) {
    return error(status.wrap(fmt::format("{} {} '{}'", what, io.index, entry.desc.name)));
  };
  Result<DType> dtype = dtype_of(form.type);
  if (!dtype) return named(dtype.error());
  // A number that stands for two types of one width.
  if (const DType own = entry.reported_dtype;
      form.type == type_of(own) && dtype_bits(own) == dtype_bits(*dtype))
    dtype = own;
  if (Status fits = check_type(io, *dtype); !fits.ok()) return named(fits);
  const Result<Layout> layout = layout_of(io, form, *dtype, chip);
  if (!layout) return named(layout.error());
  ViewPlan plan;
  plan.view.dtype = *dtype;
  plan.view.shape = io.shape;
  plan.view.layout = *layout;
  const bool pixels = is_normalised(io, form, *dtype);
  // The model's integers are its quantised form; unsigned bytes of a picture
  // are pixels.
  if (*dtype == entry.quant_dtype && !(pixels && *dtype == DType::kU8))
    plan.view.quant = entry.quant;
  if (pixels) {
    plan.convert.mean = entry.mean;
    plan.convert.std = entry.std;
  }
  // The run decides how large an open output is.
  const Result<std::size_t> bytes =
      io.shape.is_static() ? storage_bytes(io.shape, *dtype, *layout) : std::size_t{0};
  if (!bytes) return named(bytes.error());
  plan.bytes = *bytes;
  return plan;
}

bool same_dims(const rknn_tensor_attr& a, const rknn_tensor_attr& b) noexcept {
  return a.n_dims == b.n_dims && a.n_dims <= RKNN_MAX_DIMS &&
         std::equal(a.dims, a.dims + a.n_dims, b.dims);
}

}  // namespace corelane::rknn
