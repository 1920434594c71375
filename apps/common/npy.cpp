#include "common/npy.h"

#include "corelane/base/file.h"

namespace corelane::common {

Result<Array> read_npy(const std::filesystem::path& path) {
  CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
  return parse_npy(mapped.bytes(), path.string());
}

Status write_npy(const std::filesystem::path& path, const TensorView& view) {
  auto file = format_npy(view);
  if (!file) return file.error().wrap(path.string());
  return write_file_atomic(path, as_byte_span(*file));
}

}  // namespace corelane::common
