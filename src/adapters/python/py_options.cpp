#include "adapters/python/py_options.h"

#include <nanobind/stl/string.h>
#include <strings.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_operators.h"
#include "adapters/python/py_values.h"
#include "base/trust/secure_environment.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

OutputForm output_form(const std::string& name) {
  if (name == "declared") return OutputForm::kDeclared;
  if (name == "float") return OutputForm::kFloat;
  if (name == "raw") return OutputForm::kRaw;
  raise(error(Code::kInvalidArgument, "output_form '{}' is none of declared, float and raw", name));
}

const char* output_form_name(OutputForm form) noexcept {
  return form == OutputForm::kFloat ? "float" : form == OutputForm::kRaw ? "raw" : "declared";
}

device::Precision precision(const std::string& name) {
  if (name == "f32") return device::Precision::kF32;
  if (name == "f16") return device::Precision::kF16;
  if (name == "bf16") return device::Precision::kBF16;
  raise(error(Code::kInvalidArgument, "precision '{}' is none of f32, f16 and bf16", name));
}

/// -1 stands for no limit.
void take_limit(const nb::dict& given, const char* key, std::int64_t& target) {
  with<std::int64_t>(given, key, [&](std::int64_t v) { target = v == -1 ? kUnlimited : v; });
}

void take_time(const nb::dict& given, const char* key, Duration& target) {
  with<std::int64_t>(given, key, [&](std::int64_t ms) {
    // Ten years: more would overflow where it is added to a point of time.
    constexpr std::int64_t kLongest =
        std::chrono::hours(24 * 365 * 10) / std::chrono::milliseconds(1);
    target = std::chrono::milliseconds(std::min(ms, kLongest));
  });
}

/// The keys of LoadOptions; those of the session are in read_options().
void read_load_options(const nb::dict& given, LoadOptions& load) {
  take(given, "device", load.device);
  load.timeout_option = "run_timeout_ms";
  load.weights_option = "weights_from";
  take(given, "timeout_option", load.timeout_option);
  take(given, "fast_math", load.fast_math);
  take(given, "engine", load.engine);
  take(given, "time_engines", load.time_engines);
  take(given, "static_forms", load.static_forms);
  take_time(given, "load_timeout_ms", load.load_timeout);
  take(given, "load_memory", load.load_memory);
  take(given, "cache", load.cache);
  take(given, "part", load.part);
  with<std::string>(given, "data_root",
                    [&](const std::string& folder) { load.import.external_data_root = folder; });
  with<std::string>(given, "precision",
                    [&](const std::string& name) { load.precision = precision(name); });
  with<nb::dict>(given, "dims", [&](const nb::dict& dims) {
    for (const auto& [name, size] : dims)
      load.import.dims[nb::cast<std::string>(name)] = nb::cast<std::int64_t>(size);
  });
  with<nb::dict>(given, "custom_operators", [&](const nb::dict& functions) {
    // The functions serve the runs; the types tell the import which nodes are not unknown.
    load.host_operators = read_operators(functions);
    for (const nb::handle type : functions.keys())
      load.import.custom_operators.push_back(nb::cast<std::string>(type));
  });
}

/// What the variable of the original package says; nullopt where it is not set, or ours decides.
std::optional<bool> perf_from_alias() {
  const char* const value = environment("ZTU_EZRKNN_ASYNC_PRINT_PERF");
  if (value == nullptr || environment("CORELANE_PRINT_PERF") != nullptr) return std::nullopt;
  for (const char* on : {"1", "true", "on", "yes"})
    if (strcasecmp(value, on) == 0) return true;
  return false;
}

/// As `threading` says; since the module was made.
unsigned long main_thread = 0;

/// True where the calling thread may be the one in which the interpreter calls signal handlers.
bool may_be_interrupted() {
  // In a forked child it is the thread that forked, the first one of the process. So it is where
  // another thread was the first to import `threading`, and stands there as the main one.
  return main_thread == PyThread_get_thread_ident() || gettid() == getpid();
}

}  // namespace

bool interrupted() {
  const Entered lock;
  return !lock || PyErr_CheckSignals() != 0;
}

SessionOptions read_options(const nb::dict& given) {
  SessionOptions options;
  read_load_options(given, options.load);
  with<nb::sequence>(given, "schedule", [&](const nb::sequence& cores) {
    for (const nb::handle core : cores) options.schedule.push_back(nb::cast<std::size_t>(core));
  });
  with<std::string>(given, "tp_mode", [&](const std::string& text) {
    options.tp_mode = value_of(parse_tp_mode(text));
  });
  with<std::string>(given, "placement", [&](const std::string& text) {
    options.placement = value_of(parse_placement(text));
  });
  with<std::string>(given, "layout", [&](const std::string& text) {
    options.layout = value_of(parse_input_layout(text));
  });
  with<std::string>(given, "output_form",
                    [&](const std::string& name) { options.output_form = output_form(name); });
  with<bool>(given, "lenient", [&](bool on) {
    options.input_rules = on ? InputRules::kLenient : InputRules::kStrict;
  });
  // The option has the last word over the variables.
  options.print_perf = perf_from_alias();
  with<bool>(given, "print_perf", [&](bool on) { options.print_perf = on; });
  take(given, "threads_per_core", options.threads_per_core);
  take(given, "enable_pacing", options.enable_pacing);
  take(given, "disable_dup_context", options.disable_dup_context);
  take(given, "sequential_callbacks", options.sequential_callbacks);
  take(given, "normalize", options.normalize);
  take_limit(given, "max_queue_size", options.max_queue_size);
  take_limit(given, "max_pending_callbacks", options.max_pending_callbacks);
  take_time(given, "submit_timeout_ms", options.submit_timeout);
  take_time(given, "run_timeout_ms", options.run_timeout);
  return options;
}

