/// Qpc: a program container.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace corelane::qaic_python {

class QpcObject {
 public:
  /// A container in a folder. Throws as Qpc::Factory.
  QpcObject(const std::string& folder, const std::string& file);
  /// One in memory, which is kept by all that is made of it.
  QpcObject(nanobind::handle bytes, bool make_copy);
  ~QpcObject();
  QpcObject(const QpcObject&) = delete;
  QpcObject& operator=(const QpcObject&) = delete;

  const qaic::rt::shQpc& get() const noexcept { return qpc_; }

 private:
  qaic::rt::shQpc qpc_;
};

/// (status, bytes) of what `ask` fills.
template <class Ask>
nanobind::tuple descriptor(Ask&& ask) {
  QData data{};
  const QStatus status = ask(&data);
  return nanobind::make_tuple(status, status == QS_SUCCESS ? nanobind::bytes(data.data, data.size)
                                                           : nanobind::bytes("", 0));
}

void bind_qpc(nanobind::module_& module);

}  // namespace corelane::qaic_python
