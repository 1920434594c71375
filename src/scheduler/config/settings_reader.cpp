#include "scheduler/config/settings_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/text_parts.h"
#include "scheduler/config/backend_text.h"
#include "scheduler/config/expansion.h"
#include "scheduler/config/key_check.h"
#include "scheduler/config/key_table.h"

namespace corelane::scheduler {
namespace {

constexpr std::string_view kInterpreter = "Interpreter::backend";
/// Each group gets a copy of them.
constexpr std::size_t kMaxKeys = 1000;
constexpr std::string_view kPipeline = "PipelineV3::backend";

/// Whether `&` divides the values of a key: those of backends, and some of the node.
bool has_parts(std::string_view name) noexcept {
  const Key* key = find_key(name);
  return key == nullptr || key->parts;
}

bool is_expression(std::string_view key) noexcept {
  return key == "backend" || key.ends_with("::backend");
}

/// What a checked text says: check_values() has refused every text that would not parse.
template <class T>
T number(const std::string& text) {
  return parse_number<T>(text).value_or(T{});
}
bool is_true(std::string_view text) noexcept { return text == "true" || text == "1"; }
Duration milliseconds(const std::string& text) {
  return Duration(std::llround(number<double>(text) * 1e6));
}

class SettingsReader {
 public:
  SettingsReader(const Config& config, const BackendRegistry& registry, const KeyErrors& errors)
      : registry_(registry), errors_(errors) {
    out_.settings = config;
  }

  Result<NodeSettings> read() {
    // In this order: values are checked before they are parsed, the names of all backends are known
    // before keys are held against them, and ranges are compared once `A(k=v)` stands in the keys.
    CORELANE_TRY(split_all());
    CORELANE_TRY(check_values());
    CORELANE_TRY(read_scheduler());
    CORELANE_TRY(make_groups());
    CORELANE_TRY(check_expression());
    CORELANE_TRY(check_keys(out_.settings, expression_, chain_, registry_, errors_));
    CORELANE_TRY(expand_groups());
    CORELANE_TRY(check_ranges());
    fill();
    return std::move(out_);
  }

 private:
  /// The parts of each key, and the number of groups: that of the longest list.
  Status split_all() {
    if (out_.settings.size() > kMaxKeys)
      return errors_.refuse(out_.settings.begin()->first,
                            fmt::format("this and {} more keys", out_.settings.size() - 1),
                            fmt::format("a node of at most {} keys", kMaxKeys),
                            "leave out those that nobody reads");
    out_.settings.try_emplace("backend", find_key("backend")->default_text);
    for (const auto& [key, value] : out_.settings) {
      if (!has_parts(key)) {
        if (value.find('&') != value.npos)
          return errors_.refuse(key, value, "one value for all groups",
                                "write it without '&', which this key does not take");
        continue;
      }
      // The text of a device divides its options by '&'.
      if (key == "device" || key.ends_with("::device")) continue;
      auto parts = split_parts(key, value);
      if (!parts) return errors_.refuse(key, parts.error());
      groups_ = std::max(groups_, parts->size());
      parts_.emplace(key, *std::move(parts));
    }
    return {};
  }

  /// Each value for itself.
  Status check_values() const {
    for (const auto& [name, value] : out_.settings) {
      const auto found = parts_.find(name);
      if (found == parts_.end())
        CORELANE_TRY(check_value(name, value));
      else
        for (const std::string& part : found->second) CORELANE_TRY(check_value(name, part));
    }
    return {};
  }

  Status check_value(const std::string& name, const std::string& text) const {
    const Key* key = find_key(name);
    if (key != nullptr && !takes(*key, text))
      return errors_.refuse(name, text, allowed_text(*key), how_to_mend(*key, text));
    if (!is_expression(name)) return {};
    const auto parsed = parse_backend_list(text);
    if (!parsed) return errors_.refuse(name, parsed.error());
    if (name != "backend") return {};
    const auto one = parse_backend(text);
    return one ? Status() : Status(errors_.refuse(name, one.error()));
  }

  static std::string how_to_mend(const Key& key, const std::string& text) {
    if (text.find('&') != text.npos && !key.parts) return "write it without '&'";
    if (key.default_text.empty()) return "correct the value, or leave the key out";
    return fmt::format("correct the value, or leave the key out for {}", key.default_text);
  }

