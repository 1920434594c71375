#include "scheduler/backends/builtin_filters.h"

#include <array>
#include <utility>

#include "base/leaked.h"

namespace corelane::scheduler {
namespace {

constexpr std::array kActions = {FilterAction::kRun,          FilterAction::kSkip,
                                 FilterAction::kBreak,        FilterAction::kSerialSkip,
                                 FilterAction::kSubGraphSkip, FilterAction::kError};

class Always final : public Filter {
 public:
  explicit Always(FilterAction action) : action_(action) {}
  FilterAction apply(Request&) override { return action_; }

 private:
  const FilterAction action_;
};

/// The result of the stage before becomes the data of the next one.
class Swap final : public Filter {
 public:
  FilterAction apply(Request& request) override {
    const auto result = request.values.find(kResult);
    // The stage before left the result out. The node reports that when the call has ended.
    if (result == request.values.end()) return FilterAction::kBreak;
    std::any moved = std::move(result->second);
    request.values.erase(result);
    request.values[kData] = std::move(moved);
    return FilterAction::kRun;
  }
};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const FilterAction action : kActions) names.emplace_back(action_name(action));
  names.emplace_back(kSwapFilter);
  return names;
}

}  // namespace

std::string_view action_name(FilterAction action) noexcept {
  switch (action) {
    case FilterAction::kRun:
      return "Run";
    case FilterAction::kSkip:
      return "Skip";
    case FilterAction::kBreak:
      return "Break";
    case FilterAction::kSerialSkip:
      return "SerialSkip";
    case FilterAction::kSubGraphSkip:
      return "SubGraphSkip";
    case FilterAction::kError:
      return "Error";
  }
  return "unknown";
}

const std::vector<std::string>& builtin_filter_names() {
  static Leaked<const std::vector<std::string>> names(all_names());
  return *names;
}

std::unique_ptr<Filter> make_builtin_filter(std::string_view name) {
  if (name == kSwapFilter) return std::make_unique<Swap>();
  for (const FilterAction action : kActions)
    if (action_name(action) == name) return std::make_unique<Always>(action);
  return nullptr;
}

}  // namespace corelane::scheduler
