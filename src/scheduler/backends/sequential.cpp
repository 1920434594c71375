#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/guard.h"
#include "base/text_parts.h"
#include "corelane/scheduler/filter.h"
#include "scheduler/backends/batch_parts.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/builtin_filters.h"
#include "scheduler/backends/inner_backend.h"
#include "scheduler/backends/stage_values.h"

namespace corelane::scheduler {
namespace {

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

struct Step {
  InnerBackend backend;
  std::string filter_name;         ///< Empty for the first stage.
  std::unique_ptr<Filter> filter;  ///< Null for the first stage.
};

/// The range of a chain. A stage that takes one item is called for each item, so that it narrows
/// nothing; of those with another limit only one is allowed, since batches are made for one size.
Result<Range> range_of(std::string_view name, const std::vector<Step>& stages) {
  std::optional<Range> all;
  const InnerBackend* limited = nullptr;
  for (const Step& stage : stages) {
    const Range range = stage.backend.range();
    if (range.max == 1) continue;
    if (range.max != kNoLimit) {
      if (limited != nullptr)
        return error(
            Code::kInvalidArgument,
            "backend '{0}': stages '{1}' and '{2}' take at most {3} and {4} items a call; at "
            "most one stage may have a max other than 1 and no limit; set 'max' for one of "
            "them alone, as in '{0}[a,b(max=8)]'",
            name, limited->name(), stage.backend.name(), limited->range().max, range.max);
      limited = &stage.backend;
    }
    if (!all) all = Range{1, kNoLimit};
    all->min = std::max(all->min, range.min);
    all->max = std::min(all->max, range.max);
  }
  if (!all) return Range{1, 1};
  if (all->min <= all->max) return *all;
  return error(Code::kInvalidArgument,
               "backend '{}': one stage takes at least {} items a call and another at most {}; no "
               "batch fits both",
               name, all->min, all->max);
}

/// One batch on its way through the stages.
class Passage {
 public:
  explicit Passage(BatchPart batch) : batch_(batch), items_(batch.size()) {}

  /// Gives the requests their data back: what this call is a part of may run them again. Their
  /// results go after a failure of the call.
  void end(bool failed) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      Dict& values = batch_[i]->values;
      if (failed || !batch_[i]->failure().ok()) values.erase(kResult);
      if (items_[i].given) values[kData] = std::move(*items_[i].given);
    }
  }

  /// The requests that the stage runs. Fails where its filter says Error.
  Result<std::vector<RequestPtr>> select(const Step& stage) {
    std::vector<RequestPtr> chosen;
    chosen.reserve(batch_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].left) continue;
      CORELANE_ASSIGN(const FilterAction action, ask(stage, i));
      if (action == FilterAction::kRun) chosen.push_back(batch_[i]);
      items_[i].left = action != FilterAction::kRun && action != FilterAction::kSkip;
    }
    return chosen;
  }

  /// Whether no request goes on.
  bool empty() const {
    for (const Item& item : items_)
      if (!item.left) return false;
    return true;
  }

 private:
  struct Item {
    bool left = false;              ///< No more stages for it.
    std::optional<std::any> given;  ///< Its data, once a stage's result took the place.
  };

  Result<FilterAction> ask(const Step& stage, std::size_t i) {
    Request& request = *batch_[i];
    // A cancelled item stays where a stage needs several: without it there may be too few.
    const bool unwanted = request.cancelled() && stage.backend.range().min == 1;
    if (unwanted || !request.failure().ok()) return FilterAction::kBreak;
    if (!stage.filter) return FilterAction::kRun;
    // The swap puts the last result in the place of the data; end() gives the data back.
    if (stage.filter_name == kSwapFilter) keep_data(i);
    const Result<FilterAction> action = no_throw(
        fmt::format("filter '{}'", stage.filter_name),
        [&] { return Result<FilterAction>(stage.filter->apply(request)); }, Code::kEngineFailed);
    if (!action) request.fail(action.error());
    if (!request.failure().ok()) return FilterAction::kBreak;
    if (*action < FilterAction::kError) return *action;
    return error(Code::kEngineFailed, "filter '{}' before stage '{}' ended the call: it said {}",
                 stage.filter_name, stage.backend.name(), action_name(*action));
  }

  void keep_data(std::size_t i) {
    Dict& values = batch_[i]->values;
    // Only the first swap meets the user's data; later ones meet results of stages.
    if (items_[i].given || !values.contains(kResult)) return;
    if (const auto data = values.find(kData); data != values.end())
      items_[i].given = std::move(data->second);
  }

  BatchPart batch_;
  std::vector<Item> items_;
};

class Sequential final : public Backend {
 public:
  Sequential(std::string name, BackendSurroundings surroundings)
      : name_(std::move(name)), surroundings_(std::move(surroundings)) {}

