/// The session as Python sees it: corelane._native.Session, Future and Binding.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "corelane/session/session.h"

namespace corelane::python {

/// The inputs of one call. `names` keeps the text that the feed points to.
struct HeldFeed {
  Feed feed;
  std::vector<nanobind::object> names;
};

/// A session whose last owner may be the garbage collector: it is closed with the lock given away,
/// because callbacks that are still due need it.
struct NativeSession {
  explicit NativeSession(Session made);
  ~NativeSession();
  NativeSession(const NativeSession&) = delete;
  NativeSession& operator=(const NativeSession&) = delete;

  Session session;
  std::vector<TensorDesc> inputs;
};

/// From a dict of arrays by name, a list or tuple of arrays in order, or one array.
HeldFeed read_feed(const NativeSession& self, nanobind::handle feed);
/// A list of arrays.
nanobind::list make_outputs(const Outputs& outputs);

void bind_session(nanobind::module_& module);
void bind_description(nanobind::class_<NativeSession>& session);
void bind_futures(nanobind::module_& module);
void bind_binding(nanobind::module_& module);

}  // namespace corelane::python
