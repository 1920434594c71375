#include "scheduler/backends/inner_backend.h"

#include <fmt/format.h>

#include <utility>

#include "base/guard.h"
#include "scheduler/config/expansion.h"

namespace corelane::scheduler {

std::uint64_t items_of(std::span<const RequestPtr> batch) noexcept {
  std::uint64_t items = 0;
  for (const RequestPtr& request : batch) items += request->options.items;
  return items;
}

Status check_range(std::string_view backend, Range range, std::uint64_t items) {
  if (range.min <= items && items <= range.max) return {};
  return error(Code::kOutOfRange,
               "backend '{}' takes {} to {} items a call, given {}; send as many, or choose a "
               "backend of another range",
               backend, range.min, range.max, items)
      .with(Detail::kGiven, items)
      .with(Detail::kAllowed, fmt::format("{} to {}", range.min, range.max));
}

InnerBackend::InnerBackend(std::string name, Config config, std::unique_ptr<Backend> backend)
    : name_(std::move(name)),
      what_(fmt::format("backend '{}'", name_)),
      config_(std::move(config)),
      backend_(std::move(backend)) {}

Result<InnerBackend> InnerBackend::make(const BackendText& text, const Config& outer,
                                        const BackendSurroundings& surroundings) {
  if (!text.filter.empty())
    return error(Code::kInvalidArgument,
                 "'({}){}': a filter stands before the second or a later stage of 'S[...]' only",
                 text.filter, text.name);
  const BackendRegistry& names =
      surroundings.names == nullptr ? backend_registry() : *surroundings.names;
  CORELANE_ASSIGN(auto made, names.make(text.name, surroundings));
  Config config = outer;
  CORELANE_ASSIGN(const std::string name, expand_stage(text, config));
  return InnerBackend(name, config_for(name, config), std::move(made));
}

InnerBackend InnerBackend::adopt(const std::string& name, const Config& outer,
                                 std::unique_ptr<Backend> backend) {
  return InnerBackend(name, config_for(name, outer), std::move(backend));
}

Status InnerBackend::init(const SharedDict& shared) {
  // The settings are not needed after init(), and each of up to 1024 instances of a group has a
  // copy.
  const Config config = std::exchange(config_, {});
  bool returned = false;
  Status done = no_throw(
      what_,
      [&] {
        Status status = backend_->init(config, shared ? shared : std::make_shared<Dict>());
        returned = true;
        return status;
      },
      Code::kEngineFailed);
  if (!done.ok())
    // What it threw names the backend already.
    return returned ? done.wrap(fmt::format("{} could not be initialised", what_)) : done;
  range_ = {backend_->min(), backend_->max()};
  if (range_.min < 1 || range_.min > range_.max)
    return error(Code::kEngineFailed,
                 "{} says that it takes {} to {} items a call; 1 <= min() <= max() is needed",
                 what_, range_.min, range_.max);
  repeatable_ = backend_->repeatable();
  ready_ = true;
  return {};
}

Status InnerBackend::forward(std::span<const RequestPtr> batch) {
  if (!ready_) return error(Code::kWrongState, "{} was called before init()", what_);
  CORELANE_TRY(check_range(name_, range_, items_of(batch)));
  bool returned = false;
  Status done = no_throw(
      what_,
      [&] {
        Status status = backend_->forward(batch);
        returned = true;
        return status;
      },
      Code::kEngineFailed);
  if (done.ok() || !returned) return done;  // What it threw names the backend already.
  return done.wrap(fmt::format("{} failed", what_));
}

Result<std::vector<BackendText>> inner_texts(std::string_view name, const Config& config) {
  const std::string key = fmt::format("{}::backend", name);
  const auto found = config.find(key);
  if (found == config.end()) return std::vector<BackendText>();
  auto list = parse_backend_list(found->second);
  if (!list)
    return error(list.error().wrap(Code::kInvalidArgument, fmt::format("key '{}'", key)))
        .with(Detail::kKey, key);
  return list;
}

Config handed_down(std::string_view name, const Config& config) {
  Config result = config;
  result.erase(fmt::format("{}::backend", name));
  return result;
}

Result<std::unique_ptr<InnerBackend>> open_inner(std::string_view name, const Config& config,
                                                 const SharedDict& shared,
                                                 const BackendSurroundings& surroundings,
                                                 std::string_view fallback) {
  CORELANE_ASSIGN(auto texts, inner_texts(name, config));
  if (texts.empty() && !fallback.empty()) {
    texts.emplace_back();
    texts.back().name = fallback;
  }
  if (texts.size() != 1)
    return error(Code::kInvalidArgument,
                 "backend '{0}' has {1} backends in its brackets; one is needed, as in '{0}[X]'",
                 name, texts.size())
        .with(Detail::kGiven, texts.size());
  CORELANE_ASSIGN(auto made,
                  InnerBackend::make(texts.front(), handed_down(name, config), surroundings));
  auto inner = std::make_unique<InnerBackend>(std::move(made));
  CORELANE_TRY(inner->init(shared));
  return inner;
}

}  // namespace corelane::scheduler
