/// The library's text of layer times, read.
#pragma once

#include <string_view>
#include <vector>

#include "corelane/device/executable.h"

namespace corelane::drivers::rknn {

/// The rows of the table in an answer to RKNN_QUERY_PERF_DETAIL, in their order. Columns are found
/// by the names in the table's head, since releases differ in which there are; rows that do not
/// have them are left out. Empty when there is no such table.
std::vector<device::LayerTime> read_layers(std::string_view text);

}  // namespace corelane::drivers::rknn
