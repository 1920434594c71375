#include "adapters/rknn/matmul/rknn_matmul_plan.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/model/rknn_attr.h"
#include "corelane/device/registry.h"

namespace corelane::rknn {
namespace {

/// Blocks, alignments and segments of the chips, as docs/apis/rknn.md lists them.
constexpr std::array kChips{
    MatmulChip{.name = "RK3588", .b_block_n = {64, 32, 16}, .k_segment = 8192},
    MatmulChip{.name = "RK3576", .b_block_n = {64, 32, 16}, .k_segment = 4096},
    // The chip has no products of int4; theirs follow the pattern of the others: twice int8.
    MatmulChip{.name = "RK3566/RK3568",
               .a_block = {16, 8, 4},
               .b_block_k = {32, 32, 16},
               .k_align = {32, 32, 16}},
    MatmulChip{.name = "RK3562"},
};

constexpr DType kF16 = DType::kF16;
constexpr DType kI8 = DType::kI8;
constexpr DType kI4 = DType::kI4;
/// The types of A, B and C, in the order of their numbers.
constexpr std::array kTypes{
    MatmulTypes{RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, kF16, kF16, DType::kF32},
    MatmulTypes{RKNN_INT8_MM_INT8_TO_INT32, kI8, kI8, DType::kI32},
    MatmulTypes{RKNN_INT8_MM_INT8_TO_INT8, kI8, kI8, kI8},
    MatmulTypes{RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16, kF16, kF16, kF16},
    MatmulTypes{RKNN_FLOAT16_MM_INT8_TO_FLOAT32, kF16, kI8, DType::kF32},
    MatmulTypes{RKNN_FLOAT16_MM_INT8_TO_FLOAT16, kF16, kI8, kF16},
    MatmulTypes{RKNN_FLOAT16_MM_INT4_TO_FLOAT32, kF16, kI4, DType::kF32},
    MatmulTypes{RKNN_FLOAT16_MM_INT4_TO_FLOAT16, kF16, kI4, kF16},
    MatmulTypes{RKNN_INT8_MM_INT8_TO_FLOAT32, kI8, kI8, DType::kF32},
    MatmulTypes{RKNN_INT4_MM_INT4_TO_INT16, kI4, kI4, DType::kI16},
    MatmulTypes{RKNN_INT8_MM_INT4_TO_INT32, kI8, kI4, DType::kI32},
    MatmulTypes{RKNN_FLOAT16_MM_INT4_TO_BFLOAT16, kF16, kI4, DType::kBF16},
    MatmulTypes{RKNN_INT8_MM_INT4_TO_FLOAT16, kI8, kI4, kF16},
};

/// The first 24 bytes of rknn_matmul_info, as every release has them. In 1.5 and 1.6 the layouts
/// were 32 bits wide, so that the upper halves, today's quantizations, are 0.
struct Head {
  rknn_matmul_shape shape;
  std::uint32_t type;
  std::int16_t b_layout;
  std::int16_t b_quant;
  std::int16_t ac_layout;
  std::int16_t ac_quant;
};
static_assert(sizeof(Head) == 24 && offsetof(rknn_matmul_info, iommu_domain_id) == sizeof(Head));

/// Copied: `info` may lie at any address, and may end after these bytes.
Head head_of(const void* info) noexcept {
  Head head;
  std::memcpy(&head, info, sizeof head);
  return head;
}

/// What only a caller of 2.0 or later can mean.
bool says_today(const Head& head) noexcept {
  const bool old_type = head.type == RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 ||
                        head.type == RKNN_INT8_MM_INT8_TO_INT32 ||
                        head.type == RKNN_INT4_MM_INT4_TO_INT16;
  return !old_type || head.b_layout > RKNN_MM_LAYOUT_NATIVE || head.b_quant != 0 ||
         head.ac_quant != 0;
}

template <class T>
T member(const void* info, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(info) + offset, sizeof value);
  return value;
}

/// iommu_domain_id of a caller whose struct may end before it: 0 when it lies on another page, so
/// that the look is never an access violation, or makes no sense. A checker of addresses would
/// report the look itself, hence the attribute.
__attribute__((no_sanitize_address, no_sanitize_thread, noinline)) std::int32_t doubtful_domain(
    const void* info) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  constexpr std::size_t kAt = offsetof(rknn_matmul_info, iommu_domain_id);
  const auto begin = reinterpret_cast<std::uintptr_t>(info);
  if ((begin + kAt - 1) / kPage != (begin + kAt + sizeof(std::int32_t) - 1) / kPage) return 0;
  const auto* bytes = static_cast<const volatile unsigned char*>(info) + kAt;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
  return value < static_cast<std::uint32_t>(kMatmulDomains) ? static_cast<std::int32_t>(value) : 0;
}

