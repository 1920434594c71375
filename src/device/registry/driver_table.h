/// What the build knows of its drivers; generated from the list CORELANE_DRIVERS.
#pragma once

#include <span>

#include "corelane/driver/module.h"

namespace corelane::device {

struct DriverRow {
  const DriverDescription& (*describe)();
  const DriverModule& (*module)();  ///< Null: in a shared object beside the library.
};

std::span<const DriverRow> driver_table() noexcept;
/// The kind of device that is opened by default: the first of CORELANE_DRIVERS.
const char* default_kind() noexcept;

}  // namespace corelane::device
