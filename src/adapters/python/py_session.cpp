#include "adapters/python/py_session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_arrays.h"
#include "adapters/python/py_compile.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_future.h"
#include "adapters/python/py_once.h"
#include "adapters/python/py_options.h"
#include "adapters/python/py_values.h"
#include "base/later.h"
#include "base/leaked.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

NativeSession::~NativeSession() {
  const Released released;
  session = {};
}

// A name that the model does not have is not an error here: the session lists the names it has.
const TensorDesc& input_desc(const std::vector<TensorDesc>& inputs, std::string_view name,
                             std::size_t index) {
  for (const TensorDesc& desc : inputs)
    if (desc.name == name) return desc;
  static Leaked<const TensorDesc> none;
  return name.empty() && index < inputs.size() ? inputs[index] : *none;
}

namespace {

/// The inputs of one call. `names` keeps the text that the feed points to.
struct HeldFeed {
  Feed feed;
  std::vector<nb::object> names;
};

/// None by name leaves an input out, as in onnxruntime; for an optional input it is the empty one.
bool is_absent(const TensorDesc& desc, nb::handle value) {
  return value.is_none() && (desc.value.empty() || desc.value.kind() != ValueKind::kOptional);
}

void add_item(const NativeSession& self, HeldFeed& held, std::string_view name, nb::handle value) {
  const TensorDesc& desc = input_desc(self.inputs, name, held.feed.size());
  if (!name.empty() && is_absent(desc, value)) return;
  ArrayView array = read_array(value, desc);
  held.feed.push_back({name, std::move(array.view), std::move(array.keep_alive)});
}

/// Anything registered as a mapping, which may be a class of the user with code of its own.
bool is_mapping(nb::handle value) {
  static constinit std::atomic<const nb::object*> known{nullptr};
  const nb::object& abstract = made_once(known, [] {
    return new nb::object(nb::module_::import_("collections.abc").attr("Mapping"));
  });
  return parked_at_end([&] { return nb::isinstance(value, abstract); });
}

/// From a dict of arrays by name, a list or tuple of arrays in order, or one array.
HeldFeed read_feed(const NativeSession& self, nb::handle feed) {
  HeldFeed held;
  if (PyDict_Check(feed.ptr())) {
    const auto size = static_cast<std::size_t>(PyDict_Size(feed.ptr()));
    held.feed.reserve(size);
    held.names.reserve(size);
    // Reading an array may run Python code, so the dict is not walked in place.
    const nb::object items = nb::steal(PyDict_Items(feed.ptr()));
    for (const nb::handle item : items) {
      held.names.push_back(nb::borrow(PyTuple_GET_ITEM(item.ptr(), 0)));
      const std::string_view name = utf8(held.names.back(), "names of inputs");
      add_item(self, held, name, PyTuple_GET_ITEM(item.ptr(), 1));
    }
  } else if (PyList_Check(feed.ptr()) || PyTuple_Check(feed.ptr())) {
    for (const nb::handle value : feed) add_item(self, held, {}, value);
  } else if (feed.is_none()) {
    throw nb::type_error(
        "input_feed: a dict of arrays by name, a list of them in order or one array is needed, "
        "None was given");
  } else if (PyObject_CheckBuffer(feed.ptr()) == 0 && is_mapping(feed)) {
    PyObject* const dict = parked_at_end(
        [&] { return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyDict_Type), feed.ptr()); });
    if (dict == nullptr) throw nb::python_error();
    return read_feed(self, nb::steal(dict));
  } else {
    add_item(self, held, {}, feed);
  }
  return held;
}

void make_session(NativeSession* self, nb::handle model, const nb::dict& given,
                  const NativeSession* weights_from) {
  // Read with the lock; loading, which takes long, goes without it.
  const SessionOptions options = read_options(given);
  const Session* weights = weights_from == nullptr ? nullptr : &weights_from->session;
  const ModelSource source(model);
  new (self) NativeSession(value_of(without_lock([&] {
    return source.is_path() ? Session::create(source.path(), options, weights)
                            : Session::create(source.bytes(), options, weights);
  })));
}

/// What all ways to run have in common. Lives until the call returns: asynchronous ones copy.
struct Call {
  Call(const NativeSession& self, nb::handle outputs, nb::handle feed, nb::handle terms)
      : held(read_feed(self, feed)), options(self.tags->apply(read_call(outputs, terms))) {}
  const HeldFeed held;
  const CallOptions options;
};

RunCallback run_callback(nb::object callback) {
  return [call = OutputsCallback(std::move(callback))](
             std::uint64_t, const Result<Outputs>& result) { call(result); };
}

// Everything below: arrays are read with the lock, the call is made without it, and the outputs are
// wrapped with it again.
nb::list run(NativeSession& self, nb::handle outputs, nb::handle feed, nb::handle terms,
             bool batch) {
  const Call call(self, outputs, feed, terms);
  return make_outputs(value_of(without_lock([&] {
    return batch ? self.session.run_batch(call.held.feed, call.options)
                 : self.session.run(call.held.feed, call.options);
  })));
}

