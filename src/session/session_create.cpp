#include "session/session_create.h"

#include "base/fork.h"
#include "base/sync.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "dispatch/placement.h"
#include "session/tasks/perf_line.h"
#include "session/tasks/session_core.h"
#include "session/tasks/session_parts.h"

namespace corelane::session {
namespace {

/// A forked child cannot close the sessions of its parent: it has a list of its own.
struct LivingSessions {
  Mutex mutex{LockRank::kLeaf};
  std::vector<std::weak_ptr<SessionCore>> cores CORELANE_GUARDED_BY(mutex);
};

Result<Program> load(const ModelSource& source, const LoadOptions& options) {
  if (source.bytes != nullptr) return Program::load(*source.bytes, options, source.bytes);
  return Program::load(source.path, options);
}

void warn(SessionParts& parts, std::string text) {
  log::warn("session", "{}", text);
  parts.warnings.push_back(std::move(text));
}

/// Contexts that share code and weights are the rule; these have to load them on their own.
void decide_duplication(SessionParts& parts, bool shares_weights) {
  if (parts.options.disable_dup_context) return;
  const bool custom = !parts.programs.front().description().custom_operators.empty();
  if (!custom && !shares_weights) return;
  parts.options.disable_dup_context = true;
  // One context has nothing to share, so nothing is lost.
  if (parts.cores.size() < 2) return;
  warn(parts,
       fmt::format("{}: each of the {} contexts loads the model on its own",
                   custom ? "the model has custom operators" : "the weights are another session's",
                   parts.cores.size()));
}

Status make_contexts(SessionParts& parts, const ModelSource& source) {
  CORELANE_ASSIGN(Context first, parts.programs.front().new_context({.keep_states = false}));
  parts.contexts.push_back(std::move(first));
  while (parts.contexts.size() < parts.cores.size()) {
    if (parts.options.disable_dup_context) {
      CORELANE_ASSIGN(Program program, load(source, parts.options.load));
      parts.programs.push_back(std::move(program));
      CORELANE_ASSIGN(Context context, parts.programs.back().new_context({.keep_states = false}));
      parts.contexts.push_back(std::move(context));
    } else {
      CORELANE_ASSIGN(Context context, parts.contexts.front().duplicate());
      parts.contexts.push_back(std::move(context));
      ++parts.duplicated;
    }
  }
  return {};
}

}  // namespace

Result<SessionParts> make_parts(const ModelSource& source, SessionOptions options,
                                std::shared_ptr<const Program> weights_of) {
  // What no device could do is refused before one is opened.
  CORELANE_TRY(check(options, device::CoreSet::kMaxCores));
  if (options.load.on == nullptr) {
    // The macro is two statements.
    CORELANE_ASSIGN(options.load.on, device::open_device(options.load.device));
  }
  // Once more, against the cores that there are.
  CORELANE_TRY(check(options, options.load.on->info().cores.size()));
  if (options.schedule.empty() && !options.tp_mode) options.tp_mode = TpMode::kAuto;
  if (options.load.timeout_option.empty()) options.load.timeout_option = "run_timeout";
  if (!options.print_perf) options.print_perf = perf_from_environment();
  if (weights_of != nullptr) options.load.weights_of = std::move(weights_of);
  const bool shares_weights = options.load.weights_of != nullptr;

  SessionParts parts;
  CORELANE_ASSIGN(Program program, load(source, options.load));
  if (shares_weights && !program.description().custom_operators.empty()) {
    return error(Code::kUnsupported,
                 "model '{}' has custom operators and takes no weights of another session; load it "
                 "with its own",
                 program.description().name);
  }
  parts.programs.push_back(std::move(program));
  const std::vector<std::size_t> cores = dispatch::unique_cores(options.schedule);
  const auto threads = static_cast<std::size_t>(options.threads_per_core);
  const std::size_t contexts = threads * std::max<std::size_t>(cores.size(), 1);
  for (std::size_t i = 0; i < contexts; ++i)
    // Core by core and then again: the first contexts cover all cores.
    parts.cores.push_back(cores.empty() ? -1 : static_cast<std::int32_t>(cores[i % cores.size()]));
  if (options.tp_mode) parts.any_cores = cores_of(*options.tp_mode);
  parts.options = std::move(options);
  decide_duplication(parts, shares_weights);
  CORELANE_TRY(make_contexts(parts, source));
  return parts;
}

void remember(const std::shared_ptr<SessionCore>& core) {
  auto& all = per_process<LivingSessions>();
  const MutexLock lock(all.mutex);
  // Here, because nobody is told when a session ends.
  std::erase_if(all.cores, [](const auto& weak) { return weak.expired(); });
  all.cores.push_back(core);
}

std::vector<std::shared_ptr<SessionCore>> living_sessions() {
  auto& all = per_process<LivingSessions>();
  const MutexLock lock(all.mutex);
  std::vector<std::shared_ptr<SessionCore>> cores;
  for (const auto& weak : all.cores)
    if (auto core = weak.lock()) cores.push_back(std::move(core));
  return cores;
}

}  // namespace corelane::session
