/// Whether each key of a node is one that the node or a backend reads.
#pragma once

#include "corelane/base/status.h"
#include "corelane/scheduler/backend.h"
#include "scheduler/config/expansion.h"
#include "scheduler/config/key_errors.h"

namespace corelane::scheduler {

/// Holds each key of `settings`, and each parameter of `expression` and `chain`, against the keys
/// of a node and of those backends. kInvalidArgument names the nearest key; kUnsupported for keys
/// that only pipelines of several nodes have.
Status check_keys(const Config& settings, const NamedBackends& expression,
                  const NamedBackends& chain, const BackendRegistry& registry,
                  const KeyErrors& errors);

}  // namespace corelane::scheduler