std::uint64_t run_async(NativeSession& self, nb::handle outputs, nb::handle feed,
                        nb::object callback, nb::handle terms, bool batch) {
  const Call call(self, outputs, feed, terms);
  RunCallback done = run_callback(std::move(callback));
  return value_of(without_lock([&] {
    return batch ? self.session.run_batch_async(call.held.feed, std::move(done), call.options)
                 : self.session.run_async(call.held.feed, std::move(done), call.options);
  }));
}

std::optional<std::uint64_t> try_run_async(NativeSession& self, nb::handle outputs, nb::handle feed,
                                           nb::object callback, nb::handle terms) {
  const Call call(self, outputs, feed, terms);
  RunCallback done = run_callback(std::move(callback));
  return value_of(without_lock(
      [&] { return self.session.try_run_async(call.held.feed, std::move(done), call.options); }));
}

// The futures of Python are made over this one in _ort/futures.py.
Future submit(NativeSession& self, nb::handle outputs, nb::handle feed, nb::handle terms,
              bool batch) {
  const Call call(self, outputs, feed, terms);
  return value_of(without_lock([&] {
    return batch ? self.session.submit_batch(call.held.feed, call.options)
                 : self.session.submit(call.held.feed, call.options);
  }));
}

std::optional<Future> try_submit(NativeSession& self, nb::handle outputs, nb::handle feed,
                                 nb::handle terms) {
  const Call call(self, outputs, feed, terms);
  return value_of(
      without_lock([&] { return self.session.try_submit(call.held.feed, call.options); }));
}

nb::object run_pipeline(NativeSession& self, nb::handle outputs, nb::handle feed, std::size_t depth,
                        bool reset, nb::handle terms) {
  const Call call(self, outputs, feed, terms);
  const auto result = value_of(without_lock(
      [&] { return self.session.run_pipeline(call.held.feed, depth, reset, call.options); }));
  return result ? nb::object(make_outputs(*result)) : nb::none();
}

/// One entry for each pending call: its outputs, or the error.
nb::list flush(NativeSession& self) {
  // An interrupted wait returns nothing, and its signal handler has raised.
  const auto results = without_lock([&] { return self.session.flush(&interrupted); });
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  nb::list list;
  for (const Result<Outputs>& result : results)
    list.append(result ? nb::object(make_outputs(*result)) : status_error(result.error()));
  return list;
}

/// None waits without end, and so does what 64 bits of nanoseconds may not hold.
Duration seconds(std::optional<double> value) {
  if (!value || *value > 3e9) return Duration::max();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(*value, 0.0)));
}

void close(NativeSession& self, std::optional<double> timeout) {
  check(without_lock([&] { return self.session.close(seconds(timeout), &interrupted); }));
}

bool wait_callbacks(NativeSession& self, std::optional<double> timeout) {
  return without_lock([&] {
    // On the device's clock, which tests replace.
    return self.session.wait_callbacks(later(self.session.clock()->now(), seconds(timeout)));
  });
}

}  // namespace

nb::list make_outputs(const Outputs& outputs) {
  nb::list list;
  for (const Tensor& output : outputs) list.append(make_array(output));
  return list;
}

void bind_session(nb::module_& module) {
  using nb::arg;
  nb::class_<NativeSession> session(module, "Session");
  session
      .def("__init__", &make_session, arg("source"), arg("options"),
           arg("weights_from").none() = nb::none())
      .def("run", &run, arg("outputs").none(), arg("feed").none(), arg("terms").none() = nb::none(),
           arg("batch") = false)
      .def("run_async", &run_async, arg("outputs").none(), arg("feed").none(), arg("callback"),
           arg("terms").none() = nb::none(), arg("batch") = false)
      .def("try_run_async", &try_run_async, arg("outputs").none(), arg("feed").none(),
           arg("callback"), arg("terms").none() = nb::none())
      .def("submit", &submit, arg("outputs").none(), arg("feed").none(),
           arg("terms").none() = nb::none(), arg("batch") = false)
      .def("try_submit", &try_submit, arg("outputs").none(), arg("feed").none(),
           arg("terms").none() = nb::none())
      .def("run_pipeline", &run_pipeline, arg("outputs").none(), arg("feed").none(), arg("depth"),
           arg("reset"), arg("terms").none() = nb::none())
      .def("flush", &flush)
      .def("close", &close, arg("timeout").none() = nb::none())
      .def_prop_ro("closed", [](const NativeSession& self) { return self.session.closed(); })
      .def("number_calls",
           [](NativeSession& self, std::uint64_t first) { self.tags->first.store(first); })
      .def("wait_callbacks", &wait_callbacks, arg("timeout").none() = nb::none());
  bind_description(session);
}

}  // namespace corelane::python