/// The numbers are checked before they become enumerations: they come from programs in C.
Status check_layouts(const Head& head) {
  if (head.b_layout < RKNN_MM_LAYOUT_NORM || head.b_layout > RKNN_MM_LAYOUT_TP_NORM)
    return error(Code::kInvalidArgument,
                 "B_layout {} does not exist; use 0 (normal), 1 (native) or 2 (TP_NORM)",
                 head.b_layout);
  if (head.ac_layout != RKNN_MM_LAYOUT_NORM && head.ac_layout != RKNN_MM_LAYOUT_NATIVE)
    return error(
        Code::kInvalidArgument,
        "AC_layout {} does not exist for A and C; use 0 (normal) or 1 (native); TP_NORM is for "
        "B only",
        head.ac_layout);
  return {};
}

/// Combinations without a meaning are refused with what to use instead.
Status check_b_quant(const Head& head, const MatmulTypes& types) {
  if (head.b_quant < RKNN_QUANT_TYPE_PER_LAYER_SYM || head.b_quant > RKNN_QUANT_TYPE_PER_GROUP_ASYM)
    return error(
        Code::kInvalidArgument,
        "B_quant_type {} does not exist; use 0/1 (layer), 2/3 (channel) or 4 (group), even "
        "numbers for symmetric",
        head.b_quant);
  if (head.b_quant == RKNN_QUANT_TYPE_PER_GROUP_ASYM)
    return error(Code::kInvalidArgument,
                 "B_quant_type 5 (group, asymmetric): groups have no zero points; use 4");
  if (head.b_quant != RKNN_QUANT_TYPE_PER_LAYER_SYM && !is_integer(types.b))
    return error(Code::kInvalidArgument,
                 "B_quant_type {} with B of float16, which is not quantized (type {}); use 0",
                 head.b_quant, head.type);
  const bool integers = types.c == DType::kI32 || types.c == DType::kI16;
  if (integers && head.b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM)
    return error(Code::kInvalidArgument,
                 "B_quant_type 4 (group) with type {}, whose C holds plain sums of integers that "
                 "cannot take a scale for each group; use a type with C of float, or int8",
                 head.type);
  if (types.c == DType::kI16 && head.b_quant >= RKNN_QUANT_TYPE_PER_CHANNEL_SYM)
    return error(Code::kInvalidArgument,
                 "B_quant_type {} with type 10, whose C holds saturated sums; use 0 or 1 (layer) "
                 "and multiply C by the scales yourself",
                 head.b_quant);
  return {};
}

Status check_ac_quant(const Head& head) {
  if (head.ac_quant == RKNN_QUANT_TYPE_PER_LAYER_SYM ||
      head.ac_quant == RKNN_QUANT_TYPE_PER_LAYER_ASYM)
    return {};
  return error(Code::kInvalidArgument,
               "AC_quant_type {}: A and C have one scale each; use 0 (symmetric) or 1 "
               "(asymmetric)",
               head.ac_quant);
}

