/// InferenceBenchmarkSet: runs a program's inferences as fast as it takes them, and says how fast
/// that was. One user at a time; getInfCompleted() from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "QAicApiInferenceSet.hpp"
#include "QAicApiInferenceVector.hpp"

namespace qaic::rt {

/// What a run came to.
struct InferenceBenchmarkStats {
  uint64_t infCompleted = 0;  ///< Inferences that succeeded.
  double infPerSec = 0;       ///< Inferences a second; x batchSize: samples.
  uint64_t totalTimeUs = 0;   ///< From the first submission to the last completion.
  uint32_t batchSize = 1;     ///< Of the program.
};

class InferenceBenchmarkSet : public Logger {
 public:
  /// Gets each inference: its number in the run, and its outcome. Called in the thread that runs.
  /// It may call any method; disable() and a run in it are QS_BUSY, and another callback is for the
  /// next run. What it throws goes to the context's log, once in a run, and the run goes on.
  using CompletionCallback = std::function<void(uint64_t, QStatus)>;

  /// Null `properties`: the defaults. It holds no cores until enable(). Throws CoreExceptionInit.
  static shInferenceBenchmarkSet Factory(const shContext& context, const shQpc& qpc,
                                         const DeviceChoice& device = {}, uint32_t setSize = 10,
                                         uint32_t numActivations = 1,
                                         const InferenceSetProperties* properties = nullptr) {
    detail::checkGiven("InferenceBenchmarkSet", context != nullptr, "context");
    detail::checkGiven("InferenceBenchmarkSet", qpc != nullptr, "Qpc");
    return shInferenceBenchmarkSet(
        new InferenceBenchmarkSet(context, qpc, device, setSize, numActivations, properties));
  }

  /// Makes the activations and handles, with random inputs. Nothing where that was done. The codes
  /// of InferenceSet::Factory.
  QStatus enable() {
    if (set_ != nullptr) return QS_SUCCESS;
    try {
      const shInferenceSet made =
          InferenceSet::Factory(context_, qpc_, device_, setSize_, numActivations_, &properties_);
      vectors_.clear();
      std::vector<shInferenceHandle> held(made->size());
      for (shInferenceHandle& handle : held) {
        QStatus status = made->getAvailable(handle, std::chrono::seconds(0));
        vectors_.push_back(InferenceVector::Factory(qpc_));
        if (status == QS_SUCCESS) status = handle->setBuffers(vectors_.back());
        if (status != QS_SUCCESS) return status;
      }
      for (const shInferenceHandle& handle : held) made->putCompleted(handle);
      set_ = made;
      return QS_SUCCESS;
    } catch (const CoreExceptionInit& e) {
      return refuse(e.status(), e.msg());
    } catch (const CoreExceptionRuntime& e) {
      return refuse(e.status(), e.msg());
    }
  }
  /// Gives the activations back. QS_BUSY while it runs.
  QStatus disable() {
    if (running_) return refuse(QS_BUSY, "it runs; call disable() when the run has ended");
    set_ = nullptr;
    vectors_.clear();
    return QS_SUCCESS;
  }

  /// So many inferences, as many at a time as there are handles. QS_INVAL before enable() or for 0,
  /// QS_BUSY while it runs; where inferences fail, the outcome of the first, after all that were
  /// submitted have ended.
  QStatus run(uint64_t count) {
    if (count == 0) return refuse(QS_INVAL, "a run of 0 inferences; ask for 1 or more");
    return runWithin(count, kLongest);
  }
  /// Submits until the time has passed, and waits for what was submitted.
  template <class Rep, class Period>
  QStatus runForDuration(std::chrono::duration<Rep, Period> time) {
    const std::chrono::microseconds limit(
        std::min<uint64_t>(detail::microseconds(time), uint64_t{1} << 50));
    return runWithin(std::numeric_limits<uint64_t>::max(), limit);
  }

  /// Of the last run that began; zeros before one. Not while one runs.
  const InferenceBenchmarkStats& getLastRunStats() const noexcept { return stats_; }
  /// Inferences of this run, or the last, that succeeded so far.
  uint64_t getInfCompleted() const noexcept { return completed_; }

