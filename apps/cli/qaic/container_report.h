/// What `corelane inspect` and `validate` say of containers: those of the object runtime that this
/// tree writes, with the buffers that their clients get, and the vendor's by segment.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/qaic/vendor_container.h"
#include "corelane/program/program_file.h"

namespace corelane::cli {

/// The programs of a file: cores, constants, buffers (inputs first; bytes of the largest
/// specialization), specializations. `text` is the same for people. Buffers without a fixed size
/// have no bytes, and the program a "refused" with the reason.
Json container_json(const ProgramFile& file, std::string& text);

/// The segments of the vendor's container.
Json vendor_json(const VendorContainer& container, std::string& text);

}  // namespace corelane::cli
