/// InferenceBenchmarkSet: runs a program's inferences as fast as it takes them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/qaic_python/rt_callback.h"
#include "adapters/qaic_python/rt_member.h"
#include "adapters/qaic_python/rt_types.h"
#include "qaicapihpp/QAicApiInferenceBenchmarkSet.hpp"

namespace corelane::qaic_python {

/// One user at a time: a second one gets QS_BUSY.
class BenchmarkObject : public ContextMember<qaic::rt::shInferenceBenchmarkSet> {
 public:
  /// As InferenceBenchmarkSet::Factory.
  BenchmarkObject(nanobind::object context, nanobind::handle qpc, nanobind::handle device,
                  std::uint32_t set_size, std::uint32_t activations,
                  const SetProperties& properties);

  QStatus enable();
  QStatus disable();
  QStatus run(std::uint64_t count);
  QStatus run_for(double seconds);
  QStatus set_live_reporting(QLogLevel level, std::int64_t period_ms);
  QStatus set_callback(nanobind::object callback);
  QStatus set_operator_callback();
  /// The figures of the last run that ended.
  const qaic::rt::InferenceBenchmarkStats& stats() const noexcept { return stats_; }
  std::uint64_t completed() const;
  /// Throws CoreExceptionRuntime before enable().
  qaic::rt::shProgram program() const;

  // For the garbage collector.
  int show(visitproc visit, void* arg) const;
  void silence() const noexcept;

 private:
  class Use;
  /// `call` without the lock, where nobody else uses the set.
  template <class Call>
  QStatus used(Call&& call);
  template <class Call>
  QStatus measured(Call&& call);

  bool busy_ = false;  ///< With the lock.
  std::shared_ptr<UserFunction> function_;
  qaic::rt::InferenceBenchmarkStats stats_;
};

void bind_benchmark(nanobind::module_& module);

/// When the interpreter ends, without its lock: runs end soon.
void close_benchmarks();

}  // namespace corelane::qaic_python