/// Members that 2.0 appended.
Status read_tail(const void* info, const Head& head, MatmulPlan& plan) {
  plan.domain = member<std::int32_t>(info, offsetof(rknn_matmul_info, iommu_domain_id));
  if (plan.domain < 0 || plan.domain >= kMatmulDomains)
    return error(Code::kInvalidArgument,
                 "iommu_domain_id {} is not within 0 and {}; zero the struct before it is filled",
                 plan.domain, kMatmulDomains - 1);
  if (head.b_quant != RKNN_QUANT_TYPE_PER_GROUP_SYM) return {};
  const auto group = member<std::int16_t>(info, offsetof(rknn_matmul_info, group_size));
  if (group < 1)
    return error(Code::kInvalidArgument,
                 "group_size {} with B_quant_type 4; give the rows of B that share a scale, such "
                 "as 32",
                 group);
  plan.group_size = static_cast<std::uint32_t>(group);
  return {};
}

/// `value` must be a positive multiple of `of`; the message names the next one.
Status check_multiple(const char* name, std::int32_t value, std::uint32_t of, const char* why,
                      const MatmulPlan& plan) {
  if (value > 0 && static_cast<std::uint32_t>(value) % of == 0) return {};
  return error(Code::kInvalidArgument,
               "{} is {}; on {} it is a multiple of {} with {} (type {}); pad the matrices with "
               "zeros up to {}",
               name, value, plan.chip->name, of, why, static_cast<int>(plan.types.number),
               value > 0 ? (static_cast<std::uint32_t>(value) / of + 1) * of : of);
}

/// K follows the wider alignment of A and B, N that of B's blocks.
Status check_shape(const MatmulPlan& plan, const rknn_matmul_shape& shape) {
  if (shape.M < 1) return error(Code::kInvalidArgument, "M is {}; it is 1 or more", shape.M);
  if (shape.K > kMatmulMaxK)
    return error(Code::kInvalidArgument,
                 "K is {}; at most {}: cut A and B along K and add the parts", shape.K,
                 kMatmulMaxK);
  const MatmulChip& chip = *plan.chip;
  const bool by_b = chip.k_align.of(plan.types.b) >= chip.k_align.of(plan.types.a);
  const DType k_type = by_b ? plan.types.b : plan.types.a;
  const std::string k_why = fmt::format("{} of {}", by_b ? "B" : "A", dtype_name(k_type));
  CORELANE_TRY(check_multiple("K", shape.K, chip.k_align.of(k_type), k_why.c_str(), plan));
  const std::string n_why = fmt::format("B of {}", dtype_name(plan.types.b));
  CORELANE_TRY(check_multiple("N", shape.N, chip.b_block_n.of(plan.types.b), n_why.c_str(), plan));
  if (plan.group_size != 0 && static_cast<std::uint32_t>(shape.K) % plan.group_size != 0)
    return error(Code::kInvalidArgument, "group_size {} does not divide K = {}", plan.group_size,
                 shape.K);
  return {};
}

void fill_one(const TensorDesc& tensor, std::size_t bytes, rknn_matmul_tensor_attr& attr) {
  attr = {};
  std::memcpy(attr.name, tensor.name.c_str(), tensor.name.size() + 1);
  attr.n_dims = static_cast<std::uint32_t>(tensor.shape.rank());
  for (std::size_t i = 0; i < tensor.shape.rank(); ++i)
    attr.dims[i] = static_cast<std::uint32_t>(tensor.shape[i]);
  attr.size = static_cast<std::uint32_t>(bytes);
  attr.type = type_of(tensor.dtype);
}

}  // namespace

/// By the place in kChips.
const MatmulChip& matmul_chip(std::string_view profile) noexcept {
  if (profile == "rk3576") return kChips[1];
  if (profile == "rk3566" || profile == "rk3568") return kChips[2];
  if (profile == "rk3562") return kChips[3];
  return kChips[0];
}

Result<const MatmulChip*> current_matmul_chip() {
  CORELANE_ASSIGN(const std::string text, device_text());
  CORELANE_ASSIGN(const device::DeviceSpec spec, device::parse_device_spec(text));
  return &matmul_chip(spec.profile);
}

const MatmulTypes* matmul_types(std::uint32_t type) noexcept {
  for (const MatmulTypes& types : kTypes)
    if (static_cast<std::uint32_t>(types.number) == type) return &types;
  return nullptr;
}

std::string matmul_type_list() {
  std::string list;
  for (const MatmulTypes& types : kTypes)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", static_cast<int>(types.number));
  return list;
}

