#include "corelane/runtime/merged_log.h"

#include "runtime/log/merged_log_core.h"

namespace corelane {

using runtime::MergedLogCore;

/// Timers and deliveries keep the core for a moment; the log ends with its user's last reference.
struct MergedLog::Owner {
  explicit Owner(std::shared_ptr<MergedLogCore> made) : core(std::move(made)) {}
  /// In a forked child the core stays as it is: its threads are gone, and its locks may be held.
  ~Owner() {
    if (core->forked())
      new std::shared_ptr<MergedLogCore>(std::move(core));
    else
      core->end();
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  std::shared_ptr<MergedLogCore> core;
};

Result<MergedLog> MergedLog::create(MergedLogOptions options) {
  CORELANE_ASSIGN(auto core, MergedLogCore::create(std::move(options)));
  return MergedLog(std::make_shared<Owner>(std::move(core)));
}

void MergedLog::write(log::Level level, std::string_view part, std::string_view text) const {
  if (owner_ != nullptr) owner_->core->write(level, part, text);
}

bool MergedLog::flush(TimePoint until) const {
  return owner_ != nullptr && owner_->core->flush(until);
}

std::uint64_t MergedLog::dropped() const { return owner_ != nullptr ? owner_->core->dropped() : 0; }

}  // namespace corelane
