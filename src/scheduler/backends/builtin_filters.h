/// The filters that every registry has.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/scheduler/filter.h"

namespace corelane::scheduler {

/// The filter of a stage that names none.
inline constexpr std::string_view kSwapFilter = "swap";

const std::vector<std::string>& builtin_filter_names();

/// Null for another name.
std::unique_ptr<Filter> make_builtin_filter(std::string_view name);

}  // namespace corelane::scheduler
