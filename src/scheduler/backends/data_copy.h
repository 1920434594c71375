/// result = data.
#pragma once

#include <span>

#include "corelane/scheduler/request.h"

namespace corelane::scheduler {

/// Sets the result of each request to its data; fails those without data (kOutOfRange).
inline void copy_data(std::span<const RequestPtr> batch) {
  for (const RequestPtr& request : batch) {
    const auto data = request->values.find(kData);
    if (data == request->values.end()) {
      request->fail(error(Code::kOutOfRange, "the request has no '{}'; set it", kData));
      continue;
    }
    std::any copy = data->second;  // Before the insertion, which may move the table.
    request->values[kResult] = std::move(copy);
  }
}

}  // namespace corelane::scheduler