rknn_matmul_shape shape_of(const void* info) noexcept { return head_of(info).shape; }

std::uint32_t type_of(const void* info) noexcept { return head_of(info).type; }

/// The head first: whether there are members after it is decided by what it holds.
Result<MatmulPlan> plan_matmul(const void* info, const MatmulChip& chip, bool today) {
  const Head head = head_of(info);
  const MatmulTypes* types = matmul_types(head.type);
  if (types == nullptr)
    return error(Code::kInvalidArgument, "type {} is not a rknn_matmul_type; there are {}",
                 head.type, matmul_type_list());
  CORELANE_TRY(check_layouts(head));
  CORELANE_TRY(check_b_quant(head, *types));
  CORELANE_TRY(check_ac_quant(head));
  MatmulPlan plan;
  plan.types = *types;
  plan.chip = &chip;
  plan.b_layout = static_cast<rknn_matmul_layout>(head.b_layout);
  plan.native_ac = head.ac_layout == RKNN_MM_LAYOUT_NATIVE;
  plan.b_quant = static_cast<device::MatmulQuantB>(head.b_quant / 2);
  plan.b_zero_points = head.b_quant % 2 != 0;
  plan.ac_zero_points = head.ac_quant % 2 != 0;
  if (today || says_today(head))
    CORELANE_TRY(read_tail(info, head, plan));
  else
    plan.domain = doubtful_domain(info);
  return plan;
}

/// Scales are left out: they arrive after the product was made, by rknn_matmul_set_quant_params.
Result<device::MatmulDesc> describe_matmul(const MatmulPlan& plan, const rknn_matmul_shape& shape) {
  CORELANE_TRY(check_shape(plan, shape));
  const MatmulChip& chip = *plan.chip;
  device::MatmulDesc desc;
  desc.m = shape.M;
  desc.k = shape.K;
  desc.n = shape.N;
  desc.a = plan.types.a;
  desc.b = plan.types.b;
  desc.c = plan.types.c;
  if (plan.native_ac) {
    desc.a_block = chip.a_block.of(desc.a);
    desc.c_block = chip.c_block_bytes / static_cast<std::uint32_t>(dtype_bits(desc.c) / 8);
  }
  desc.b_layout = plan.b_layout == RKNN_MM_LAYOUT_NATIVE    ? device::MatmulLayoutB::kNative
                  : plan.b_layout == RKNN_MM_LAYOUT_TP_NORM ? device::MatmulLayoutB::kTransposed
                                                            : device::MatmulLayoutB::kNormal;
  if (desc.b_layout == device::MatmulLayoutB::kNative) {
    desc.b_block_n = chip.b_block_n.of(desc.b);
    desc.b_block_k = chip.b_block_k.of(desc.b);
    desc.k_segment = chip.k_segment;
  }
  CORELANE_TRY(desc.check());
  return desc;
}

std::size_t scale_count(const MatmulPlan& plan, const device::MatmulDesc& desc) noexcept {
  device::MatmulDesc quantized = desc;
  quantized.b_quant = plan.b_quant;
  quantized.group_size = plan.group_size;
  return quantized.b_scale_count();
}

/// The matrices are named "A", "B" and "C"; the names fit the attributes.
Status fill_matmul_attr(const device::MatmulDesc& desc, rknn_matmul_io_attr& io) {
  CORELANE_ASSIGN(const device::MatmulTensors tensors, device::describe(desc));
  for (const auto& [tensor, attr] :
       {std::pair{&tensors.a, &io.A}, std::pair{&tensors.b, &io.B}, std::pair{&tensors.c, &io.C}}) {
    CORELANE_ASSIGN(const std::size_t bytes, tensor->bytes());
    if (bytes > UINT32_MAX)
      return error(Code::kInvalidArgument,
                   "{} takes {} bytes; this API has room for {}: cut the product into parts",
                   tensor->name, bytes, UINT32_MAX);
    fill_one(*tensor, bytes, *attr);
  }
  return {};
}

}  // namespace corelane::rknn
