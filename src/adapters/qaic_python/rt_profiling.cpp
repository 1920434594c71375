#include "adapters/qaic_python/rt_profiling.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "QAicApi.hpp"
#include "adapters/interpreter/py_gate.h"
#include "adapters/qaic_python/rt_callback.h"
#include "adapters/qaic_python/rt_cycle.h"
#include "adapters/qaic_python/rt_measured.h"
#include "adapters/qaic_python/rt_program.h"
#include "adapters/qaic_python/rt_set.h"
#include "adapters/qaic_python/rt_text.h"

namespace corelane::qaic_python {

namespace nb = nanobind;
using interpreter::Entered;
using interpreter::Released;
using interpreter::without_lock;
using nb::arg;
namespace rt = qaic::rt;

namespace {

constexpr std::chrono::seconds kFlushTimeout{10};

/// What a handle of Python and the end of the interpreter share. One of the two is there.
struct ProfilerState {
  std::shared_ptr<UserFunction> function = std::make_shared<UserFunction>();
  rt::shProfilingHandle count;
  rt::shStreamProfilingHandle stream;
};

/// Never destroyed: handles may go when the process ends. The lock of the interpreter guards it.
std::vector<std::weak_ptr<ProfilerState>>& known() {
  static auto* const all = new std::vector<std::weak_ptr<ProfilerState>>;
  return *all;
}

rt::ProfilingCallback callback_of(const std::shared_ptr<UserFunction>& function) {
  if (function->object == nullptr) return nullptr;
  return [function](const std::string& report) {
    call_user(*function, [&] { return nb::make_tuple(text_of(report)); });
  };
}

/// A Program, or what has one.
rt::shProgram program_of(nb::handle given) {
  if (const SetObject* const set = object_in<SetObject>(given); set != nullptr)
    return without_lock([&] { return set->get()->getProgram(); });
  if (const auto* const bench = object_in<BenchmarkObject>(given); bench != nullptr)
    return bench->program();
  if (const auto* const program = object_in<ProgramObject>(given); program != nullptr)
    return program->get();
  throw nb::type_error((std::string("a Program or an InferenceSet is profiled, not a ") +
                        nb::type_name(given.type()).c_str() + "; pass one, or a list of them")
                           .c_str());
}

std::vector<rt::shProgram> programs_of(nb::handle given) {
  if (PySequence_Check(given.ptr()) == 0) return {program_of(given)};
  std::vector<rt::shProgram> all;
  for (const nb::handle one : nb::iter(given)) all.push_back(program_of(one));
  return all;
}

/// What both handles are.
class ProfilerObject {
 public:
  explicit ProfilerObject(nb::object callback) {
    state_->function->object = function_of(std::move(callback), "callback");
  }
  /// Waits for a report that is being delivered, without the lock, unless this is called in it.
  ~ProfilerObject() {
    const Released released;
    state_->count.reset();
    state_->stream.reset();
  }
  ProfilerObject(const ProfilerObject&) = delete;
  ProfilerObject& operator=(const ProfilerObject&) = delete;
  // For the garbage collector.
  int show(visitproc visit, void* arg) const { return state_->function->show(visit, arg); }
  void silence() const noexcept { state_->function->silent = true; }

 protected:
  void enrol() const {
    std::erase_if(known(), [](const auto& one) { return one.expired(); });
    known().push_back(state_);
  }

