#include "tensor/box.h"

namespace corelane {

Status Box::check() const {
  if (extent.rank() != whole.rank() || start.size() != whole.rank())
    return error(Code::kInvalidArgument, "{} dimensions from {} starts, in a tensor {} of {}",
                 extent.rank(), start.size(), whole.to_string(), whole.rank());
  for (std::size_t d = 0; d < whole.rank(); ++d) {
    if (extent[d] < 0 || extent[d] > whole[d])
      return error(Code::kOutOfRange,
                   "dimension {} is given with an extent of {} elements; at most {} are allowed", d,
                   extent[d], whole[d]);
    if (start[d] >= 0 && start[d] <= whole[d] - extent[d]) continue;
    return error(Code::kOutOfRange,
                 "dimension {} begins at {} with an extent of {} elements, of {}; a start of 0 to "
                 "{} is allowed",
                 d, start[d], extent[d], whole[d], whole[d] - extent[d]);
  }
  return {};
}

}  // namespace corelane