  /// Who schedules: Interpreter::backend, else PipelineV3::backend, else the default. The key
  /// holds the outer name afterwards.
  Status read_scheduler() {
    out_.scheduler = default_chain().front();
    bool replaced = false;
    for (const std::string_view key : {kInterpreter, kPipeline}) {
      const auto found = out_.settings.find(key);
      if (found == out_.settings.end()) continue;
      CORELANE_ASSIGN(const std::string outer, expand_scheduler(found->first, found->second));
      out_.settings.insert_or_assign(std::string(key), outer);
      // Interpreter::backend = PipelineV3 leaves it to the next key.
      if (!replaced && outer != "PipelineV3") out_.scheduler = outer;
      replaced = replaced || outer != "PipelineV3";
    }
    return expand_chain();
  }

  /// The outer name; what stands in its brackets goes into the settings.
  Result<std::string> expand_scheduler(const std::string& key, const std::string& text) {
    auto parsed = parse_backend(text);
    if (!parsed) return errors_.refuse(key, parsed.error());
    const bool itself =
        parsed->name == "Interpreter" || (parsed->name == "PipelineV3" && key != kInterpreter);
    if (itself || !parsed->filter.empty())
      return errors_.refuse(key, text, "a scheduler such as BaselineSchedule, without a filter",
                            "correct the name, or leave the key out");
    // PipelineV3[X] says no more than PipelineV3::backend = X.
    if (parsed->name != "PipelineV3")
      if (Status status = name_backends(*parsed, out_.settings, chain_); !status.ok())
        return errors_.refuse(key, status);
    auto outer = expand_backend(*parsed, out_.settings);
    if (!outer) return errors_.refuse(key, outer.error());
    return *std::move(outer);
  }

  /// `A::backend` of the default chain.
  Status expand_chain() {
    for (const std::string_view name : default_chain()) {
      chain_.names.emplace(name);
      const auto found = out_.settings.find(std::string(name) + "::backend");
      if (found == out_.settings.end()) continue;
      const std::string given = found->second;
      CORELANE_ASSIGN(const std::string outer, expand_scheduler(found->first, given));
      found->second = outer;
      CORELANE_TRY(check_below(name, given));
    }
    return {};
  }

  /// The inner stage of a stage is a later one of the chain, or a backend that holds such: an
  /// earlier one would make this one again, without end.
  Status check_below(std::string_view stage, const std::string& given) const {
    const std::string key = std::string(stage) + "::backend";
    NamedBackends inner;
    auto parsed = parse_backend(out_.settings.find(key)->second);
    if (!parsed) return errors_.refuse(key, parsed.error());
    if (Status status = name_backends(*parsed, out_.settings, inner); !status.ok())
      return errors_.refuse(key, status);
    for (const std::string_view earlier : default_chain()) {
      if (inner.names.contains(std::string(earlier)))
        return errors_.refuse(
            key, given,
            fmt::format("what does not hold '{}', which would run '{}' again", earlier, stage),
            "name a later stage of the chain, or a backend that runs requests");
      if (earlier == stage) return {};
    }
    return {};
  }

  /// The stages of the chain run `backend`: one of them in it would run itself without end.
  Status check_expression() const {
    for (const std::string_view stage : default_chain())
      if (expression_.names.contains(std::string(stage)))
        return errors_.refuse(
            "backend", out_.settings.find("backend")->second,
            fmt::format("a backend that does not hold '{}', a stage of the chain that runs "
                        "'backend' itself",
                        stage),
            "name the backend that runs requests; docs/apis/scheduler.md has the keys that replace "
            "a stage");
    return {};
  }

  /// A copy of all settings for each group, of a value with `&` its part or the last one.
  Status make_groups() {
    for (std::size_t i = 0; i < groups_; ++i) {
      GroupSettings group;
      group.config = out_.settings;
      for (const auto& [key, parts] : parts_)
        group.config.insert_or_assign(key, parts[std::min(i, parts.size() - 1)]);
      CORELANE_ASSIGN(const BackendText backend, backend_of(group.config));
      if (Status status = name_backends(backend, group.config, expression_); !status.ok())
        return errors_.refuse("backend", status);
      out_.groups.push_back(std::move(group));
    }
    return {};
  }

  Result<BackendText> backend_of(const Config& config) const {
    auto parsed = parse_backend(config.find("backend")->second);
    if (!parsed) return errors_.refuse("backend", parsed.error());
    if (parsed->filter.empty()) return *std::move(parsed);
    return errors_.refuse("backend", parsed->text(), "a backend without a filter",
                          "a filter stands before the second or a later stage of S[...]");
  }

