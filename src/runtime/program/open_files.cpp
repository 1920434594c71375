#include "runtime/program/open_files.h"

#include <map>
#include <utility>

#include "base/fork.h"
#include "base/sync.h"

namespace corelane::runtime {
namespace {

using File = std::shared_ptr<const ProgramFile>;

/// Nothing is opened or closed under its lock.
class OpenFiles {
 public:
  File find(const FileIdentity& identity) const {
    const MutexLock lock(mutex_);
    const auto found = files_.find(identity);
    return found == files_.end() ? nullptr : found->second.lock();
  }

  /// `file`, or the one that another thread has added since.
  File add(const FileIdentity& identity, const File& file) {
    const MutexLock lock(mutex_);
    std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<const ProgramFile>& place = files_[identity];
    if (File other = place.lock()) return other;
    place = file;
    return file;
  }

 private:
  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<FileIdentity, std::weak_ptr<const ProgramFile>> files_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::shared_ptr<const ProgramFile>> open_program_file(
    std::shared_ptr<const MappedFile> mapped, const std::filesystem::path& path, Verify verify) {
  // Never destroyed: programs may be loaded while the process ends. A forked child has its own,
  // whose lock no thread of the parent holds.
  auto& open = per_process<OpenFiles>();
  const FileIdentity identity = mapped->identity();
  File file = open.find(identity);
  if (file == nullptr) {
    CORELANE_ASSIGN(const File opened, ProgramFile::from_mapped(std::move(mapped), path));
    file = open.add(identity, opened);
  }
  if (verify == Verify::kEverything) CORELANE_TRY(file->verify_segments());
  return file;
}

}  // namespace corelane::runtime
