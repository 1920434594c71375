/// The backends of the library itself.
#pragma once

#include <memory>
#include <string>

#include "corelane/scheduler/backend.h"

namespace corelane::scheduler {

/// Adds all of them under their names, to a registry that has none of these.
void add_builtin_backends(BackendRegistry& registry);

/// "Identity": result = data.
std::unique_ptr<Backend> make_identity(const BackendSurroundings& surroundings);
/// "Sleep": a call of n items takes a + b n milliseconds.
std::unique_ptr<Backend> make_sleep(const BackendSurroundings& surroundings);
/// "Faulty[X]": X with faults.
std::unique_ptr<Backend> make_faulty(const BackendSurroundings& surroundings);
/// "Range[X]": calls that X's range has no room for, split.
std::unique_ptr<Backend> make_range(const BackendSurroundings& surroundings);
/// "SyncTensor[X]": X as it is.
std::unique_ptr<Backend> make_sync_tensor(const BackendSurroundings& surroundings);
/// "S[a,b]" and "Sequential[a,b]": one stage after another. `name`: which of the two.
std::unique_ptr<Backend> make_sequential(std::string name, const BackendSurroundings& surroundings);

}  // namespace corelane::scheduler