  Status expand_groups() {
    for (GroupSettings& group : out_.groups) {
      CORELANE_ASSIGN(const BackendText backend, backend_of(group.config));
      auto outer = expand_backend(backend, group.config);
      if (!outer) return errors_.refuse("backend", outer.error());
      group.config.insert_or_assign("backend", *std::move(outer));
    }
    if (groups_ == 1) out_.settings = out_.groups.front().config;
    return {};
  }

  /// A bound of a group, `otherwise` where the group does not set it.
  static std::uint32_t bound(const GroupSettings& group, std::string_view key,
                             std::uint32_t otherwise) {
    const auto found = group.config.find(key);
    return found == group.config.end() ? otherwise : number<std::uint32_t>(found->second);
  }

  /// Compares what the settings say alone. Ranges of the backends themselves are known after their
  /// init(): BaselineSchedule::init() checks those.
  Status check_ranges() {
    bool serves_one = false;
    for (std::size_t i = 0; i < groups_; ++i) {
      const GroupSettings& group = out_.groups[i];
      const std::uint32_t min = bound(group, "min", 1);
      const std::uint32_t max = bound(group, "max", min);
      const std::uint32_t cut = bound(group, "max_batch", 0);
      if (min > max)
        return errors_.refuse("min", fmt::format("{} with max={} in group {}", min, max, i + 1),
                              fmt::format("1 to {}", max), "lower min, or raise max");
      if (cut != 0 && cut < min)
        return errors_.refuse(
            "max_batch", fmt::format("{} with min={} in group {}", cut, min, i + 1),
            fmt::format("0, or {} and more", min), "raise max_batch, or leave it out");
      serves_one = serves_one || min == 1 || is_true(text_of(group, "padding"));
    }
    if (serves_one) return {};
    // The key is there: a group without a min has 1.
    return errors_.refuse("min", out_.settings.find("min")->second,
                          "1 in one group at least, since requests of one item come",
                          "add a group with min=1 by '&', or set padding=true");
  }

  static std::string text_of(const GroupSettings& group, std::string_view name) {
    const auto found = group.config.find(name);
    return found == group.config.end() ? std::string(find_key(name)->default_text) : found->second;
  }

  /// A setting of the whole node, or its default.
  std::string text_of(std::string_view name) const {
    const auto found = out_.settings.find(name);
    return found == out_.settings.end() ? std::string(find_key(name)->default_text) : found->second;
  }

  void fill() {
    for (GroupSettings& group : out_.groups) {
      group.instance_num = number<std::uint32_t>(text_of(group, "instance_num"));
      group.padding = is_true(text_of(group, "padding"));
    }
    const std::string batching = text_of("batching");
    out_.batching = batching == "full"      ? Batching::kFull
                    : batching == "learned" ? Batching::kLearned
                                            : Batching::kIdle;
    out_.batching_timeout = milliseconds(text_of("batching_timeout"));
    out_.plan = text_of("plan") == "cost" ? Plan::kCost : Plan::kGreedy;
    out_.deadlines = text_of("deadlines") == "expire" ? Deadlines::kExpire : Deadlines::kPredict;
    out_.oversize = text_of("oversize") == "refuse" ? Oversize::kRefuse : Oversize::kSplit;
    const std::string policy = text_of("queue_policy");
    out_.queue_policy = policy == "reject"        ? QueuePolicy::kReject
                        : policy == "drop_oldest" ? QueuePolicy::kDropOldest
                                                  : QueuePolicy::kBlock;
    out_.max_batch = number<std::uint32_t>(text_of("max_batch"));
    out_.queue_items = number<std::uint64_t>(text_of("queue_items"));
    out_.queue_bytes = number<std::uint64_t>(text_of("queue_bytes"));
    out_.max_in_flight = number<std::uint64_t>(text_of("max_in_flight"));
    out_.ageing = milliseconds(text_of("ageing"));
    out_.isolate = is_true(text_of("isolate"));
    out_.weight = number<double>(text_of("weight"));
    out_.records = number<std::size_t>(text_of("records"));
  }

  const BackendRegistry& registry_;
  const KeyErrors& errors_;
  NodeSettings out_;
  std::map<std::string, std::vector<std::string>> parts_;
  std::size_t groups_ = 1;
  NamedBackends expression_;
  NamedBackends chain_;
};

}  // namespace

Result<NodeSettings> read_settings(const Config& config, const BackendRegistry& registry,
                                   const KeyErrors& errors) {
  return SettingsReader(config, registry, errors).read();
}

}  // namespace corelane::scheduler
