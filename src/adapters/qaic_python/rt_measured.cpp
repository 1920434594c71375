#include "adapters/qaic_python/rt_measured.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_exec.h"
#include "adapters/qaic_python/rt_names.h"
#include "adapters/qaic_python/rt_program.h"
#include "adapters/qaic_python/rt_set.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::Entered;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

/// The sets of runs that go on. Never destroyed; the lock of the interpreter guards it.
std::vector<rt::shInferenceSet>& running() {
  static auto* const all = new std::vector<rt::shInferenceSet>;
  return *all;
}

QStatus refused(QStatus status, const char* why) {
  return rt::library().qaicSetLastErrorText(status, why);
}

}  // namespace

BenchmarkObject::BenchmarkObject(nb::object context, nb::handle qpc, nb::handle device,
                                 std::uint32_t set_size, std::uint32_t activations,
                                 const SetProperties& properties)
    : ContextMember(std::move(context)) {
  const auto& parent = object_of<ContextObject>(context_, "the context");
  const auto& container = object_of<QpcObject>(qpc, "the Qpc");
  const rt::DeviceChoice chosen = choice_of(device);
  const rt::InferenceSetProperties given = properties.get();
  object_ = without_lock([&] {
    return rt::InferenceBenchmarkSet::Factory(parent.get(), container.get(), chosen, set_size,
                                              activations, &given);
  });
}

template <class Call>
QStatus BenchmarkObject::used(Call&& call) {
  if (busy_)
    return refused(QS_BUSY,
                   "InferenceBenchmarkSet: another thread uses it, or a run that calls this; call "
                   "it when that has ended");
  busy_ = true;
  // What it throws is out of memory.
  struct Free {
    bool& busy;
    ~Free() { busy = false; }
  } const free{busy_};
  return without_lock(std::forward<Call>(call));
}

template <class Call>
QStatus BenchmarkObject::measured(Call&& call) {
  const rt::shInferenceSet set = busy_ ? nullptr : object_->getInferenceSet();
  // In use, or not enabled: used() or the call itself says so.
  if (set == nullptr) return used(std::forward<Call>(call));
  // Where close_benchmarks() finds it: the run then ends when the interpreter does.
  running().push_back(set);
  struct Ended {
    const rt::shInferenceSet& set;
    ~Ended() { std::erase(running(), set); }
  } const ended{set};
  const QStatus status = used(std::forward<Call>(call));
  // A copy with the lock: the next run writes the figures without it.
  stats_ = object_->getLastRunStats();
  return status;
}

QStatus BenchmarkObject::enable() {
  return used([&] { return object_->enable(); });
}
QStatus BenchmarkObject::disable() {
  return used([&] { return object_->disable(); });
}
QStatus BenchmarkObject::run(std::uint64_t count) {
  return measured([&] { return object_->run(count); });
}
QStatus BenchmarkObject::run_for(double seconds) {
  return measured([&] { return object_->runForDuration(duration_of(seconds)); });
}

QStatus BenchmarkObject::set_live_reporting(QLogLevel level, std::int64_t period_ms) {
  // A period below 0 turns the lines off; the longest is one day.
  const std::chrono::milliseconds period(std::clamp<std::int64_t>(period_ms, 0, 86'400'000));
  return used([&] {
    object_->setLiveReporting(level, period);
    return QS_SUCCESS;
  });
}

QStatus BenchmarkObject::set_callback(nb::object callback) {
  auto made = std::make_shared<UserFunction>();
  made->object = function_of(std::move(callback), "callback");
  const QStatus status = used([&] {
    rt::InferenceBenchmarkSet::CompletionCallback call;
    if (made->object != nullptr)
      call = [made](std::uint64_t id, QStatus outcome) {
        call_user(*made, [&] { return nb::make_tuple(id, nb::cast(outcome)); });
      };
    object_->setCompletionCallback(std::move(call));
    return QS_SUCCESS;
  });
  if (status == QS_SUCCESS) function_ = std::move(made);
  return status;
}

QStatus BenchmarkObject::set_operator_callback() { return object_->setOperatorStatsCallback(0); }

std::uint64_t BenchmarkObject::completed() const { return object_->getInfCompleted(); }

