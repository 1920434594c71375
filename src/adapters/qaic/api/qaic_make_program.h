/// How a program is made for its user, alone or in a group.
#pragma once

#include <memory>

#include "adapters/qaic/api/qaic_edge.h"

namespace corelane::qaic {

class ContextObject;
class GroupGate;
class ProgramObject;
class QpcObject;

/// What the user asked for.
struct ProgramRequest {
  std::shared_ptr<ContextObject> context;
  std::shared_ptr<QpcObject> qpc;
  const QAicProgramProperties* properties = nullptr;  ///< Null: the defaults.
  QID device = 0;
  const char* name = nullptr;       ///< Null, "": that of the network.
  std::shared_ptr<GroupGate> gate;  ///< Of its group; null: it is of none.
};

/// The container's first program. Any thread.
Outcome create_program(ProgramRequest request, std::shared_ptr<ProgramObject>& made);

}  // namespace corelane::qaic
