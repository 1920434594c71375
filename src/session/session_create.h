/// How a session is made: device, programs, contexts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "corelane/session/session.h"

namespace corelane::session {

struct SessionParts;

/// Where a model comes from: a path, or bytes where the path is empty.
struct ModelSource {
  std::filesystem::path path;
  std::shared_ptr<const ByteVector> bytes;
};

/// Checks `options` against the device before anything of the session exists. `weights_of` may be
/// null.
Result<SessionParts> make_parts(const ModelSource& source, SessionOptions options,
                                std::shared_ptr<const Program> weights_of);

/// The sessions of this process that live, for close_all().
void remember(const std::shared_ptr<SessionCore>& core);
std::vector<std::shared_ptr<SessionCore>> living_sessions();

}  // namespace corelane::session