  std::shared_ptr<ProfilerState> state_ = std::make_shared<ProfilerState>();
};

class CountObject : public ProfilerObject {
 public:
  CountObject(nb::handle programs, std::uint32_t samples, nb::object callback,
              QAicProfilingType type, const std::string& prefix, const std::string& folder)
      : ProfilerObject(std::move(callback)) {
    const std::vector<rt::shProgram> all = programs_of(programs);
    without_lock([&] {
      state_->count = rt::ProfilingHandle::Factory(all, samples, callback_of(state_->function),
                                                   type, prefix, folder);
    });
    enrol();
  }
  QStatus start() {
    return without_lock([&] { return state_->count->start(); });
  }
  QStatus stop() {
    return without_lock([&] { return state_->count->stop(); });
  }
};

class StreamObject : public ProfilerObject {
 public:
  StreamObject(QAicProfilingSamplingRate sampling, QAicProfilingReportingRate reporting,
               nb::object callback, const QAicProfilingProperties* properties,
               const std::string& name, const std::string& regex)
      : ProfilerObject(std::move(callback)) {
    without_lock([&] {
      state_->stream = rt::StreamProfilingHandle::Factory(
          sampling, reporting, callback_of(state_->function), properties, name, regex);
    });
    enrol();
  }
  QStatus start() {
    return without_lock([&] { return state_->stream->start(); });
  }
  QStatus stop() {
    return without_lock([&] { return state_->stream->stop(); });
  }
  QStatus add(nb::handle given) {
    const rt::shProgram program = program_of(given);
    return without_lock([&] { return state_->stream->addProgram(program); });
  }
  QStatus remove(nb::handle given) {
    const rt::shProgram program = program_of(given);
    return without_lock([&] { return state_->stream->removeProgram(program); });
  }
  QStatus flush() {
    return without_lock([&] { return state_->stream->flushReports(); });
  }
};

void bind_count(nb::module_& module) {
  nb::class_<CountObject>(module, "ProfilingHandle", nb::type_slots(callback_slots<CountObject>()),
                          "One report of a number of inferences.")
      .def(nb::init<nb::handle, std::uint32_t, nb::object, QAicProfilingType, const std::string&,
                    const std::string&>(),
           arg("programs"), arg("numSamples"), arg("callback").none() = nb::none(),
           arg("type") = QAIC_PROFILING_TYPE_LATENCY, arg("filePrefix") = "", arg("outputDir") = "",
           "Of a Program or an InferenceSet, or of a list of them, together. callback(report) gets "
           "the text, in a thread of the library; with outputDir each program's report is also a "
           "file there, and the callback may be None.")
      .def("start", &CountObject::start,
           "Collects from here on. The report comes when the number is reached; then it may be "
           "started again.")
      .def("stop", &CountObject::stop,
           "Delivers what was collected, unless that is nothing, and returns once that is done; in "
           "the callback it does not wait.");
}

void bind_stream(nb::module_& module) {
  nb::class_<StreamObject>(module, "StreamProfilingHandle",
                           nb::type_slots(callback_slots<StreamObject>()),
                           "A report at each boundary of a period on the clock, also without "
                           "samples.")
      .def(nb::init<QAicProfilingSamplingRate, QAicProfilingReportingRate, nb::object,
                    const QAicProfilingProperties*, const std::string&, const std::string&>(),
           arg("samplingRate"), arg("reportingRate"), arg("callback").none(),
           arg("properties").none() = nb::none(), arg("name") = "", arg("regex") = "",
           "callback(report) gets each text, in a thread of the library. Programs and sets whose "
           "whole name matches the ECMAScript expression are profiled until they go.")
      .def("start", &StreamObject::start, "QS_BUSY while it is started.")
      .def("stop", &StreamObject::stop,
           "Queues a last report, of what was collected since the one before.")
      .def("addProgram", &StreamObject::add, arg("program"),
           "Profiles a Program or an InferenceSet too, also while started, until it goes.")
      .def("removeProgram", &StreamObject::remove, arg("program"),
           "QS_INVAL where it is not profiled.")
      .def("flushReports", &StreamObject::flush,
           "Returns once all reports that are queued were delivered. QS_INVAL in the callback.");
}

}  // namespace

void bind_profiling(nb::module_& module) {
  bind_count(module);
  bind_stream(module);
}

void close_profiling() {
  std::vector<std::shared_ptr<ProfilerState>> all;
  if (const Entered lock; lock) {
    for (const auto& one : known())
      if (auto state = one.lock()) all.push_back(std::move(state));
  }
  if (all.empty()) return;
  try {
    // In a thread of its own, so that a callback that never returns cannot keep the process from
    // ending. A bare one: this module includes nothing of the library's own sources.
    std::promise<void> flushed;
    const std::future<void> done = flushed.get_future();
    std::thread([all, flushed = std::move(flushed)]() mutable {
      for (const auto& state : all)
        if (state->stream != nullptr) static_cast<void>(state->stream->flushReports());
      flushed.set_value();
    }).detach();
    static_cast<void>(done.wait_for(kFlushTimeout));
  } catch (const std::system_error&) {
    // No thread: what is queued is lost.
  }
  // Nothing waits for a callback any more: from here on none may begin.
  for (const auto& state : all) state->function->silent = true;
  // Given up with the lock, in whatever order the interpreter takes them.
  if (const Entered lock; lock) all.clear();
}

}  // namespace corelane::qaic_python
