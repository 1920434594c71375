#include "adapters/qaic_python/rt_errors.h"

#include <array>
#include <exception>
#include <string>
#include <typeinfo>

#include "QAicApi.hpp"
#include "adapters/qaic_python/rt_text.h"

namespace corelane::qaic_python {

namespace nb = nanobind;

namespace {

/// One class of the module; `base` is its place in kClasses.
struct ErrorClass {
  const char* name;
  int base;
  const char* doc;
};
constexpr int kBase = 0, kInit = 1, kRuntime = 2, kNullPtr = 3;
constexpr int kCoreInit = 4, kCoreRuntime = 5, kCoreNullPtr = 6;
/// A base comes before those that derive from it: bind_errors() makes them in this order.
constexpr std::array<ErrorClass, 7> kClasses{{
    {"QAicException", -1, "The base: `status` is the code of the C function."},
    {"ExceptionInit", kBase, "An object could not be made."},
    {"ExceptionRuntime", kBase, "An object could not do what was asked of it."},
    {"ExceptionNullPtr", kBase, "For except clauses of clients; never raised."},
    {"CoreExceptionInit", kInit, "An object could not be made; the text begins with its class."},
    {"CoreExceptionRuntime", kRuntime, "A method failed that returns no code."},
    {"CoreExceptionNullPtr", kNullPtr, "For except clauses of clients; never raised."},
}};

/// The classes, which live as long as the process.
std::array<PyObject*, kClasses.size()> exception_types{};

void raise(int place, const qaic::Exception& thrown) {
  const nb::object error =
      nb::handle(exception_types[static_cast<std::size_t>(place)])(text_of(thrown.msg()));
  error.attr("status") = nb::cast(thrown.status());
  PyErr_SetObject(error.type().ptr(), error.ptr());
}

/// The most derived classes first, since a clause for a base would catch them too. What is not
/// caught here goes on to nanobind's own translators.
void translate(const std::exception_ptr& pointer, void* /*unused*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const qaic::rt::CoreExceptionInit& thrown) {
    raise(kCoreInit, thrown);
  } catch (const qaic::rt::CoreExceptionRuntime& thrown) {
    raise(kCoreRuntime, thrown);
  } catch (const qaic::rt::CoreExceptionNullPtr& thrown) {
    raise(kCoreNullPtr, thrown);
  } catch (const qaic::ExceptionInit& thrown) {
    raise(kInit, thrown);
  } catch (const qaic::ExceptionRuntime& thrown) {
    raise(kRuntime, thrown);
  } catch (const qaic::ExceptionNullPtr& thrown) {
    raise(kNullPtr, thrown);
  } catch (const qaic::Exception& thrown) {
    raise(kBase, thrown);
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError,
                    "an element is of another kind: a QIDList holds numbers of devices, a "
                    "BufferDimensionsVecRef pairs of bytes of an element and dimensions");
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    const ErrorClass& row = kClasses[i];
    const std::string name = std::string("corelane.qaicrt.") + row.name;
    PyObject* const base =
        row.base < 0 ? PyExc_RuntimeError : exception_types[static_cast<std::size_t>(row.base)];
    exception_types[i] = PyErr_NewExceptionWithDoc(name.c_str(), row.doc, base, nullptr);
    if (exception_types[i] == nullptr) throw nb::python_error();
    module.attr(row.name) = nb::borrow(exception_types[i]);
  }
  // The class has it too, so that an exception that a client raises itself has a status.
  nb::handle(exception_types[0]).attr("status") = nb::cast(QS_ERROR);
  nb::register_exception_translator(&translate);
}

void refuse(const char* name, const std::string& why, QStatus status) {
  throw qaic::rt::CoreExceptionInit(name, why, status);
}

}  // namespace corelane::qaic_python
