/// External data: where a tensor's bytes lie beside the model file, and which places are allowed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "corelane/base/bytes.h"
#include "corelane/base/file.h"
#include "corelane/base/status.h"

namespace onnx {
class TensorProto;
}

namespace corelane::onnx {

/// The location of a tensor whose bytes the model itself holds.
inline constexpr const char* kLentLocation = "corelane:model";

/// Opens external data files once each, and asks the system nothing before the first. A location is
/// relative to `root`; the file it resolves to must lie under `root` or, where `model` is a link,
/// under the folder of its target. Both may be empty. Not shared between threads.
class ExternalData {
 public:
  ExternalData(std::filesystem::path root, std::filesystem::path model, bool strict_links)
      : root_(std::move(root)), path_of_model_(std::move(model)), strict_links_(strict_links) {}

  /// The tensor's bytes; they live as long as this object. kInvalidArgument (no root, location
  /// outside, link in strict mode), kNotFound, kIo, kMalformed (offset, length, key).
  Result<ByteSpan> bytes_of(const ::onnx::TensorProto& tensor);
  /// The whole file at a location. Errors as of bytes_of().
  Result<ByteSpan> file(const std::string& location);
  /// Tensors at kLentLocation lie in `model`, the bytes of the model itself, which must live as
  /// long as this object is used.
  void lend(ByteSpan model);
  /// The file `path`, of which `mapped` is and which holds the model: large copies are read from
  /// it.
  void read_model_from(const MappedFile& mapped, const std::filesystem::path& path);
  /// Copies bytes that bytes_of() gave, or a part of them. kIo, kCorrupted (written to meanwhile).
  Status copy(ByteSpan bytes, std::byte* to);
  /// Bytes of the files opened so far and of `model`, each counted once however it is named.
  std::size_t size_of_files() const { return size_of_files_; }

 private:
  Result<const MappedFile*> open(const std::string& location, const std::string& tensor);
  Result<std::filesystem::path> resolve(const std::string& location, const std::string& tensor);
  void find_roots();

  std::filesystem::path root_;  ///< Canonical once `found_roots_`.
  std::filesystem::path path_of_model_;
  std::filesystem::path linked_root_;
  bool found_roots_ = false;
  bool strict_links_;
  std::map<std::filesystem::path, MappedFile> files_;  ///< By resolved path.
  std::map<std::string, const MappedFile*> by_location_;
  std::size_t size_of_files_ = 0;
  ByteSpan lent_;
  std::optional<FileReader> model_;
};

}  // namespace corelane::onnx
