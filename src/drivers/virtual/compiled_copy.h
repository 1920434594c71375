/// One compiled copy of a network: the engine's object with what it weighs.
#pragma once

#include <cstddef>
#include <memory>
#include <openvino/runtime/compiled_model.hpp>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/executable.h"
#include "drivers/virtual/engine_complaint.h"
#include "drivers/virtual/engine_runtime.h"

namespace corelane::virtual_npu {

/// Bytes that copies are imported from; the engine refers to them as long as a copy lives.
struct Blob {
  ByteSpan bytes;
  std::shared_ptr<const void> owner;
  std::size_t heap_bytes = 0;  ///< 0 when the bytes are the image's own.
};

/// Immutable; requests may be made from any thread.
struct CompiledCopy {
  ov::CompiledModel model;
  CopySettings settings;
  std::shared_ptr<const Blob> blob;  ///< Null when it was compiled from the network.
  /// Constants: those the engine keeps as they were read (none when they lie in a blob) and those
  /// it packed for its kernels.
  std::size_t weight_bytes = 0;
  /// The rest of what the heap grew by while it was made (measured), and not less than the
  /// activations that live at the same time by the engine's own execution order (computed).
  std::size_t internal_bytes = 0;
};

Result<std::shared_ptr<const CompiledCopy>> compile_copy(const std::shared_ptr<ov::Model>& network,
                                                         const CopySettings& settings,
                                                         const device::PrepareOptions& options,
                                                         const NodeNames& names);

Result<std::shared_ptr<const CompiledCopy>> import_copy(std::shared_ptr<const Blob> blob,
                                                        const CopySettings& settings,
                                                        const device::PrepareOptions& options);

Result<std::shared_ptr<const Blob>> export_blob(const CompiledCopy& copy);

}  // namespace corelane::virtual_npu