nb::dict show_options(const SessionOptions& options) {
  // The inverse of take_limit().
  const auto limit = [](std::int64_t n) { return n == kUnlimited ? std::int64_t{-1} : n; };
  nb::dict shown;
  nb::list schedule;
  for (const std::size_t core : options.schedule) schedule.append(core);
  // Either a schedule or a mode is in force; the other key is absent.
  if (!options.schedule.empty()) shown["schedule"] = schedule;
  if (options.tp_mode) shown["tp_mode"] = text(tp_mode_name(*options.tp_mode));
  shown["threads_per_core"] = options.threads_per_core;
  shown["placement"] = text(placement_name(options.placement));
  shown["enable_pacing"] = options.enable_pacing;
  shown["disable_dup_context"] = options.disable_dup_context;
  shown["max_queue_size"] = limit(options.max_queue_size);
  shown["submit_timeout_ms"] = options.submit_timeout / std::chrono::milliseconds(1);
  shown["run_timeout_ms"] = options.run_timeout / std::chrono::milliseconds(1);
  shown["sequential_callbacks"] = options.sequential_callbacks;
  shown["max_pending_callbacks"] = limit(options.max_pending_callbacks);
  shown["layout"] = text(input_layout_name(options.layout));
  shown["output_form"] = nb::str(output_form_name(options.output_form));
  shown["normalize"] = options.normalize;
  shown["precision"] = text(device::precision_name(options.load.precision));
  shown["fast_math"] = options.load.fast_math;
  shown["engine"] = text(options.load.engine.empty() ? "auto" : options.load.engine);
  shown["time_engines"] = options.load.time_engines;
  shown["static_forms"] = options.load.static_forms;
  shown["load_timeout_ms"] = options.load.load_timeout / std::chrono::milliseconds(1);
  shown["load_memory"] = options.load.load_memory;
  shown["cache"] = options.load.cache;
  if (!options.load.part.empty()) shown["part"] = text(options.load.part);
  nb::list operators;
  for (const std::string& type : options.load.import.custom_operators) operators.append(text(type));
  if (!operators.empty()) shown["custom_operators"] = operators;
  return shown;
}

CallOptions read_call(nb::handle outputs, nb::handle terms) {
  CallOptions options;
  if (!outputs.is_none()) {
    // A str is a sequence too: its letters would be taken for names.
    if (nb::isinstance<nb::str>(outputs))
      throw nb::type_error("output_names is a list of names, or None for all; a str was given");
    for (const nb::handle name : outputs)
      options.outputs.emplace_back(utf8(name, "names of outputs"));
  }
  if (!terms.is_none()) {
    const auto& given = nb::cast<const Terms&>(terms);
    options.control = given.control;
    options.timeout = std::chrono::microseconds(given.timeout_us);
    options.submit_timeout = std::chrono::microseconds(given.submit_timeout_us);
    options.priority = given.priority;
    if (given.abandoned != nullptr) {
      options.interrupted = [abandoned = given.abandoned] {
        return abandoned->load() || interrupted();
      };
    }
  }
  // Without it Ctrl-C would wait for the end of the call. Python raises it in the main thread
  // alone: a call of another thread needs nobody who looks for signals while it runs.
  if (!options.interrupted && may_be_interrupted()) options.interrupted = &interrupted;
  return options;
}

void bind_options(nb::module_& module) {
  const nb::object threading = nb::module_::import_("threading");
  main_thread = nb::cast<unsigned long>(threading.attr("main_thread")().attr("ident"));
  nb::class_<Terms>(module, "Terms")
      .def(nb::init<>())
      .def_rw("timeout_us", &Terms::timeout_us)
      .def_rw("submit_timeout_us", &Terms::submit_timeout_us)
      .def_rw("priority", &Terms::priority)
      .def("terminate",
           [](Terms& terms) {
             // A copy: another thread may drop the Terms while this one has no lock.
             CallControl control = terms.control;
             without_lock([&] { control.terminate(); });
           })
      .def("of_one_call",
           [](const Terms& terms) {
             Terms own = terms;  // Terminated along with these.
             own.abandoned = std::make_shared<std::atomic<bool>>(false);
             return own;
           })
      .def("abandon",
           [](const Terms& terms) {
             if (terms.abandoned != nullptr) terms.abandoned->store(true);
           })
      .def("reset", [](Terms& terms) { terms.control.reset(); })
      .def_prop_ro("terminated", [](const Terms& terms) { return terms.control.terminated(); });
  module.def("parse_schedule", [](const std::string& text) {
    nb::list cores;
    for (const std::size_t core : value_of(parse_schedule(text))) cores.append(core);
    return cores;
  });
  module.def("parse_tp_mode", [](const std::string& text) {
    const std::string_view name = tp_mode_name(value_of(parse_tp_mode(text)));
    return std::string(name);
  });
}

}  // namespace corelane::python
