/// A registry with backends of a script, requests for them, and a journal of what they did.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corelane/scheduler/backend.h"
#include "corelane/scheduler/filter.h"
#include "corelane/scheduler/statistics.h"
#include "scheduler/backends/builtin_backends.h"
#include "scheduler/backends/inner_backend.h"
#include "scheduler/config/backend_text.h"

namespace corelane::scheduler::testing {

using Batch = std::span<const RequestPtr>;

/// The end of a range that has no limit.
inline constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

inline RequestPtr request_of(std::string data, std::uint32_t items = 1) {
  RequestOptions options;
  options.items = items;
  return std::make_shared<Request>(Dict{{kData, std::move(data)}}, options);
}

/// Requests with these data, of one item each.
inline std::vector<RequestPtr> requests_of(const std::vector<std::string>& data) {
  std::vector<RequestPtr> batch;
  for (const std::string& one : data) batch.push_back(request_of(one));
  return batch;
}

/// The text under `key`; "-" where there is none.
inline std::string text_at(const Request& request, const char* key) {
  const auto found = request.values.find(key);
  return found == request.values.end() ? "-" : std::any_cast<std::string>(found->second);
}

inline std::vector<std::string> results_of(const std::vector<RequestPtr>& batch) {
  std::vector<std::string> results;
  for (const RequestPtr& one : batch) results.push_back(text_at(*one, kResult));
  return results;
}

/// What a scripted backend does. The default of forward: result = data + name.
struct Script {
  Range range{1, 1};
  bool repeatable = false;
  std::function<Status(const Config&)> init = {};
  std::function<Status(Batch)> forward = {};
};

/// A filter by a function.
class ScriptedFilter final : public Filter {
 public:
  explicit ScriptedFilter(std::function<FilterAction(Request&)> f) : f_(std::move(f)) {}
  FilterAction apply(Request& request) override { return f_(request); }

 private:
  const std::function<FilterAction(Request&)> f_;
};

class BackendBench {
 public:
  BackendBench() { add_builtin_backends(registry); }

  BackendRegistry registry;
  std::shared_ptr<Clock> clock = real_clock();
  std::vector<std::string> inits;  ///< Names, in order.
  std::vector<std::string> calls;  ///< "a:x,y", in order.

  void add(const std::string& name, const Script& script) {
    const Status added = registry.add(name, [this, name, script](const BackendSurroundings&) {
      return std::make_unique<Scripted>(*this, name, script);
    });
    if (!added.ok()) throw std::invalid_argument(added.to_string());
  }

  void add_filter(const std::string& name, const std::function<FilterAction(Request&)>& f) {
    const Status added =
        registry.add_filter(name, [f] { return std::make_unique<ScriptedFilter>(f); });
    if (!added.ok()) throw std::invalid_argument(added.to_string());
  }

  /// The backend of this expression, initialised with these settings.
  Result<std::unique_ptr<InnerBackend>> open(std::string_view expression,
                                             const Config& config = {}) {
    CORELANE_ASSIGN(const BackendText text, parse_backend(expression));
    CORELANE_ASSIGN(auto made, InnerBackend::make(text, config, {clock, &registry}));
    auto inner = std::make_unique<InnerBackend>(std::move(made));
    CORELANE_TRY(inner->init(nullptr));
    return inner;
  }

  /// What open() fails with; "ok" where it does not.
  std::string refusal(std::string_view expression, const Config& config = {}) {
    const auto opened = open(expression, config);
    return opened ? "ok" : opened.error().to_string();
  }

  Code refusal_code(std::string_view expression, const Config& config = {}) {
    const auto opened = open(expression, config);
    return opened ? Code::kOk : opened.error().code();
  }

 private:
  class Scripted final : public Backend {
   public:
    Scripted(BackendBench& bench, std::string name, Script script)
        : bench_(bench), name_(std::move(name)), script_(std::move(script)) {}
    Status init(const Config& config, const SharedDict&) override {
      bench_.inits.push_back(name_);
      return script_.init ? script_.init(config) : Status();
    }
    Status forward(Batch batch) override {
      std::string call = name_ + ":";
      for (const RequestPtr& one : batch)
        call += (one == batch[0] ? "" : ",") + text_at(*one, kData);
      bench_.calls.push_back(std::move(call));
      if (script_.forward) return script_.forward(batch);
      for (const RequestPtr& one : batch) one->values[kResult] = text_at(*one, kData) + name_;
      return {};
    }
    std::uint32_t min() const noexcept override { return script_.range.min; }
    std::uint32_t max() const noexcept override { return script_.range.max; }
    bool repeatable() const noexcept override { return script_.repeatable; }

   private:
    BackendBench& bench_;
    const std::string name_;
    const Script script_;
  };
};

}  // namespace corelane::scheduler::testing
