/// Context: devices, a log, and who hears of failures.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace corelane::qaic_python {

/// The functions of the user that a context calls.
struct Callbacks;

class ContextObject {
 public:
  /// `devices`: None for all, an int, or several numbers; `log` and `error` may be None. Throws as
  /// Context::Factory.
  ContextObject(nanobind::handle devices, std::uint32_t properties, nanobind::object log,
                nanobind::object error);
  /// Waits for callbacks that run, without the lock.
  ~ContextObject();
  ContextObject(const ContextObject&) = delete;
  ContextObject& operator=(const ContextObject&) = delete;

  const qaic::rt::shContext& get() const noexcept { return context_; }
  /// The devices of the context, in order.
  const std::vector<QID>& devices() const noexcept { return devices_; }
  /// The first device that `device` names; None: the context's first.
  QID first_of(nanobind::handle device) const;
  /// The device that stands for None: the first with room for the program; where none has room the
  /// context's first, whose activation says what it lacks. Without the lock.
  QID choose(const qaic::rt::shQpc& qpc) const;

  // For the garbage collector.
  int show(visitproc visit, void* arg) const;
  void silence() const noexcept;

 private:
  std::shared_ptr<Callbacks> callbacks_;
  std::vector<QID> devices_;
  qaic::rt::shContext context_;
};

void bind_context(nanobind::module_& module);

}  // namespace corelane::qaic_python
