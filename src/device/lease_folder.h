/// The folder that the locks of leases lie in.
#pragma once

#include <filesystem>
#include <optional>

#include "base/process/unique_fd.h"
#include "corelane/base/status.h"

namespace corelane::device {

/// An open folder in which only its owner (this user or root) and the maker of a file can
/// remove or rename it.
struct LeaseFolder {
  std::filesystem::path path;  ///< For messages; files are opened beneath `fd`.
  UniqueFd fd;
  bool shared = false;  ///< Other users may make files in it.
};

/// The folder that the environment names (see lease.h), made for this user alone where it is
/// missing. kIo when it cannot be used or must not be trusted.
Result<LeaseFolder> make_lease_folder();
/// The same folder; nullopt where it is missing.
Result<std::optional<LeaseFolder>> find_lease_folder();

}  // namespace corelane::device
