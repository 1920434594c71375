/// The program files that programs have open: a file that is loaded again is not mapped again.
#pragma once

#include <filesystem>
#include <memory>

#include "corelane/base/file.h"
#include "corelane/base/status.h"
#include "corelane/program/program_file.h"

namespace corelane::runtime {

/// The program file of `mapped`: one that is open already where it was opened from the same file in
/// the same state (MappedFile::identity()), so that programs share its bytes; `mapped` is not
/// needed any more then. Fails like ProgramFile::open(). Any thread.
Result<std::shared_ptr<const ProgramFile>> open_program_file(
    std::shared_ptr<const MappedFile> mapped, const std::filesystem::path& path, Verify verify);

}  // namespace corelane::runtime
