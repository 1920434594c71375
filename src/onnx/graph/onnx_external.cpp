#include "onnx/graph/onnx_external.h"

#include <algorithm>
#include <utility>

#include "onnx/graph/onnx_proto.h"
#include "onnx/graph/onnx_tensor.h"

namespace corelane::onnx {
namespace {

namespace fs = std::filesystem;

/// Smaller copies are made before the system has been asked.
constexpr std::size_t kReadFrom = std::size_t{64} << 10;

/// Both canonical. By parts, so that /a/bc does not lie under /a/b.
bool lies_under(const fs::path& file, const fs::path& folder) {
  if (folder.empty()) return false;
  const auto [f, end] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return f == folder.end() && end != file.end();
}

}  // namespace

void ExternalData::find_roots() {
  if (std::exchange(found_roots_, true)) return;
  std::error_code ec;
  // What does not exist leaves its root empty: nothing lies under it.
  if (!root_.empty()) root_ = fs::canonical(root_, ec);
  if (!path_of_model_.empty()) linked_root_ = fs::canonical(path_of_model_, ec).parent_path();
}

Result<fs::path> ExternalData::resolve(const std::string& location, const std::string& tensor) {
  const fs::path relative(location);
  if (location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos) {
    return error(Code::kInvalidArgument,
                 "tensor '{}': external data at '{}'; only paths relative to the model are allowed",
                 tensor, location);
  }
  find_roots();
  if (root_.empty()) {
    return error(Code::kInvalidArgument,
                 "tensor '{}' lies in the file '{}', but no folder for external data is known; "
                 "import the model from its file, or give external_data_root",
                 tensor, location);
  }
  std::error_code ec;
  // Each step of the path, since any of them may be the link.
  if (strict_links_) {
    fs::path step = root_;
    for (const auto& part : relative) {
      step /= part;
      if (fs::is_symlink(fs::symlink_status(step, ec))) {
        return error(Code::kInvalidArgument,
                     "tensor '{}': external data '{}' goes through the symbolic link '{}', which "
                     "strict links refuse",
                     tensor, location, step.string());
      }
    }
  }
  // canonical() follows links and takes ".." out: what it gives is compared.
  const fs::path joined = root_ / relative;
  const fs::path resolved = fs::canonical(joined, ec);
  if (ec) {
    // Where a missing file would lie is checked first, so that nothing outside can be probed.
    const fs::path wanted = fs::weakly_canonical(joined, ec);
    if (ec || lies_under(wanted, root_)) {
      return error(Code::kNotFound, "tensor '{}': no external data file '{}'", tensor,
                   joined.string());
    }
  }
  // A model may be a link into a store of models: then its data lie beside the link's target.
  if (!lies_under(resolved, root_) && !lies_under(resolved, linked_root_)) {
    return error(Code::kInvalidArgument,
                 "tensor '{}': external data '{}' lies outside of the model's folder '{}'; move "
                 "the file below it",
                 tensor, location, root_.string());
  }
  return resolved;
}

Result<const MappedFile*> ExternalData::open(const std::string& location,
                                             const std::string& tensor) {
  const auto known = by_location_.find(location);
  if (known != by_location_.end()) return known->second;
  CORELANE_ASSIGN(const fs::path path, resolve(location, tensor));
  // Two names of one file share its mapping and count once against the bound on memory.
  if (const auto same = files_.find(path); same != files_.end())
    return by_location_[location] = &same->second;
  // By the path without links that resolve() has checked: what is put in its place since is
  // refused.
  const fs::path& folder = lies_under(path, root_) ? root_ : linked_root_;
  auto file = MappedFile::open_beneath(folder, path.lexically_relative(folder));
  if (!file) return error(file.error().wrap(fmt::format("tensor '{}'", tensor)));
  if (strict_links_ && file->names() > 1) {
    return error(
        Code::kInvalidArgument,
        "tensor '{}': external data '{}' has {} names (hard links), so it may be a file from "
        "elsewhere, which strict links refuse; copy it",
        tensor, location, file->names());
  }
  size_of_files_ += file->bytes().size();
  return by_location_[location] = &files_.emplace(path, std::move(*file)).first->second;
}

void ExternalData::lend(ByteSpan model) {
  lent_ = model;
  size_of_files_ += model.size();
}

void ExternalData::read_model_from(const MappedFile& mapped, const fs::path& path) {
  if (mapped.bytes().size() < kReadFrom) return;
  // Where it was replaced, the bytes that are mapped are copied.
  if (auto file = FileReader::reopen(mapped, path)) model_.emplace(std::move(*file));
}

Status ExternalData::copy(ByteSpan bytes, std::byte* to) {
  const bool of_model =
      !lent_.empty() && bytes.data() >= lent_.data() && bytes.data() < lent_.data() + lent_.size();
  if (of_model && model_ && bytes.size() >= kReadFrom)
    return model_->read(static_cast<std::size_t>(bytes.data() - lent_.data()), {to, bytes.size()});
  std::ranges::copy(bytes, to);
  return {};
}

Result<ByteSpan> ExternalData::file(const std::string& location) {
  CORELANE_ASSIGN(const MappedFile* file, open(location, location));
  return file->bytes();
}

Result<ByteSpan> ExternalData::bytes_of(const ::onnx::TensorProto& tensor) {
  const std::string& name = tensor.name();
  CORELANE_ASSIGN(const ExternalPlace place, external_place(tensor));
  if (tensor.data_type() == ::onnx::TensorProto::STRING)
    return error(Code::kMalformed, "tensor '{}': strings cannot be external data", name);
  CORELANE_ASSIGN(const std::size_t wanted, tensor_bytes(tensor));
  // The length is optional in ONNX; the shape decides.
  if (place.length && *place.length != wanted) {
    return error(Code::kMalformed,
                 "tensor '{}': its shape needs {} bytes, its external data declare {}", name,
                 wanted, *place.length);
  }
  if (place.location == kLentLocation && !lent_.empty())
    return checked_slice(lent_, place.offset, wanted, fmt::format("tensor '{}'", name));
  CORELANE_ASSIGN(const MappedFile* file, open(place.location, name));
  auto slice = checked_slice(file->bytes(), place.offset, wanted, fmt::format("tensor '{}'", name));
  // Said again with the file's name, which checked_slice() does not know.
  if (!slice) {
    return error(Code::kMalformed,
                 "tensor '{}': bytes {} to {} of the external data file '{}', which has {}", name,
                 place.offset, place.offset + wanted, place.location, file->bytes().size());
  }
  return *slice;
}

}  // namespace corelane::onnx