rt::shProgram BenchmarkObject::program() const {
  if (busy_)
    throw rt::CoreExceptionRuntime(
        "InferenceBenchmarkSet: another thread uses it; ask when that has ended", QS_BUSY);
  const rt::shInferenceSet set = object_->getInferenceSet();
  if (set == nullptr)
    throw rt::CoreExceptionRuntime("InferenceBenchmarkSet: not enabled; call enable() first",
                                   QS_INVAL);
  return without_lock([&] { return set->getProgram(); });
}

int BenchmarkObject::show(visitproc visit, void* given) const {
  if (const int stop = ContextMember::show(visit, given); stop != 0) return stop;
  return function_ != nullptr ? function_->show(visit, given) : 0;
}

void BenchmarkObject::silence() const noexcept {
  if (function_ != nullptr) function_->silent = true;
}

namespace {

void bind_stats(nb::module_& module) {
  using Stats = rt::InferenceBenchmarkStats;
  nb::class_<Stats>(module, "InferenceBenchmarkStats",
                    "What a run came to; unpacks to its four figures.")
      .def_ro("infCompleted", &Stats::infCompleted, "Inferences that succeeded.")
      .def_ro("infPerSec", &Stats::infPerSec, "Inferences a second; x batchSize: samples.")
      .def_ro("totalTimeUs", &Stats::totalTimeUs,
              "From the first submission to the last completion.")
      .def_ro("batchSize", &Stats::batchSize, "Of the program.")
      .def("__iter__", [](const Stats& self) {
        return nb::iter(
            nb::make_tuple(self.infCompleted, self.infPerSec, self.totalTimeUs, self.batchSize));
      });
}

void bind_runs(nb::class_<BenchmarkObject>& made) {
  made.def("enable", &BenchmarkObject::enable,
           "Makes the activations and handles, with random inputs.")
      .def("disable", &BenchmarkObject::disable, "Gives the activations back.")
      .def("run", &BenchmarkObject::run, arg("numInferencesToRun"),
           "So many inferences, as many at a time as there are handles.")
      .def("runForDuration", &BenchmarkObject::run_for, arg("duration"),
           "Submits until so many seconds have passed, and waits for what was submitted.")
      .def(
          "getLastRunStats", [](const BenchmarkObject& self) { return self.stats(); },
          "Of the last run that ended; zeros before one.")
      .def("getInfCompleted", &BenchmarkObject::completed,
           "Inferences of this run, or the last, that succeeded so far; from any thread.")
      .def("setLiveReporting", &BenchmarkObject::set_live_reporting, arg("level") = QL_INFO,
           arg("reportingPeriodMs") = 1000,
           "While it runs, a line with the rate goes to the context's log, at most once in so many "
           "milliseconds; 0: none, as at first.")
      .def("setCompletionCallback", &BenchmarkObject::set_callback, arg("callback").none(),
           "callback(number, status) gets each inference, in the thread that runs. None: none.")
      .def(
          "setOperatorStatsCallback",
          [](BenchmarkObject& self, nb::handle /*callback*/) {
            return self.set_operator_callback();
          },
          arg("callback").none(), "QS_UNSUPPORTED: a set has no time of each operator.")
      .def(
          "getProgram",
          [](const BenchmarkObject& self) {
            return program_object(self.context(), self.program());
          },
          "The program of its set, while it is enabled.");
}

}  // namespace

void bind_benchmark(nb::module_& module) {
  bind_stats(module);
  auto made = nb::class_<BenchmarkObject>(
      module, "InferenceBenchmarkSet", nb::type_slots(callback_slots<BenchmarkObject>()),
      "Runs a program's inferences as fast as it takes them, and says how fast that was. One user "
      "at a time.");
  made.def(
      "__init__",
      [](BenchmarkObject* self, nb::object context, const nb::object& qpc, nb::handle device,
         std::uint32_t set_size, std::uint32_t activations, const SetProperties* properties) {
        const SetProperties defaults;
        new (self) BenchmarkObject(std::move(context), qpc, device, set_size, activations,
                                   properties != nullptr ? *properties : defaults);
      },
      arg("context"), arg("qpc"), arg("dev").none() = nb::none(), arg("setSize") = 10,
      arg("numActivations") = 1, arg("properties").none() = nb::none(),
      "It holds no cores until enable().");
  bind_runs(made);
  bind_logger<BenchmarkObject>(made);
}

void close_benchmarks() {
  std::vector<rt::shInferenceSet> all;
  if (const Entered lock; lock) all = running();
  for (const rt::shInferenceSet& set : all) static_cast<void>(set->shutdown());
}

}  // namespace corelane::qaic_python