  /// While it runs, a line with the rate goes to the context's log at this level, at most once in
  /// each period. A period of 0: none, as at first.
  void setLiveReporting(QLogLevel level,
                        std::chrono::milliseconds period = std::chrono::milliseconds(1000)) {
    level_ = level;
    period_ = period;
  }
  /// An empty one: none.
  void setCompletionCallback(CompletionCallback callback) { callback_ = std::move(callback); }
  /// QS_UNSUPPORTED: the set's inferences have no time of each operator.
  template <class Callback>
  QStatus setOperatorStatsCallback(const Callback&) {
    return refuse(QS_UNSUPPORTED,
                  "inferences of a set have no statistics of operators; 'corelane run --profile' "
                  "has the time of each layer");
  }
  /// The set; null before enable().
  const shInferenceSet& getInferenceSet() const noexcept { return set_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds kLongest{int64_t{1} << 50};  ///< Some 35 years.

  InferenceBenchmarkSet(const shContext& context, const shQpc& qpc, const DeviceChoice& device,
                        uint32_t setSize, uint32_t numActivations,
                        const InferenceSetProperties* properties)
      : Logger(context, "InferenceBenchmarkSet"),
        context_(context),
        qpc_(qpc),
        device_(device),
        setSize_(setSize),
        numActivations_(numActivations) {
    if (properties != nullptr) properties_ = *properties;
  }

  /// True once; false again when it goes.
  class Running {
   public:
    /// Makes the flag true. Where it was true already, this object changes nothing.
    explicit Running(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true)) {}
    ~Running() {
      if (mine_) flag_ = false;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    /// Whether this object made the flag true; false while another run has it.
    bool mine() const noexcept { return mine_; }

   private:
    std::atomic<bool>& flag_;
    const bool mine_;
  };

  QStatus runWithin(uint64_t count, std::chrono::microseconds limit) {
    if (set_ == nullptr) return refuse(QS_INVAL, "not enabled; call enable() first");
    const Running now(running_);
    if (!now.mine()) return refuse(QS_BUSY, "it runs; run it again when that has ended");
    const CompletionCallback callback = callback_;
    bool threw = false;
    completed_ = 0;
    stats_ = {};
    QAicProgramInfoV2 info{};
    if (set_->getAicProgramInfoV2(info) == QS_SUCCESS)
      stats_.batchSize = std::max<uint32_t>(info.programInfo.batchSize, 1);
    const Time began = std::chrono::steady_clock::now();
    const Time until = began + limit;
    Time said = began;
    uint64_t submitted = 0, ended = 0;
    QStatus first = QS_SUCCESS;
    const auto more = [&] {
      return first == QS_SUCCESS && submitted < count && std::chrono::steady_clock::now() < until;
    };
    for (;;) {
      while (submitted - ended < set_->size() && more()) {
        first = submitOne(submitted);
        if (first == QS_SUCCESS) ++submitted;
      }
      if (ended == submitted) break;
      shInferenceHandle handle;
      const QStatus status = set_->getCompleted(handle);
      if (handle == nullptr) return status;
      ++ended;
      const uint64_t id = handle->getId();
      static_cast<void>(set_->putCompleted(handle));
      if (status == QS_SUCCESS) ++completed_;
      if (first == QS_SUCCESS) first = status;
      countNow(began);
      if (callback) give(callback, id, status, threw);
      say(said);
    }
    countNow(began);
    return first;
  }
  QStatus submitOne(uint64_t id) {
    shInferenceHandle handle;
    QStatus status = set_->getAvailable(handle);
    if (status == QS_SUCCESS) status = set_->submit(handle, id);
    if (status != QS_SUCCESS && handle != nullptr) static_cast<void>(set_->putCompleted(handle));
    return status;
  }
  /// Nothing that is thrown passes a run: its inferences would stay in flight.
  void give(const CompletionCallback& callback, uint64_t id, QStatus status, bool& threw) const {
    try {
      callback(id, status);
      return;
    } catch (const std::exception& e) {
      if (!threw) log(QL_ERROR) << "the completion callback threw: " << e.what();
    } catch (...) {
      if (!threw) log(QL_ERROR) << "the completion callback threw what is no std::exception";
    }
    threw = true;
  }
  void countNow(Time began) {
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - began;
    stats_.infCompleted = completed_;
    stats_.totalTimeUs = static_cast<uint64_t>(time.count());
    stats_.infPerSec =
        time.count() > 0 ? static_cast<double>(stats_.infCompleted) * 1e6 / time.count() : 0;
  }
  void say(Time& said) const {
    const Time now = std::chrono::steady_clock::now();
    if (period_.count() <= 0 || now - said < period_) return;
    said = now;
    log(level_) << stats_.infCompleted << " inferences, " << stats_.infPerSec << " a second";
  }

  shContext context_;
  shQpc qpc_;
  const DeviceChoice device_;
  const uint32_t setSize_;
  const uint32_t numActivations_;
  InferenceSetProperties properties_;
  shInferenceSet set_;
  std::vector<shInferenceVector> vectors_;
  std::atomic<uint64_t> completed_{0};
  std::atomic<bool> running_{false};
  InferenceBenchmarkStats stats_;
  QLogLevel level_ = QL_INFO;
  std::chrono::milliseconds period_{0};
  CompletionCallback callback_;
};

}  // namespace qaic::rt
