/// Drivers in shared objects: where they are looked for, and how they are opened.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "corelane/driver/module.h"

namespace corelane::device {

struct FoundModule {
  std::string kind;
  std::filesystem::path path;
};
/// The modules in the folders of CORELANE_DRIVER_PATH and beside the library, the first of each
/// kind; nothing is opened.
std::vector<FoundModule> find_modules();

/// What `path` exports, held against the contract of module.h. kVersionMismatch when it was built
/// from another tree, kIo when it is of another kind, lacks a function or describes no device.
/// Throws what its describe() throws.
Status check_module(const DriverModule* module, const std::filesystem::path& path,
                    std::string_view kind);

/// Opens the module of `kind`. kNotFound when no folder has it, kIo when the loader refuses it,
/// what check_module() says of it, kInternal when it throws. A module is never closed: threads and
/// objects of its devices run its code.
Result<const DriverModule*> load_module(std::string_view kind);

}  // namespace corelane::device
