#include "lanes/resources/shared_program.h"

#include <algorithm>
#include <utility>

#include "base/process/process_end.h"

namespace corelane::lanes {
namespace {

bool same_place(ByteSpan a, ByteSpan b) { return a.data() == b.data() && a.size() == b.size(); }

bool same_image(const device::Image& a, const device::Image& b) {
  return same_place(a.bytes, b.bytes) && same_place(a.constants, b.constants) &&
         same_place(a.precompiled, b.precompiled) && a.kind == b.kind &&
         a.precompiled_tag == b.precompiled_tag && a.inputs == b.inputs && a.outputs == b.outputs;
}

bool same_options(const device::PrepareOptions& a, const device::PrepareOptions& b) {
  return a.input_shapes == b.input_shapes && a.engine == b.engine && a.precision == b.precision &&
         a.fast_math == b.fast_math && a.profile_layers == b.profile_layers &&
         a.exposed_values == b.exposed_values && a.replicate_limit == b.replicate_limit;
}

/// Host operators are those of one program: each has a table of its own.
bool shareable(const device::Image& image, const device::PrepareOptions& options) {
  return image.immutable && image.keep_alive != nullptr && options.custom_operators.empty();
}

}  // namespace

SharedProgram::SharedProgram(std::shared_ptr<device::LaneProgram> program,
                             std::shared_ptr<const void> source, MemoryLedger& ledger)
    : source_(std::move(source)), program_(std::move(program)), ledger_(ledger) {}

SharedProgram::~SharedProgram() {
  if (const EngineVisit visit; visit)
    program_.reset();
  else
    never_destroy(std::move(program_));
  const MutexLock lock(mutex_);
  ledger_.give_back(counted_);
}

/// The driver is asked without the lock. A figure that is older than one that was counted meanwhile
/// is dropped, and another taken.
Status SharedProgram::recount() {
  if (!ledger_.limited()) return {};
  for (;;) {
    const std::uint64_t before = [&] {
      const MutexLock lock(mutex_);
      return counts_;
    }();
    const std::size_t now = program_->memory().total();
    const MutexLock lock(mutex_);
    if (counts_ != before) continue;
    if (++counts_ == 1) first_bytes_ = now;
    return ledger_.correct(std::exchange(counted_, now), now, "the compiled form of a program");
  }
}

/// A program with constants of its own for each core gets as many copies as jobs may run at once.
/// A copy stays with its program.
Status SharedProgram::expect_copies(std::size_t requests, std::size_t cores) {
  if (!ledger_.limited() || program_->placement() != device::Placement::kReplicated) return {};
  std::size_t more = 0;
  {
    const MutexLock lock(mutex_);
    const std::size_t expected = first_bytes_ * std::min(requests, cores);
    more = expected > counted_ ? expected - counted_ : 0;
  }
  return more == 0 ? Status() : ledger_.check(more, "another core's copy of a program");
}

std::shared_ptr<SharedProgram> SharedPrograms::find(const device::Image& image,
                                                    const device::PrepareOptions& options,
                                                    std::uint64_t generation) const {
  if (!shareable(image, options)) return nullptr;
  for (const Entry& entry : entries_) {
    if (entry.generation != generation || !same_image(entry.image, image) ||
        !same_options(entry.options, options))
      continue;
    // One that ended has left its place in memory to others.
    if (auto program = entry.program.lock()) return program;
  }
  return nullptr;
}

void SharedPrograms::add(const device::Image& image, const device::PrepareOptions& options,
                         std::uint64_t generation, const std::shared_ptr<SharedProgram>& program) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.program.expired(); });
  if (!shareable(image, options)) return;
  Entry& entry = entries_.emplace_back(Entry{image, options, generation, program});
  entry.image.keep_alive = nullptr;
  entry.options.host_operators = nullptr;
}

}  // namespace corelane::lanes
