/// Enumerations and structures of the C surface, which the table of names and values makes.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace corelane::qaic_python {

/// QAicProgramProperties with memory for its text.
struct ProgramProperties {
  QAicProgramProperties values{};
  std::string dev_mapping;

  /// As the classes take it; valid as long as this stays as it is.
  QAicProgramProperties get() const {
    QAicProgramProperties given = values;
    given.devMapping = dev_mapping.empty() ? nullptr : dev_mapping.c_str();
    return given;
  }
};

/// Properties of an InferenceSet.
struct SetProperties {
  ProgramProperties program;
  QAicQueueProperties queue{};
  std::string name = "InferenceSet";
  std::uint32_t id = 0;

  /// As the classes take it; valid as long as this stays as it is.
  qaic::rt::InferenceSetProperties get() const {
    qaic::rt::InferenceSetProperties given;
    given.programProperties = program.get();
    given.queueProperties = queue;
    given.name = name;
    given.id = id;
    return given;
  }
};

void bind_types(nanobind::module_& module);

}  // namespace corelane::qaic_python
