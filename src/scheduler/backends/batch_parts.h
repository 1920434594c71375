/// How a batch is divided into calls of a smaller range, and those calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/scheduler/request.h"
#include "corelane/scheduler/statistics.h"
#include "scheduler/backends/inner_backend.h"

namespace corelane::scheduler {

using BatchPart = std::span<const RequestPtr>;

/// The parts of `batch`, in order, whose items are each within `range`: as large as can be, from
/// the first part on, so that the last ones are still large enough (2 to 9 items, 10: 8 and 2). No
/// request is divided. Empty where there is no such division, and for an empty batch.
std::vector<BatchPart> split_batch(BatchPart batch, Range range);

/// The least of the sizes of `wanted` that no sizes in `range` add up to; nothing where all can be
/// reached.
std::optional<std::uint64_t> first_gap(Range wanted, Range range);

/// Runs `parts` one after another. A part that fails fails its requests alone when it has one
/// request, or when the batch cannot run again (`repeatable`): the failure of the only part, and of
/// a part that its scheduler can run again in halves, is returned and ends the calls.
Status forward_parts(InnerBackend& inner, std::span<const BatchPart> parts, bool repeatable);

/// Fails each request of `batch`.
void fail_all(BatchPart batch, const Status& why);

}  // namespace corelane::scheduler
