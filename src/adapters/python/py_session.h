/// The session as Python sees it: corelane._native.Session, Future and Binding.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "corelane/session/session.h"

namespace corelane::python {

/// Numbers the calls of a profiled session in the records of its device, which other sessions may
/// share. Any thread.
struct Tags {
  std::atomic<std::uint64_t> first{0};  ///< 0: a call has its task's number.
  std::atomic<std::uint64_t> next{0};

  /// With the tag of the next call.
  CallOptions apply(CallOptions options) {
    if (first.load() != 0) options.tag = first.load() + next.fetch_add(1);
    return options;
  }
};

/// A session whose last owner may be the garbage collector: it is closed without the lock, because
/// callbacks that are still due need it.
struct NativeSession {
  explicit NativeSession(Session made) : session(std::move(made)), inputs(session.inputs()) {}
  ~NativeSession();
  NativeSession(const NativeSession&) = delete;
  NativeSession& operator=(const NativeSession&) = delete;

  Session session;
  std::vector<TensorDesc> inputs;
  std::shared_ptr<Tags> tags = std::make_shared<Tags>();
};

/// The description of an input by name, or with an empty name by position; an empty one where there
/// is none.
const TensorDesc& input_desc(const std::vector<TensorDesc>& inputs, std::string_view name,
                             std::size_t index = 0);

/// A list of arrays.
nanobind::list make_outputs(const Outputs& outputs);

void bind_session(nanobind::module_& module);
void bind_description(nanobind::class_<NativeSession>& session);
void bind_futures(nanobind::module_& module);
void bind_binding(nanobind::module_& module);

}  // namespace corelane::python
