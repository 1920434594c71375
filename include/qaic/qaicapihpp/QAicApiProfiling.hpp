/// ProfilingHandle and StreamProfilingHandle: reports of a program's inferences, by their number or
/// in periods of the clock. All methods from any thread, in the callbacks too.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "QAicApiProgram.hpp"

namespace qaic::rt {

/// Gets a report. Called in a thread of the handle, one at a time, with no lock held; what it
/// throws is caught, counted, and written to the library's log once.
using ProfilingCallback = std::function<void(const std::string&)>;
using ProfilingProperties = QAicProfilingProperties;

namespace detail {

class ProfilingCallbackTable : public NumberedTable<ProfilingCallback> {
 public:
  /// The table of the process. It is never destroyed, since handles may be left at exit.
  static ProfilingCallbackTable& instance() {
    static auto* const table = new ProfilingCallbackTable;
    return *table;
  }
  /// The library calls this with a report of `size` bytes. It passes a copy to the callback with
  /// this number, and does nothing once the callback's handle has gone. Any thread.
  static void report(const char* text, size_t size, void* number) {
    if (const auto callback = instance().find(number)) (*callback)(std::string(text, size));
  }
};

/// A callback in the table; none where it is empty.
class ProfilingCallbackNumber {
 public:
  /// Puts the callback into the table, until the destructor; an empty one gets no number.
  explicit ProfilingCallbackNumber(ProfilingCallback callback)
      : number_(callback ? ProfilingCallbackTable::instance().add(
                               std::make_shared<const ProfilingCallback>(std::move(callback)))
                         : nullptr) {}
  ~ProfilingCallbackNumber() { ProfilingCallbackTable::instance().remove(number_); }
  ProfilingCallbackNumber(const ProfilingCallbackNumber&) = delete;
  ProfilingCallbackNumber& operator=(const ProfilingCallbackNumber&) = delete;
  /// The function that the library is to call; null where there is no callback.
  QAicProfilingCallback function() const noexcept {
    return number_ != nullptr ? &ProfilingCallbackTable::report : nullptr;
  }
  /// The number, which the library holds as user data; null where there is no callback.
  void* get() const noexcept { return number_; }

 private:
  void* number_;
};

}  // namespace detail

/// One report of a number of inferences.
class ProfilingHandle {
 public:
  /// Of one program. Throws CoreExceptionInit, QS_INVAL: no program, no callback, 0 samples or more
  /// than 1048576, an unknown type.
  static shProfilingHandle Factory(const shProgram& program, uint32_t numSamples,
                                   ProfilingCallback callback,
                                   QAicProfilingType type = QAIC_PROFILING_TYPE_LATENCY) {
    return Factory(std::vector<shProgram>{program}, numSamples, std::move(callback), type, "", "");
  }
  /// Of several, `numSamples` together. With `outputDir` each program's report is also written
  /// there, to <filePrefix>-<number of the program>-latency.txt, -trace.json, -raw.json or
  /// -kpi.json; then `callback` may be empty. An empty prefix: "aic-profiling-program".
  static shProfilingHandle Factory(const std::vector<shProgram>& programs, uint32_t numSamples,
                                   ProfilingCallback callback, QAicProfilingType type,
                                   const std::string& filePrefix, const std::string& outputDir) {
    std::vector<QAicProgram*> all;
    for (const shProgram& program : programs) {
      detail::checkGiven("ProfilingHandle", program != nullptr, "program");
      all.push_back(program->get());
    }
    QAicProfilingConfig config{};
    config.numPrograms = static_cast<uint32_t>(all.size());
    config.programs = all.data();
    config.numSamples = numSamples;
    config.profilingType = type;
    config.outputDir = outputDir.c_str();
    config.filePrefix = filePrefix.c_str();
    return shProfilingHandle(new ProfilingHandle(config, std::move(callback)));
  }
  /// A report that is due is delivered before; no callback runs after.
  ~ProfilingHandle() { static_cast<void>(library().qaicReleaseProfilingHandle(handle_)); }
  ProfilingHandle(const ProfilingHandle&) = delete;
  ProfilingHandle& operator=(const ProfilingHandle&) = delete;

