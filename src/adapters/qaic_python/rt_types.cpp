#include "adapters/qaic_python/rt_types.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <initializer_list>
#include <map>
#include <vector>

#include "adapters/qaic_python/rt_object.h"
#include "adapters/qaic_python/rt_text.h"

namespace corelane::qaic_python {

namespace nb = nanobind;

namespace {

template <class E>
struct EnumRow {
  const char* name;
  E value;
  const char* doc;
};

/// An IntEnum; its names stand in the module too, as they do in C.
template <class E>
void bind_enum(nb::module_& module, const char* name, const char* doc,
               std::initializer_list<EnumRow<E>> rows) {
  nb::enum_<E> made(module, name, nb::is_arithmetic(), doc);
  std::map<E, const char*> first;
  for (const EnumRow<E>& row : rows)
    if (first.emplace(row.value, row.name).second) made.value(row.name, row.value, row.doc);
  made.export_values();
  for (const EnumRow<E>& row : rows) {
    // Compared as pointers: `first` has them from these rows.
    if (first[row.value] == row.name) continue;
    // A second name of one value.
    const nb::object member = made.attr(first[row.value]);
    nb::setattr(made, row.name, member);
    nb::setattr(module, row.name, member);
  }
}

void also_named(nb::module_& module, const char* name, const char* other) {
  nb::setattr(module, other, module.attr(name));
}

template <class T>
class StructBinder {
 public:
  StructBinder(nb::module_& module, const char* name, const char* doc) : made_(module, name, doc) {
    made_.def(nb::init<>());
  }

  template <auto Field>
  StructBinder& field(const char* name, const char* doc) {
    using Type = std::remove_reference_t<decltype(std::declval<T&>().*Field)>;
    // Arrays can only be read: Python gets a copy of them, in which a change would be lost.
    if constexpr (!std::is_array_v<Type>) {
      made_.def_rw(name, Field, doc);
    } else if constexpr (std::is_same_v<std::remove_extent_t<Type>, char>) {
      made_.def_prop_ro(
          name,
          [](const T& self) {
            const char* const text = self.*Field;
            return text_of({text, strnlen(text, std::extent_v<Type>)});
          },
          doc);
    } else {
      made_.def_prop_ro(
          name,
          [](const T& self) {
            return std::vector<std::remove_extent_t<Type>>(std::begin(self.*Field),
                                                           std::end(self.*Field));
          },
          doc);
    }
    return *this;
  }

 private:
  nb::class_<T> made_;
};

template <class T>
StructBinder<T> bind_struct(nb::module_& module, const char* name, const char* doc) {
  return {module, name, doc};
}

void bind_table(nb::module_& module) {
#include "qaicrt_table.inc"
}

template <auto Field>
constexpr auto reads = [](const ProgramProperties& self) { return self.values.*Field; };
template <auto Field>
constexpr auto writes =
    [](ProgramProperties& self, std::uint32_t value) { self.values.*Field = value; };

void bind_properties(nb::module_& module) {
  using Values = QAicProgramProperties;
  // One property in two spellings.
  const auto timeout = [](const ProgramProperties& self) {
    return self.values.SubmitRetryTimeoutMs;
  };
  const auto set_timeout = [](ProgramProperties& self, std::uint32_t value) {
    self.values.SubmitRetryTimeoutMs = value;
  };
  nb::class_<ProgramProperties>(module, "QAicProgramProperties",
                                "How a program is made, and how long its inferences may take.")
      .def(nb::init<>())
      .def_prop_rw("selectMask", reads<&Values::selectMask>, writes<&Values::selectMask>,
                   "Bits of QAicProgramPropertiesBitfields.")
      .def_prop_rw("SubmitNumRetries", reads<&Values::SubmitNumRetries>,
                   writes<&Values::SubmitNumRetries>, "Attempts after the first.")
      .def_prop_rw("SubmitRetryTimeoutMs", timeout, set_timeout,
                   "Milliseconds of one attempt; 0: 5000.")
      .def_prop_rw("dataPathTimeoutMs", timeout, set_timeout, "The same.")
      .def_prop_rw(
          "devMapping", [](const ProgramProperties& self) { return self.dev_mapping; },
          [](ProgramProperties& self, const nb::object& text) {
            self.dev_mapping = text.is_none() ? std::string()
                                              : value_of<std::string>(text, "devMapping is a text");
          },
          nb::arg("text").none(), "Devices of a program for several, as \"0:1:2\"; \"\": none.");
  also_named(module, "QAicProgramProperties", "QAicProgramProperties_t");
  nb::class_<SetProperties>(module, "InferenceSetProperties", "How an InferenceSet is made.")
      .def(nb::init<>())
      .def_rw("programProperties", &SetProperties::program, "Of each of its activations.")
      .def_rw("queueProperties", &SetProperties::queue, "")
      .def_rw("name", &SetProperties::name, "For messages.")
      .def_rw("id", &SetProperties::id, "The user's number of it.");
}

/// Names that clients of the Python module write and those of C do not.
void bind_other_names(nb::module_& module) {
  also_named(module, "QAicBufferIoTypeEnum", "BufferIoTypeEnum");
  also_named(module, "QAicBufferDataTypeEnum", "BufferDataTypeEnum");
  const nb::object made = nb::module_::import_("enum").attr("IntEnum")(
      "QAicDeviceType", nb::make_tuple(nb::make_tuple("QAIC_DEVICE_TYPE_DEFAULT", 1)),
      nb::arg("module") = "corelane.qaicrt");
  module.attr("QAicDeviceType") = made;
  module.attr("QAIC_DEVICE_TYPE_DEFAULT") = made.attr("QAIC_DEVICE_TYPE_DEFAULT");
}

}  // namespace

void bind_types(nb::module_& module) {
  bind_table(module);
  bind_properties(module);
  bind_other_names(module);
}

}  // namespace corelane::qaic_python
