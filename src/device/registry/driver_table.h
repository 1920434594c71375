/// What the build knows of its drivers; generated from the list CORELANE_DRIVERS.
#pragma once

#include <span>

#include "corelane/driver/module.h"

namespace corelane::device {

struct DriverRow {
  const char* kind;
  const char* profiles;            ///< Comma-separated texts that open it.
  const DriverModule* (*entry)();  ///< Null: built as a module beside the library.
};

std::span<const DriverRow> driver_table() noexcept;

}  // namespace corelane::device
