#include "adapters/python/py_session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>

#include "adapters/python/py_arrays.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_future.h"
#include "adapters/python/py_gate.h"
#include "adapters/python/py_once.h"
#include "adapters/python/py_options.h"
#include "base/later.h"

namespace corelane::python {

namespace nb = nanobind;

NativeSession::NativeSession(Session made) : session(std::move(made)), inputs(session.inputs()) {}

CallOptions NativeSession::options_of(nb::handle outputs, nb::handle terms) const {
  return tags->apply(read_call(outputs, terms));
}

NativeSession::~NativeSession() {
  const Released released;
  session = {};
}

namespace {

/// A failure of a call; Ctrl-C left an exception behind.
[[noreturn]] void raise_call(const Status& status) {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  raise(status);
}

template <class F>
auto call_released(F&& call) {
  auto result = [&] {
    const Released released;
    return call();
  }();
  if (!result) raise_call(result.error());
  return std::move(*result);
}

const TensorDesc& desc_of(const NativeSession& self, std::string_view name, std::size_t index) {
  for (const TensorDesc& desc : self.inputs) {
    if (desc.name == name) return desc;
  }
  static const TensorDesc none;
  return name.empty() && index < self.inputs.size() ? self.inputs[index] : none;
}

void add_item(const NativeSession& self, HeldFeed& held, std::string_view name, nb::handle value) {
  ArrayView array = read_array(value, desc_of(self, name, held.feed.size()));
  held.feed.push_back({name, std::move(array.view), std::move(array.keep_alive)});
}

std::string_view text_of(nb::handle name) {
  Py_ssize_t size = 0;
  if (!PyUnicode_Check(name.ptr())) throw nb::type_error("names of inputs are strings");
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<std::size_t>(size)};
}

void make_session(NativeSession* self, nb::handle source, const nb::dict& given,
                  const NativeSession* weights_from) {
  const SessionOptions options = read_options(given);
  const Session* weights = weights_from == nullptr ? nullptr : &weights_from->session;
  if (PyUnicode_Check(source.ptr())) {
    const std::filesystem::path path(text_of(source));
    new (self)
        NativeSession(call_released([&] { return Session::create(path, options, weights); }));
    return;
  }
  Py_buffer buffer{};
  if (PyObject_GetBuffer(source.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const ByteSpan bytes(static_cast<const std::byte*>(buffer.buf),
                       static_cast<std::size_t>(buffer.len));
  auto made = [&] {
    const Released released;
    return Session::create(bytes, options, weights);
  }();
  PyBuffer_Release(&buffer);
  new (self) NativeSession(value_of(std::move(made)));
}

nb::list run(NativeSession& self, nb::handle outputs, nb::handle feed, nb::handle terms,
             bool batch) {
  const HeldFeed held = read_feed(self, feed);
  const CallOptions options = self.options_of(outputs, terms);
  return make_outputs(call_released([&] {
    return batch ? self.session.run_batch(held.feed, options)
                 : self.session.run(held.feed, options);
  }));
}

std::uint64_t run_async(NativeSession& self, nb::handle outputs, nb::handle feed,
                        nb::object callback, nb::handle terms, bool batch) {
  const HeldFeed held = read_feed(self, feed);
  const CallOptions options = self.options_of(outputs, terms);
  RunCallback done = [call = OutputsCallback(std::move(callback))](
                         std::uint64_t, Result<Outputs> result) { call(result); };
  return call_released([&] {
    return batch ? self.session.run_batch_async(held.feed, std::move(done), options)
                 : self.session.run_async(held.feed, std::move(done), options);
  });
}

nb::object try_run_async(NativeSession& self, nb::handle outputs, nb::handle feed,
                         nb::object callback, nb::handle terms) {
  const HeldFeed held = read_feed(self, feed);
  const CallOptions options = self.options_of(outputs, terms);
  RunCallback done = [call = OutputsCallback(std::move(callback))](
                         std::uint64_t, Result<Outputs> result) { call(result); };
  const auto task = call_released(
      [&] { return self.session.try_run_async(held.feed, std::move(done), options); });
  return task ? nb::object(nb::int_(*task)) : nb::none();
}

Future submit(NativeSession& self, nb::handle outputs, nb::handle feed, nb::handle terms,
              bool batch) {
  const HeldFeed held = read_feed(self, feed);
  const CallOptions options = self.options_of(outputs, terms);
  return call_released([&] {
    return batch ? self.session.submit_batch(held.feed, options)
                 : self.session.submit(held.feed, options);
  });
}

nb::object run_pipeline(NativeSession& self, nb::handle outputs, nb::handle feed, std::size_t depth,
                        bool reset, nb::handle terms) {
  const HeldFeed held = read_feed(self, feed);
  const CallOptions options = self.options_of(outputs, terms);
  const auto result =
      call_released([&] { return self.session.run_pipeline(held.feed, depth, reset, options); });
  return result ? nb::object(make_outputs(*result)) : nb::none();
}

/// One entry for each pending call: its outputs, or the error.
nb::list flush(NativeSession& self) {
  std::vector<Result<Outputs>> results;
  {
    const Released released;
    results = self.session.flush(&interrupted);
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  nb::list list;
  for (const Result<Outputs>& result : results) {
    list.append(result ? nb::object(make_outputs(*result)) : status_error(result.error()));
  }
  return list;
}

Duration seconds(std::optional<double> value) {
  if (!value || *value > 3e9) return Duration::max();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(*value, 0.0)));
}

void close(NativeSession& self, std::optional<double> timeout) {
  Status status;
  {
    const Released released;
    status = self.session.close(seconds(timeout), &interrupted);
  }
  if (!status.ok()) raise_call(status);
}

bool wait_callbacks(NativeSession& self, std::optional<double> timeout) {
  const Released released;
  return self.session.wait_callbacks(later(self.session.clock()->now(), seconds(timeout)));
}

bool is_mapping(nb::handle value) {
  static constinit std::atomic<const nb::object*> known{nullptr};
  const nb::object& abstract = made_once(known, [] {
    return new nb::object(nb::module_::import_("collections.abc").attr("Mapping"));
  });
  return parked_at_end([&] { return nb::isinstance(value, abstract); });
}

}  // namespace

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
      add_item(self, held, text_of(held.names.back()), PyTuple_GET_ITEM(item.ptr(), 1));
    }
  } else if (PyList_Check(feed.ptr()) || PyTuple_Check(feed.ptr())) {
    for (const nb::handle value : feed) add_item(self, held, {}, value);
  } else if (feed.is_none()) {
    throw nb::type_error(
        "input_feed: a dict of arrays by name, a list of them in order or one array is needed, "
        "None "
        "was given");
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
