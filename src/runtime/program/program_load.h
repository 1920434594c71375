/// From bytes to a program on a device: what kind they are, what the device gets of them.
#pragma once

#include <filesystem>
#include <memory>

#include "corelane/base/bytes.h"
#include "corelane/base/file.h"
#include "corelane/base/status.h"
#include "corelane/program/program_file.h"
#include "corelane/runtime/program.h"
#include "runtime/program/program_state.h"

namespace corelane::runtime {

/// Bytes with their owner and where they came from.
struct LoadInput {
  ByteSpan bytes;
  std::shared_ptr<const void> keep_alive;  ///< Null: borrowed for the call.
  std::filesystem::path path;              ///< Empty for bytes in memory.
  /// Null for bytes in memory; else what `bytes` are of.
  std::shared_ptr<const MappedFile> mapped;
  /// "model.onnx", or "the 123 bytes in memory".
  std::string name() const;
};

Result<std::shared_ptr<ProgramState>> load_program(const LoadInput& input,
                                                   const LoadOptions& options);

/// A part of a file that is open.
Result<std::shared_ptr<ProgramState>> load_program(std::shared_ptr<const ProgramFile> file,
                                                   const LoadOptions& options);

/// The options of preparing that `options` ask for, checked against what the device can do.
Result<device::PrepareOptions> prepare_options(const device::DeviceInfo& info,
                                               const ProgramDescription& description,
                                               const LoadOptions& options);

}  // namespace corelane::runtime
