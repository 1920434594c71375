/// What rknn_matmul_info asks for, checked against the chip's tables: types, alignments, layouts.
/// Values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "corelane/base/status.h"
#include "corelane/device/matmul_image.h"
#include "rknn_matmul_api.h"

namespace corelane::rknn {

/// A value for each type that A, B or C can have.
struct PerType {
  std::uint32_t i4 = 0;
  std::uint32_t i8 = 0;
  std::uint32_t f16 = 0;
  std::uint32_t of(DType type) const noexcept {
    return type == DType::kI4 ? i4 : type == DType::kI8 ? i8 : f16;
  }
};

/// Native blocks and alignments of one chip, as most chips have them.
struct MatmulChip {
  std::string_view name;
  PerType a_block{32, 16, 8};
  PerType b_block_n{32, 16, 8};  ///< N is a multiple of it in every layout.
  PerType b_block_k{32, 32, 32};
  PerType k_align{32, 32, 32};
  std::uint32_t c_block_bytes = 16;
  std::uint32_t k_segment = 0;  ///< Native B is cut along K after that many rows; 0: it is not.
};
/// By DeviceInfo::profile; profiles without a table of their own are laid out as RK3588.
const MatmulChip& matmul_chip(std::string_view profile) noexcept;
/// The chip of the device that this library would open now; it is not opened.
Result<const MatmulChip*> current_matmul_chip();

struct MatmulTypes {
  rknn_matmul_type number;
  DType a;
  DType b;
  DType c;
};
/// Null for any other number.
const MatmulTypes* matmul_types(std::uint32_t type) noexcept;
/// All numbers, as text: "1, 2, 3".
std::string matmul_type_list();

/// The members of rknn_matmul_info after M, K and N, checked. Quantization parameters are not among
/// them.
struct MatmulPlan {
  MatmulTypes types{};
  const MatmulChip* chip = nullptr;
  rknn_matmul_layout b_layout = RKNN_MM_LAYOUT_NORM;
  bool native_ac = false;
  device::MatmulQuantB b_quant = device::MatmulQuantB::kLayer;
  bool b_zero_points = false;   ///< Asymmetric.
  bool ac_zero_points = false;  ///< Asymmetric.
  std::uint32_t group_size = 0;
  std::int32_t domain = 0;  ///< IOMMU domain, 0 to kDomains - 1.
};
inline constexpr std::int32_t kMatmulDomains = 16;
inline constexpr std::int32_t kMatmulMaxK = 10240;

/// Reads `info` as far as its caller has it: programs of 1.5 and 1.6 pass 24 bytes, and nothing
/// says so. What follows them is looked at only where the first 24 bytes, or `today` (a
/// function that those releases lack), show a later program; kInvalidArgument says what is allowed.
Result<MatmulPlan> plan_matmul(const void* info, const MatmulChip& chip, bool today);
/// M, K and N of a rknn_matmul_info.
rknn_matmul_shape shape_of(const void* info) noexcept;
/// Its type, which every release has at the same place.
std::uint32_t type_of(const void* info) noexcept;

/// One shape of a plan, without scales, which are 1 then; kInvalidArgument names the alignment.
Result<device::MatmulDesc> describe_matmul(const MatmulPlan& plan, const rknn_matmul_shape& shape);
/// How many scales B of that shape takes by the plan's quantization.
std::size_t scale_count(const MatmulPlan& plan, const device::MatmulDesc& desc) noexcept;

/// The three attributes of a description.
Status fill_matmul_attr(const device::MatmulDesc& desc, rknn_matmul_io_attr& io);

}  // namespace corelane::rknn
