#include "adapters/qaic/profiling/qaic_profile_delivery.h"

#include <filesystem>
#include <utility>

#include "base/guard.h"
#include "corelane/base/file.h"
#include "corelane/base/log.h"
#include "edge/profile_report.h"

namespace corelane::qaic {

namespace {

edge::ProfileKind kind_of(QAicProfilingType type) {
  static_assert(static_cast<int>(edge::ProfileKind::kLatency) == QAIC_PROFILING_TYPE_LATENCY &&
                static_cast<int>(edge::ProfileKind::kTrace) == QAIC_PROFILING_TYPE_TRACE &&
                static_cast<int>(edge::ProfileKind::kRaw) == QAIC_PROFILING_TYPE_RAW_DEVICE_STATS &&
                static_cast<int>(edge::ProfileKind::kKpi) == QAIC_PROFILING_TYPE_DEVICE_KPI);
  return static_cast<edge::ProfileKind>(type);
}

}  // namespace

ProfileDelivery::ProfileDelivery(ProfileTarget target)
    : target_(std::move(target)),
      thread_(std::make_shared<dispatch::CallbackThread>(real_clock(), "corelane-report", "qaic")) {
}

/// A file has the samples of one program.
Status ProfileDelivery::write_files(const edge::ProfileReport& report) const {
  const edge::ProfileKind kind = kind_of(target_.type);
  for (const auto& program : report.programs) {
    edge::ProfileReport part;
    part.handle = report.handle;
    part.programs = {program};
    part.dropped = report.dropped;
    part.until = report.until;
    for (const edge::ProfileSample& sample : report.samples)
      if (sample.program->number == program->number) part.samples.push_back(sample);
    const std::string text = edge::profile_report(kind, part);
    const auto path = std::filesystem::path(target_.folder) /
                      edge::profile_file_name(kind, target_.prefix, program->number);
    CORELANE_TRY(write_file_atomic(path, as_byte_span(text)));
  }
  return {};
}

void ProfileDelivery::deliver(const edge::ProfileReport& report) noexcept {
  run_callback("qaic", "a profiling report", [&] {
    if (!target_.folder.empty())
      if (const Status written = write_files(report); !written.ok())
        log::error("qaic", "a profiling report was not written: {}", written.to_string());
    if (target_.callback == nullptr) return;
    const std::string text = edge::profile_report(kind_of(target_.type), report);
    gate_.call("the profiling callback",
               [&] { target_.callback(text.c_str(), text.size(), target_.user_data); });
  });
}

/// In a callback it does not wait: what is queued still becomes files, but reaches no callback.
void ProfileDelivery::close() noexcept {
  run_callback("qaic", "ending a profiling handle", [&] { wait(); });
  gate_.close();
  thread_->stop();
}

}  // namespace corelane::qaic
