// What a matrix product is: its checks, its tensors and where their elements lie.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "corelane/device/matmul_image.h"

namespace corelane::device {
namespace {

/// 16 Mi elements: with kMaxBytes it keeps all products of dimensions within 64 bits.
constexpr std::int64_t kMaxDimension = std::int64_t{1} << 24;
constexpr std::int64_t kMaxIntegerK = 32768;  // 255 * 255 * K stays within i32.
/// 1 TiB for each matrix.
constexpr std::size_t kMaxBytes = std::size_t{1} << 40;
/// Keeps padded sizes sane; native blocks are far smaller.
constexpr std::uint32_t kMaxBlock = 1024;

struct Types {
  DType a;
  DType b;
  DType c;
};
/// The products that the vendor's interface names, in the order of its numbers.
constexpr std::array kTypes{
    Types{DType::kF16, DType::kF16, DType::kF32}, Types{DType::kI8, DType::kI8, DType::kI32},
    Types{DType::kI8, DType::kI8, DType::kI8},    Types{DType::kF16, DType::kF16, DType::kF16},
    Types{DType::kF16, DType::kI8, DType::kF32},  Types{DType::kF16, DType::kI8, DType::kF16},
    Types{DType::kF16, DType::kI4, DType::kF32},  Types{DType::kF16, DType::kI4, DType::kF16},
    Types{DType::kI8, DType::kI8, DType::kF32},   Types{DType::kI4, DType::kI4, DType::kI16},
    Types{DType::kI8, DType::kI4, DType::kI32},   Types{DType::kF16, DType::kI4, DType::kBF16},
    Types{DType::kI8, DType::kI4, DType::kF16},
};

std::int64_t blocks(std::int64_t count, std::uint32_t block) { return (count + block - 1) / block; }

/// C holds the sums themselves, which only one scale for all of them can turn into numbers.
bool sums_of_integers(const MatmulDesc& desc) {
  return desc.c == DType::kI32 || desc.c == DType::kI16;
}

Status check_types(const MatmulDesc& desc) {
  for (const Types& types : kTypes)
    if (types.a == desc.a && types.b == desc.b && types.c == desc.c) return {};
  std::string known;
  for (const Types& types : kTypes)
    known += fmt::format("{}{} x {} -> {}", known.empty() ? "" : ", ", dtype_name(types.a),
                         dtype_name(types.b), dtype_name(types.c));
  return error(Code::kUnsupported, "no matrix product takes {} x {} to {}; there are {}",
               dtype_name(desc.a), dtype_name(desc.b), dtype_name(desc.c), known);
}

Status check_dimensions(const MatmulDesc& desc) {
  for (const auto& [name, value] :
       {std::pair{"M", desc.m}, std::pair{"K", desc.k}, std::pair{"N", desc.n}})
    if (value < 1 || value > kMaxDimension)
      return error(Code::kInvalidArgument, "{} of a matrix product is {}; allowed is 1 to {}", name,
                   value, kMaxDimension);
  if (is_integer(desc.a) && desc.k > kMaxIntegerK)
    return error(Code::kInvalidArgument,
                 "K of a product of integers is {}; at most {}, so that sums fit in i32; cut K "
                 "and add the parts",
                 desc.k, kMaxIntegerK);
  return {};
}

Status check_layout(const MatmulDesc& desc) {
  for (const auto& [name, block] : {std::pair{"A", desc.a_block}, std::pair{"C", desc.c_block}})
    if (block > kMaxBlock)
      return error(Code::kInvalidArgument, "the block of {} is {}; allowed is 0 to {}", name, block,
                   kMaxBlock);
  if (desc.b_layout > MatmulLayoutB::kNative)
    return error(Code::kInvalidArgument, "layout {} of B is unknown; there are 0 to 2",
                 static_cast<int>(desc.b_layout));
  if (desc.b_layout != MatmulLayoutB::kNative) {
    if (desc.b_block_n != 0 || desc.b_block_k != 0 || desc.k_segment != 0)
      return error(Code::kInvalidArgument,
                   "B has blocks {} x {} and segment {}, which only its native layout takes; "
                   "leave them 0",
                   desc.b_block_n, desc.b_block_k, desc.k_segment);
    return {};
  }
  for (const auto& [name, block] : {std::pair{"N", desc.b_block_n}, std::pair{"K", desc.b_block_k}})
    if (block < 1 || block > kMaxBlock)
      return error(Code::kInvalidArgument,
                   "native B has a block of {} along {}; allowed is 1 to {}", block, name,
                   kMaxBlock);
  if (desc.k_segment % desc.b_block_k != 0)
    return error(
        Code::kInvalidArgument,
        "native B is cut along K after each {} rows, which is not a multiple of its block {}",
        desc.k_segment, desc.b_block_k);
  return {};
}

/// The values of a quantized type: those of a signed integer of 4 or 8 bits.
std::pair<std::int32_t, std::int32_t> range_of(DType type) {
  return type == DType::kI4 ? std::pair{-8, 7} : std::pair{-128, 127};
}

Status check_tensor_quant(const char* name, DType type, bool quantized, float scale,
                          std::int32_t zero_point) {
  if (!quantized) {
    if (scale != 1.0F || zero_point != 0)
      return error(Code::kInvalidArgument,
                   "{} of {} has scale {} and zero point {}; it is not quantized, so they must be "
                   "1 and 0",
                   name, dtype_name(type), scale, zero_point);
    return {};
  }
  if (!std::isfinite(scale) || scale <= 0)
    return error(Code::kInvalidArgument, "the scale of {} is {}; it must be finite and above 0",
                 name, scale);
  const auto [low, high] = range_of(type);
  if (zero_point < low || zero_point > high)
    return error(Code::kInvalidArgument, "the zero point of {} is {}; {} holds {} to {}", name,
                 zero_point, dtype_name(type), low, high);
  return {};
}

Status check_group(const MatmulDesc& desc) {
  if (desc.b_quant > MatmulQuantB::kGroup)
    return error(Code::kInvalidArgument, "quantization {} of B is unknown; there are 0 to 2",
                 static_cast<int>(desc.b_quant));
  if (desc.b_quant != MatmulQuantB::kGroup) {
    if (desc.group_size == 0) return {};
    return error(Code::kInvalidArgument,
                 "B has a group size of {} but is not quantized by group; leave it 0",
                 desc.group_size);
  }
  if (sums_of_integers(desc))
    return error(Code::kInvalidArgument,
                 "B is quantized by group, whose sums have different scales, and C is {}; use C of "
                 "float or i8, or quantize by channel",
                 dtype_name(desc.c));
  if (desc.group_size < 1 || desc.group_size > desc.k)
    return error(Code::kInvalidArgument, "the group size of B is {}; allowed is 1 to K = {}",
                 desc.group_size, desc.k);
  return {};
}

Status check_b_quant(const MatmulDesc& desc) {
  if (!is_integer(desc.b)) {
    if (desc.b_quant == MatmulQuantB::kLayer && desc.group_size == 0 && desc.b_scales.empty() &&
        desc.b_zero_points.empty())
      return {};
    return error(Code::kInvalidArgument, "B of {} takes no quantization", dtype_name(desc.b));
  }
  CORELANE_TRY(check_group(desc));
  const std::size_t count = desc.b_scale_count();
  // No scales at all mean a scale of 1 for the whole of B.
  const bool none = desc.b_scales.empty() && desc.b_quant == MatmulQuantB::kLayer;
  if (!none && desc.b_scales.size() != count)
    return error(Code::kInvalidArgument, "B has {} scales; its quantization takes {}",
                 desc.b_scales.size(), count);
  if (!desc.b_zero_points.empty() && desc.b_zero_points.size() != count)
    return error(Code::kInvalidArgument, "B has {} zero points; its quantization takes {} or none",
                 desc.b_zero_points.size(), count);
  for (std::size_t i = 0; i < desc.b_scales.size(); ++i)
    if (!std::isfinite(desc.b_scales[i]) || desc.b_scales[i] <= 0)
      return error(Code::kInvalidArgument, "scale {} of B is {}; it must be finite and above 0", i,
                   desc.b_scales[i]);
  const auto [low, high] = range_of(desc.b);
  for (std::size_t i = 0; i < desc.b_zero_points.size(); ++i)
    if (desc.b_zero_points[i] < low || desc.b_zero_points[i] > high)
      return error(Code::kInvalidArgument, "zero point {} of B is {}; {} holds {} to {}", i,
                   desc.b_zero_points[i], dtype_name(desc.b), low, high);
  return {};
}

/// (rows, columns) row major, or in blocks of columns: (columns / block, rows, block).
Shape rows_shape(std::int64_t rows, std::int64_t columns, std::uint32_t block) {
  if (block == 0) return {rows, columns};
  return {blocks(columns, block), rows, block};
}

/// The place of an element in rows_shape(), in elements.
std::size_t rows_index(std::int64_t rows, std::int64_t columns, std::uint32_t block,
                       std::int64_t row, std::int64_t column) {
  if (block == 0) return static_cast<std::size_t>(row * columns + column);
  return static_cast<std::size_t>((column / block * rows + row) * block + column % block);
}

/// The dimensions of B as it lies in memory. Native blocks are padded with zeros up to whole
/// blocks.
Shape b_shape(const MatmulDesc& desc) {
  switch (desc.b_layout) {
    case MatmulLayoutB::kTransposed:
      return {desc.n, desc.k};
    case MatmulLayoutB::kNative:
      return {blocks(desc.n, desc.b_block_n), blocks(desc.k, desc.b_block_k), desc.b_block_n,
              desc.b_block_k};
    default:
      return {desc.k, desc.n};
  }
}

/// Elements are counted with the padding of blocks.
Status check_bytes(const char* name, DType type, const Shape& shape) {
  const auto elements = shape.elements();
  if (!elements || *elements > kMaxBytes || dtype_bytes(type, *elements) > kMaxBytes)
    return error(Code::kInvalidArgument, "{} {} of {} takes more than {} bytes", name,
                 shape.to_string(), dtype_name(type), kMaxBytes);
  return {};
}

TensorDesc tensor(const char* name, DType type, Shape shape) {
  TensorDesc desc;
  desc.name = name;
  desc.dtype = type;
  desc.shape = std::move(shape);
  return desc;
}

/// One element of packed or whole bytes, as raw bits.
std::uint32_t load_bits(const std::byte* data, std::size_t bits, std::size_t index) {
  if (bits == 4) return std::to_integer<std::uint32_t>(data[index / 2]) >> (index % 2 * 4) & 0xF;
  if (bits == 8) return std::to_integer<std::uint32_t>(data[index]);
  return std::to_integer<std::uint32_t>(data[2 * index]) |
         std::to_integer<std::uint32_t>(data[2 * index + 1]) << 8;
}

/// The target was all zeros.
void store_bits(std::byte* data, std::size_t bits, std::size_t index, std::uint32_t value) {
  if (bits == 4) {
    data[index / 2] |= static_cast<std::byte>(value << (index % 2 * 4));
  } else if (bits == 8) {
    data[index] = static_cast<std::byte>(value);
  } else {
    data[2 * index] = static_cast<std::byte>(value);
    data[2 * index + 1] = static_cast<std::byte>(value >> 8);
  }
}

}  // namespace

std::size_t MatmulDesc::b_scale_count() const noexcept {
  if (b_quant == MatmulQuantB::kLayer) return 1;
  if (b_quant == MatmulQuantB::kChannel) return static_cast<std::size_t>(n);
  const std::int64_t groups = group_size == 0 ? 1 : blocks(k, group_size);
  return static_cast<std::size_t>(groups * n);
}

std::string MatmulDesc::to_string() const {
  return fmt::format("{}({}x{}) x {}({}x{}) -> {}", dtype_name(a), m, k, dtype_name(b), k, n,
                     dtype_name(c));
}

Status MatmulDesc::check() const {
  CORELANE_TRY(check_types(*this));
  CORELANE_TRY(check_dimensions(*this));
  CORELANE_TRY(check_layout(*this));
  CORELANE_TRY(check_bytes("A", a, rows_shape(m, k, a_block)));
  CORELANE_TRY(check_bytes("B", b, b_shape(*this)));
  CORELANE_TRY(check_bytes("C", c, rows_shape(m, n, c_block)));
  CORELANE_TRY(check_tensor_quant("A", a, is_integer(a), a_scale, a_zero_point));
  CORELANE_TRY(check_tensor_quant("C", c, c == DType::kI8, c_scale, c_zero_point));
  return check_b_quant(*this);
}

Result<MatmulTensors> describe(const MatmulDesc& desc) {
  CORELANE_TRY(desc.check());
  MatmulTensors tensors{tensor("A", desc.a, rows_shape(desc.m, desc.k, desc.a_block)),
                        tensor("B", desc.b, b_shape(desc)),
                        tensor("C", desc.c, rows_shape(desc.m, desc.n, desc.c_block))};
  if (is_integer(desc.a)) tensors.a.quant = Quant::affine(desc.a_scale, desc.a_zero_point);
  if (is_integer(desc.b) && desc.b_quant == MatmulQuantB::kLayer)
    tensors.b.quant = Quant::affine(desc.b_scales.empty() ? 1.0F : desc.b_scales[0],
                                    desc.b_zero_points.empty() ? 0 : desc.b_zero_points[0]);
  if (desc.c == DType::kI8) tensors.c.quant = Quant::affine(desc.c_scale, desc.c_zero_point);
  return tensors;
}

std::size_t a_index(const MatmulDesc& desc, std::int64_t m, std::int64_t k) noexcept {
  return rows_index(desc.m, desc.k, desc.a_block, m, k);
}

std::size_t c_index(const MatmulDesc& desc, std::int64_t m, std::int64_t n) noexcept {
  return rows_index(desc.m, desc.n, desc.c_block, m, n);
}

std::size_t b_index(const MatmulDesc& desc, std::int64_t k, std::int64_t n) noexcept {
  if (desc.b_layout == MatmulLayoutB::kNormal) return static_cast<std::size_t>(k * desc.n + n);
  if (desc.b_layout == MatmulLayoutB::kTransposed) return static_cast<std::size_t>(n * desc.k + k);
  const std::int64_t nb = desc.b_block_n;
  const std::int64_t kb = desc.b_block_k;
  const std::int64_t segment = desc.k_segment == 0 ? desc.k : desc.k_segment;
  const std::int64_t first = k / segment * segment;
  const std::int64_t k_blocks = blocks(std::min(segment, desc.k - first), desc.b_block_k);
  // All segments before this one are full: whole blocks of K.
  const std::int64_t before = blocks(desc.n, desc.b_block_n) * nb * first;
  const std::int64_t block = n / nb * k_blocks + (k - first) / kb;
  return static_cast<std::size_t>(before + (block * nb + n % nb) * kb + (k - first) % kb);
}

Status relayout_b(const MatmulDesc& from, ByteSpan source, const MatmulDesc& to,
                  MutableByteSpan target) {
  if (from.k != to.k || from.n != to.n || from.b != to.b)
    return error(Code::kInvalidArgument, "B of {} cannot become B of {}; K, N and the type differ",
                 from.to_string(), to.to_string());
  const std::size_t bits = dtype_bits(from.b);
  if (bits != 4 && bits != 8 && bits != 16)
    return error(Code::kInvalidArgument, "B of {} has no layouts; it is f16, i8 or i4",
                 dtype_name(from.b));
  for (const MatmulDesc* desc : {&from, &to}) {
    CORELANE_TRY(check_dimensions(*desc));
    CORELANE_TRY(check_layout(*desc));
    CORELANE_TRY(check_bytes("B", desc->b, b_shape(*desc)));
    const std::size_t needed = dtype_bytes(desc->b, *b_shape(*desc).elements());
    const std::size_t given = desc == &from ? source.size() : target.size();
    if (given < needed)
      return error(Code::kInvalidArgument, "B {} was given {} bytes; it takes {}",
                   b_shape(*desc).to_string(), given, needed);
  }
  std::fill_n(target.data(), dtype_bytes(to.b, *b_shape(to).elements()), std::byte{0});
  for (std::int64_t k = 0; k < from.k; ++k)
    for (std::int64_t n = 0; n < from.n; ++n)
      store_bits(target.data(), bits, b_index(to, k, n),
                 load_bits(source.data(), bits, b_index(from, k, n)));
  return {};
}

}  // namespace corelane::device
