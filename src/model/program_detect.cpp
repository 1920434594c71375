#include "corelane/model/program_file.h"

namespace corelane {

std::string_view file_kind_name(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::kProgram:
      return "program";
    case FileKind::kOnnx:
      return "onnx";
    case FileKind::kVendor:
      return "vendor";
    case FileKind::kVendorCrypted:
      return "vendor-crypted";
    case FileKind::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace corelane