  Status init(const Config& config, const SharedDict& shared) override {
    stages_.clear();
    std::vector<Step> stages;
    CORELANE_TRY(make_stages(config, stages));
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      // Before its backend, whose init() gives up the settings that the filter reads.
      CORELANE_TRY(init_filter(*stage, shared));
      CORELANE_TRY(stage->backend.init(shared));
    }
    CORELANE_ASSIGN(range_, range_of(name_, stages));
    repeatable_ = true;
    for (const Step& stage : stages) {
      // A filter of the user may have changed values, which cannot be restored.
      repeatable_ = repeatable_ && stage.backend.repeatable() &&
                    (!stage.filter || make_builtin_filter(stage.filter_name) != nullptr);
    }
    stages_ = std::move(stages);
    return {};
  }

  Status forward(std::span<const RequestPtr> batch) override {
    if (stages_.empty()) return error(Code::kWrongState, "'{}' was called before init()", name_);
    Passage passage(batch);
    Status done = run(passage, batch.size());
    passage.end(!done.ok());
    return done;
  }

  std::uint32_t min() const noexcept override { return range_.min; }
  std::uint32_t max() const noexcept override { return range_.max; }
  bool repeatable() const noexcept override { return repeatable_; }

 private:
  Status make_stages(const Config& config, std::vector<Step>& stages) const {
    CORELANE_ASSIGN(auto texts, inner_texts(name_, config));
    if (texts.empty())
      return error(Code::kInvalidArgument,
                   "backend '{0}' has no stages; write them in brackets, as in '{0}[a,b]'", name_);
    CORELANE_ASSIGN(const auto configs,
                    stage_values(name_, handed_down(name_, config), texts.size()));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CORELANE_ASSIGN(Step stage, make_step(texts[i], configs[i], i == 0));
      stages.push_back(std::move(stage));
    }
    return {};
  }

  Result<Step> make_step(BackendText& text, const Config& config, bool first) const {
    // Out of the text: InnerBackend::make() refuses filters, which only stages have.
    std::string filter = std::exchange(text.filter, {});
    if (first && !filter.empty())
      return error(Code::kInvalidArgument,
                   "backend '{}': '({}){}': the first stage takes no filter, it always runs; leave "
                   "'({})' out",
                   name_, filter, text.name, filter);
    if (!first && filter.empty()) filter = kSwapFilter;
    CORELANE_ASSIGN(auto backend, InnerBackend::make(text, config, surroundings_));
    Step stage{std::move(backend), std::move(filter), nullptr};
    if (first) return stage;
    const BackendRegistry& names =
        surroundings_.names == nullptr ? backend_registry() : *surroundings_.names;
    auto made = names.make_filter(stage.filter_name);
    if (!made && made.error().code() == Code::kNotFound)
      return error(Code::kNotFound,
                   "backend '{}': '({}){}': there is no filter '{}'; allowed is {}; correct the "
                   "name, or add the filter to the registry",
                   name_, stage.filter_name, text.name, stage.filter_name,
                   fmt::join(names.filter_names(), ", "));
    if (!made) return error(made.error());
    stage.filter = std::move(*made);
    return stage;
  }

  static Status init_filter(Step& stage, const SharedDict& shared) {
    if (!stage.filter) return {};
    const Status done = no_throw(
        "init()", [&] { return stage.filter->init(stage.backend.config(), shared); },
        Code::kEngineFailed);
    return done.wrap(fmt::format("filter '{}' could not be initialised", stage.filter_name));
  }

  Status run(Passage& passage, std::size_t batch_size) {
    for (Step& stage : stages_) {
      CORELANE_ASSIGN(const auto chosen, passage.select(stage));
      if (passage.empty()) return {};
      // All may have skipped this stage, and no backend takes a call without requests.
      if (!chosen.empty()) CORELANE_TRY(run_stage(stage.backend, chosen, batch_size));
    }
    return {};
  }

  /// A failure that only some of the batch have a part in stays with them, unless the scheduler can
  /// find out by running the batch again.
  Status run_stage(InnerBackend& backend, BatchPart chosen, std::size_t batch_size) const {
    const std::vector<RequestPtr> fitting = leave_out_large(backend, chosen);
    if (fitting.empty()) return {};
    const auto parts = split_batch(fitting, backend.range());
    if (parts.empty()) {
      fail_all(fitting, too_few(backend, fitting));
      return {};
    }
    Status done = forward_parts(backend, parts, repeatable_);
    const bool all = fitting.size() == batch_size;
    if (done.ok() || all || (repeatable_ && fitting.size() > 1)) return done;
    fail_all(fitting, done);
    return {};
  }

  /// Fails the requests that no call of the stage has room for; the others.
  static std::vector<RequestPtr> leave_out_large(const InnerBackend& backend, BatchPart chosen) {
    std::vector<RequestPtr> fitting;
    fitting.reserve(chosen.size());
    for (const RequestPtr& request : chosen) {
      const std::uint32_t items = request->options.items;
      if (items <= backend.range().max)
        fitting.push_back(request);
      else
        request->fail(check_range(backend.name(), backend.range(), items));
    }
    return fitting;
  }

  static Status too_few(const InnerBackend& backend, BatchPart left) {
    const Range range = backend.range();
    return error(
               Code::kOutOfRange,
               "stage '{}' takes {} to {} items a call, and {} are left in the batch, of which no "
               "such calls can be made; use a backend with min = 1",
               backend.name(), range.min, range.max, items_of(left))
        .with(Detail::kGiven, items_of(left))
        .with(Detail::kAllowed, fmt::format("{} to {}", range.min, range.max));
  }

  const std::string name_;
  const BackendSurroundings surroundings_;
  std::vector<Step> stages_;
  Range range_;
  bool repeatable_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_sequential(std::string name,
                                         const BackendSurroundings& surroundings) {
  return std::make_unique<Sequential>(std::move(name), surroundings);
}

}  // namespace corelane::scheduler
