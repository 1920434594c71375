/// The functions of profiling handles.
#include <span>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/profiling/qaic_profiling.h"
#include "adapters/qaic/program/qaic_program.h"
#include "edge/profile_report.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

// A program in C puts any number into an enumeration.
Status check_number(const char* what, int number, int last) {
  if (number >= 0 && number <= last) return {};
  return error(Code::kInvalidArgument, "{} {}; 0 to {} are allowed", what, number, last);
}

Status check_type(QAicProfilingType type) {
  return check_number("profilingType", static_cast<int>(type), QAIC_PROFILING_TYPE_DEVICE_KPI);
}

bool given(const char* text) noexcept { return text != nullptr && *text != '\0'; }

Outcome create_count(const QAicProfilingConfig& config, QAicProfilingCallback callback,
                     void* user_data, std::shared_ptr<ProfilingObject>& made) {
  CORELANE_TRY(check_type(config.profilingType));
  if (config.numPrograms != 0 && config.programs == nullptr)
    return outcome(QS_INVAL, "programs is null");
  ProfileTaps taps;
  for (QAicProgram* const program : std::span(config.programs, config.numPrograms)) {
    CORELANE_ASSIGN(const auto object, find<ProgramObject>(program));
    taps.push_back(object->tap());
  }
  ProfileTarget target;
  target.type = config.profilingType;
  target.callback = callback;
  target.user_data = user_data;
  if (given(config.outputDir)) target.folder = config.outputDir;
  target.prefix = given(config.filePrefix) ? config.filePrefix : edge::kProfilePrefix;
  if (target.prefix.find('/') != std::string::npos)
    return outcome(QS_INVAL, "filePrefix '{}' has a slash; give the folder as outputDir",
                   target.prefix);
  CORELANE_ASSIGN(made, ProfilingObject::create(taps, config.numSamples, std::move(target)));
  return {};
}

Outcome create_stream(const QAicStreamProfilingConfig& config, QAicProfilingCallback callback,
                      void* user_data, std::shared_ptr<StreamProfilingObject>& made) {
  CORELANE_TRY(check_type(config.profilingType));
  const int sampling = static_cast<int>(config.samplingRate);
  const int reporting = static_cast<int>(config.reportingRate);
  CORELANE_TRY(check_number("samplingRate", sampling, QAIC_PROFILING_SAMPLING_RATE_SIXTEENTH));
  CORELANE_TRY(check_number("reportingRate", reporting, QAIC_PROFILING_REPORTING_RATE_4000_MS));
  StreamOptions options;
  // The enumerators count powers of two: each 1st to 16th inference, a report each 500 to 4000 ms.
  options.one_in = 1U << static_cast<unsigned>(sampling);
  options.period = std::chrono::milliseconds(500) * (1 << reporting);
  if (given(config.name)) options.name = config.name;
  if (given(config.regex)) {
    auto names = NameExpression::create(config.regex);
    if (!names) return names.error();
    options.names = *std::move(names);
  }
  ProfileTarget target;
  target.type = config.profilingType;
  target.callback = callback;
  target.user_data = user_data;
  CORELANE_ASSIGN(made, StreamProfilingObject::create(std::move(options), std::move(target)));
  return {};
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

extern "C" QStatus qaicCreateProfilingHandle(QAicProfilingHandle** handle,
                                             const QAicProfilingConfig* config,
                                             QAicProfilingCallback callback, void* userData) {
  return guard(__func__, [&]() -> Outcome {
    if (handle == nullptr || config == nullptr)
      return outcome(QS_INVAL, "handle or config is null");
    std::shared_ptr<ProfilingObject> made;
    Outcome created = create_count(*config, callback, userData, made);
    if (created.code() == QS_SUCCESS) *handle = publish(std::move(made));
    return created;
  });
}

extern "C" QStatus qaicReleaseProfilingHandle(QAicProfilingHandle* handle) {
  return release<ProfilingObject>(__func__, handle, [](ProfilingObject& object) -> Outcome {
    object.close();
    return {};
  });
}

extern "C" QStatus qaicProfilingStart(QAicProfilingHandle* handle) {
  return on<ProfilingObject>(__func__, handle,
                             [](ProfilingObject& object) -> Outcome { return object.start(); });
}

extern "C" QStatus qaicProfilingStop(QAicProfilingHandle* handle) {
  return on<ProfilingObject>(__func__, handle, [](ProfilingObject& object) -> Outcome {
    object.stop();
    return {};
  });
}

extern "C" QStatus qaicCreateStreamProfilingHandle(QAicStreamProfilingHandle** handle,
                                                   const QAicStreamProfilingConfig* config,
                                                   QAicProfilingCallback callback, void* userData) {
  return guard(__func__, [&]() -> Outcome {
    if (handle == nullptr || config == nullptr)
      return outcome(QS_INVAL, "handle or config is null");
    std::shared_ptr<StreamProfilingObject> made;
    Outcome created = create_stream(*config, callback, userData, made);
    if (created.code() == QS_SUCCESS) *handle = publish(std::move(made));
    return created;
  });
}

extern "C" QStatus qaicReleaseStreamProfilingHandle(QAicStreamProfilingHandle* handle) {
  return release<StreamProfilingObject>(__func__, handle,
                                        [](StreamProfilingObject& object) -> Outcome {
                                          object.close();
                                          return {};
                                        });
}

extern "C" QStatus qaicStreamProfilingStart(QAicStreamProfilingHandle* handle) {
  return on<StreamProfilingObject>(
      __func__, handle, [](StreamProfilingObject& object) -> Outcome { return object.start(); });
}

extern "C" QStatus qaicStreamProfilingStop(QAicStreamProfilingHandle* handle) {
  return on<StreamProfilingObject>(__func__, handle, [](StreamProfilingObject& object) -> Outcome {
    object.stop();
    return {};
  });
}

extern "C" QStatus qaicStreamProfilingAddProgram(QAicStreamProfilingHandle* handle,
                                                 QAicProgram* program) {
  return on<StreamProfilingObject>(__func__, handle, [&](StreamProfilingObject& object) -> Outcome {
    CORELANE_ASSIGN(const auto one, find<ProgramObject>(program));
    return object.add(one->tap());
  });
}

extern "C" QStatus qaicStreamProfilingRemoveProgram(QAicStreamProfilingHandle* handle,
                                                    QAicProgram* program) {
  return on<StreamProfilingObject>(__func__, handle, [&](StreamProfilingObject& object) -> Outcome {
    CORELANE_ASSIGN(const auto one, find<ProgramObject>(program));
    corelane::Status removed = object.remove(one->tap());
    if (removed.code() == corelane::Code::kNotFound) return {QS_INVAL, std::move(removed)};
    return removed;
  });
}

extern "C" QStatus qaicStreamProfilingFlushReports(QAicStreamProfilingHandle* handle) {
  return on<StreamProfilingObject>(
      __func__, handle, [](StreamProfilingObject& object) -> Outcome { return object.flush(); });
}
