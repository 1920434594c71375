#include "corelane/runtime/file_kind.h"

#include "corelane/device/registry.h"

namespace corelane {

std::vector<ForeignMagic> foreign_files() {
  std::vector<ForeignMagic> files;
  for (const device::FileMagic& magic : device::list_file_magics())
    files.push_back({magic.kind, magic.bytes, magic.offset, magic.encrypted});
  return files;
}

FileKind file_kind(ByteSpan bytes) {
  // Own kinds first: listing the vendors' may load driver modules.
  const FileKind kind = detect_file_kind(bytes);
  return kind == FileKind::kUnknown ? detect_file_kind(bytes, foreign_files()) : kind;
}

}  // namespace corelane
