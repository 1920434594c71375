#include "corelane/runtime/file_kind.h"

#include "corelane/device/registry.h"

namespace corelane {

std::vector<ForeignMagic> foreign_files() { return device::list_file_magics(); }

FileKind file_kind(ByteSpan bytes) {
  // Own kinds first: listing the vendors' may load driver modules.
  const FileKind kind = detect_file_kind(bytes);
  return kind == FileKind::kUnknown ? detect_file_kind(bytes, foreign_files()) : kind;
}

}  // namespace corelane