  /// Collects from here on; the report comes when the number is reached. QS_BUSY while it is
  /// started. After the report, or stop(), it may be started again.
  QStatus start() { return library().qaicProfilingStart(handle_); }
  /// Delivers what was collected, unless that is nothing, and returns once that is done; in a
  /// callback it does not wait.
  QStatus stop() { return library().qaicProfilingStop(handle_); }

 private:
  ProfilingHandle(const QAicProfilingConfig& config, ProfilingCallback callback)
      : callback_(std::move(callback)) {
    detail::checkInit("ProfilingHandle",
                      library().qaicCreateProfilingHandle(&handle_, &config, callback_.function(),
                                                          callback_.get()));
  }

  const detail::ProfilingCallbackNumber callback_;
  QAicProfilingHandle* handle_ = nullptr;
};

/// A report at each boundary of a period on the clock, also without samples.
class StreamProfilingHandle {
 public:
  /// Null `properties`: latency. `regex`: an ECMAScript expression of at most 256 characters,
  /// without back references; programs and sets whose whole name matches, those that there are
  /// too, are profiled until they go. Throws CoreExceptionInit, QS_INVAL.
  static shStreamProfilingHandle Factory(QAicProfilingSamplingRate sampling,
                                         QAicProfilingReportingRate reporting,
                                         ProfilingCallback callback,
                                         const ProfilingProperties* properties = nullptr,
                                         const std::string& name = "",
                                         const std::string& regex = "") {
    QAicStreamProfilingConfig config{};
    config.samplingRate = sampling;
    config.reportingRate = reporting;
    if (properties != nullptr) config.profilingType = properties->profilingType;
    config.name = name.c_str();
    config.regex = regex.c_str();
    return shStreamProfilingHandle(new StreamProfilingHandle(config, std::move(callback)));
  }
  /// Reports that are queued are delivered before; no callback runs after.
  ~StreamProfilingHandle() {
    static_cast<void>(library().qaicReleaseStreamProfilingHandle(handle_));
  }
  StreamProfilingHandle(const StreamProfilingHandle&) = delete;
  StreamProfilingHandle& operator=(const StreamProfilingHandle&) = delete;

  /// QS_BUSY while it is started.
  QStatus start() { return library().qaicStreamProfilingStart(handle_); }
  /// Queues a last report, of what was collected since the one before.
  QStatus stop() { return library().qaicStreamProfilingStop(handle_); }
  /// Also while started; nothing where it is profiled. QS_INVAL: null, or in a trace of another
  /// device.
  QStatus addProgram(const shProgram& program) {
    return library().qaicStreamProfilingAddProgram(handle_,
                                                   program != nullptr ? program->get() : nullptr);
  }
  /// QS_INVAL where it is not profiled.
  QStatus removeProgram(const shProgram& program) {
    return library().qaicStreamProfilingRemoveProgram(
        handle_, program != nullptr ? program->get() : nullptr);
  }
  /// Returns once all reports that are queued were delivered. QS_INVAL in a callback.
  QStatus flushReports() { return library().qaicStreamProfilingFlushReports(handle_); }

 private:
  StreamProfilingHandle(const QAicStreamProfilingConfig& config, ProfilingCallback callback)
      : callback_(std::move(callback)) {
    detail::checkInit("StreamProfilingHandle",
                      library().qaicCreateStreamProfilingHandle(
                          &handle_, &config, callback_.function(), callback_.get()));
  }

  const detail::ProfilingCallbackNumber callback_;
  QAicStreamProfilingHandle* handle_ = nullptr;
};

}  // namespace qaic::rt
