/// InferenceVector: the buffers of one inference, as a list that Python code may change.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "adapters/qaic_python/rt_buffer.h"

namespace corelane::qaic_python {

class VectorObject {
 public:
  explicit VectorObject(qaic::rt::BufferMappings mappings, qaic::rt::shInferenceVector made);

  const qaic::rt::shInferenceVector& get() const noexcept { return vector_; }
  /// The buffers for an inference; an output that cannot be written gets memory of its own, in the
  /// list too.
  Buffers give();
  /// The list itself.
  nanobind::list list();
  /// Other memory for `count` buffers from `first` on. The codes of the classes.
  QStatus set(QStatus (qaic::rt::InferenceVector::*put)(const std::vector<QBuffer>&),
              nanobind::handle buffers, std::size_t first);
  QStatus load(const std::vector<std::string>& files);
  std::size_t inputs() const noexcept { return inputs_; }

 private:
  /// Shows the vector's own memory from `first` to `last`.
  void show(std::size_t first, std::size_t last);

  qaic::rt::BufferMappings mappings_;
  qaic::rt::shInferenceVector vector_;
  std::size_t inputs_ = 0;
  nanobind::list buffers_;
  bool given_ = false;
};

void bind_vector(nanobind::module_& module);

}  // namespace corelane::qaic_python
