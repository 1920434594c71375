/// The check of a job's fences, made by their first user: a queue, or a caller that waits itself.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/fence.h"

namespace corelane::device {

/// kInvalidArgument naming the null fence of the `list` ("wait", "signal").
inline Status check_fences(const std::vector<std::shared_ptr<Fence>>& fences,
                           std::string_view list) {
  for (std::size_t i = 0; i < fences.size(); ++i)
    if (fences[i] == nullptr)
      return error(Code::kInvalidArgument, "fence {} of the {} list is null; leave it out", i,
                   list);
  return {};
}

}  // namespace corelane::device
