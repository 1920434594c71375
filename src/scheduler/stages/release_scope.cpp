#include "scheduler/stages/release_scope.h"

namespace corelane::scheduler {
namespace {

thread_local int depth = 0;

}  // namespace

ReleaseScope::ReleaseScope() noexcept { ++depth; }
ReleaseScope::~ReleaseScope() { --depth; }
bool ReleaseScope::active() noexcept { return depth != 0; }

}  // namespace corelane::scheduler
