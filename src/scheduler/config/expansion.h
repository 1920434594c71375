/// What an expression of backends means for the settings of those backends.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "scheduler/config/backend_text.h"

namespace corelane::scheduler {

/// Writes into `config` what stands around the names: of `A(k=v)[B[C]]`, A::k = v, A::backend = B
/// and B::backend = C. Where a backend has several inner ones, or one with a filter, the list stays
/// one text, such as S::backend = "a(k=v),(swap)b": S calls this function for each stage. Keys
/// `A::backend` that are there already are expanded in the same way. Returns the outer name.
/// kInvalidArgument when a key is there already with another value, and for a name inside of
/// itself. Any thread.
Result<std::string> expand_backend(const BackendText& text, Config& config);

/// The same for a stage of a list: what the stage says wins over what `config` has.
Result<std::string> expand_stage(const BackendText& text, Config& config);

/// The names of an expression.
struct NamedBackends {
  std::set<std::string> names;
  /// Keys from parameters, "a::k" for `a(k=v)`, and from brackets, "a::backend" for `a[b]`.
  std::set<std::string> keys;
};

/// Adds every backend that `text` leads to, `A::backend` of `config` included. kInvalidArgument for
/// a name inside of itself, for chains of more than kMaxNesting names and for more than a thousand
/// names. Any thread.
Status name_backends(const BackendText& text, const Config& config, NamedBackends& found);

/// What backend `name` gets: `config`, in which each `name::key` but `name::backend` stands as
/// `key`, too, and wins. Any thread.
Config config_for(std::string_view name, const Config& config);

}  // namespace corelane::scheduler
