#include "dispatch/awaited.h"

#include <utility>

namespace corelane::dispatch {
namespace {

thread_local bool this_one_is = false;

}  // namespace

bool thread_is_awaited() noexcept { return this_one_is; }

AwaitedScope::AwaitedScope(bool awaited) noexcept : outer_(std::exchange(this_one_is, awaited)) {}
AwaitedScope::~AwaitedScope() { this_one_is = outer_; }

}  // namespace corelane::dispatch
