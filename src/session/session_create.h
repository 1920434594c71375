/// What a session is made of, and how it is made: device, programs, contexts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "corelane/session/session.h"

namespace corelane::session {

struct SessionParts {
  SessionOptions options;
  std::vector<Program> programs;  ///< One, or one for each context.
  std::vector<Context> contexts;
  std::vector<std::int32_t> cores;  ///< Of each context; -1: `any_cores`.
  device::CoreSet any_cores;
  std::size_t duplicated = 0;
  std::vector<std::string> warnings;
};

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
