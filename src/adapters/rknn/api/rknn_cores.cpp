/// rknn_set_core_mask and rknn_set_batch_core_num.
#include "adapters/rknn/model/rknn_model.h"

namespace corelane::rknn {

Outcome ModelContext::set_core_mask(rknn_core_mask mask) {
  auto cores = cores_of(mask, chip_);
  if (!cores) return {RKNN_ERR_FAIL, cores.error()};
  const Order order(*this);
  if (!order.ok()) return order.refused();
  cores_ = *cores;
  return {};
}

Outcome ModelContext::set_batch_cores(int cores) {
  if (cores < 1 || static_cast<std::uint32_t>(cores) > chip_.cores)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "core_num {} is not within 1 and {}, the cores there are", cores, chip_.cores);
  if (description_->batch <= 1)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "the model was built for single samples, so there is no batch to spread; build "
                   "it with `corelane compile --batch N`");
  const Order order(*this);
  if (!order.ok()) return order.refused();
  cores_ = device::CoreSet::any(static_cast<std::size_t>(cores));
  return {};
}

}  // namespace corelane::rknn
