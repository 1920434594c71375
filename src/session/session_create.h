/// Makes the parts of a session: device, programs, contexts.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"

namespace corelane {

class Program;
struct SessionOptions;

namespace session {

class SessionCore;
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

}  // namespace session
}  // namespace corelane
