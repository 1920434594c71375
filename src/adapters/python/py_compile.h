/// Compiling, describing and looking inside a model, for corelane.compile() and the RKNN toolkit.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "corelane/program/description.h"

namespace corelane::python {

/// A path (str), or anything that shows its bytes, held for as long as this lives.
class ModelSource {
 public:
  /// Raises TypeError for anything else.
  explicit ModelSource(nanobind::handle source);
  ~ModelSource();
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  bool is_path() const noexcept { return buffer_.obj == nullptr; }
  const std::string& path() const noexcept { return path_; }
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  std::string path_;
  Py_buffer buffer_{};
};

/// Inputs, outputs, shape sets and provenance as plain values.
nanobind::dict show_description(const ProgramDescription& description);
nanobind::list show_entries(const std::vector<IoEntry>& entries);

void bind_compile(nanobind::module_& module);
void bind_probe(nanobind::module_& module);

}  // namespace corelane::python
