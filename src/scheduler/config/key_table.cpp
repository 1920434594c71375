#include "scheduler/config/key_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text_parts.h"

namespace corelane::scheduler {
namespace {

// Items of a call are counted in 32 bits (Range).
constexpr std::uint64_t kMostOfACall = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kHour = 3'600'000;  // ms

constexpr Key kKeys[] = {
    {.name = "backend",
     .kind = KeyKind::kBackend,
     .default_text = "Identity",
     .meaning = "what runs the requests",
     .parts = true},
    {.name = "instance_num",
     .kind = KeyKind::kCount,
     .default_text = "1",
     .meaning = "instances of each group",
     .low = 1,
     .high = 1024,
     .parts = true,
     .live = true},
    {.name = "min",
     .kind = KeyKind::kCount,
     .default_text = "",
     .meaning = "fewest items of a call, where the backend has no range of its own; one group at "
                "least has 1, or pads",
     .low = 1,
     .high = kMostOfACall,
     .parts = true},
    {.name = "max",
     .kind = KeyKind::kCount,
     .default_text = "",
     .meaning = "most items of a call, where the backend has no range of its own; at least `min`",
     .low = 1,
     .high = kMostOfACall,
     .parts = true},
    {.name = "padding",
     .kind = KeyKind::kFlag,
     .default_text = "false",
     .meaning = "a call may be filled up to the group's min",
     .parts = true},
    {.name = "batching",
     .kind = KeyKind::kChoice,
     .default_text = "idle",
     .meaning = "when a batch that is not full leaves: as soon as an instance is idle; after "
                "`batching_timeout`; or as idle, but for a wait that pays by the learned rate",
     .choices = "idle|full|learned",
     .live = true},
    {.name = "batching_timeout",
     .kind = KeyKind::kMilliseconds,
     .default_text = "2",
     .meaning = "longest wait for more, from the submission of the oldest request; 0: never wait, "
                "take what is there. Without effect where max is 1",
     .high = kHour,
     .live = true},
    {.name = "max_batch",
     .kind = KeyKind::kCount,
     .default_text = "0",
     .meaning = "a lower max of every group, at least each group's min; 0: none",
     .high = kMostOfACall,
     .live = true},
    {.name = "plan",
     .kind = KeyKind::kChoice,
     .default_text = "greedy",
     .meaning = "how items are divided among groups: the largest call first, or the least time",
     .choices = "greedy|cost",
     .live = true},
    {.name = "deadlines",
     .kind = KeyKind::kChoice,
     .default_text = "predict",
     .meaning = "a request that will be late is refused or dropped early, or at its deadline only",
     .choices = "predict|expire",
     .live = true},
    {.name = "oversize",
     .kind = KeyKind::kChoice,
     .default_text = "split",
     .meaning = "what happens to a request of more items than a call takes",
     .choices = "split|refuse"},
    {.name = "queue_policy",
     .kind = KeyKind::kChoice,
     .default_text = "block",
     .meaning = "what happens to a request that finds the line full",
     .choices = "block|reject|drop_oldest",
     .live = true},
    {.name = "queue_items",
     .kind = KeyKind::kCount,
     .default_text = "65536",
     .meaning = "items that may wait; 0: no limit",
     .high = kAny,
     .live = true},
    {.name = "queue_bytes",
     .kind = KeyKind::kCount,
     .default_text = "0",
     .meaning = "bytes that may wait, as requests state them; 0: no limit",
     .high = kAny,
     .live = true},
    {.name = "max_in_flight",
     .kind = KeyKind::kCount,
     .default_text = "0",
     .meaning = "items that may wait or run; 0: no limit",
     .high = kAny,
     .live = true},
    {.name = "ageing",
     .kind = KeyKind::kMilliseconds,
     .default_text = "100",
     .meaning = "what one level of priority is worth; 0: priorities have no effect",
     .high = kHour},
    {.name = "isolate",
     .kind = KeyKind::kFlag,
     .default_text = "true",
     .meaning = "a failed batch of a repeatable backend runs again in halves",
     .live = true},
    {.name = "weight",
     .kind = KeyKind::kShare,
     .default_text = "1",
     .meaning = "share of the device's time among programs",
     .high = 1'000'000},
    {.name = "records",
     .kind = KeyKind::kCount,
     .default_text = "1024",
     .meaning = "batches that are remembered",
     .high = 1'000'000},
    {.name = "Interpreter::backend",
     .kind = KeyKind::kBackend,
     .default_text = "PipelineV3",
     .meaning = "replaces the whole scheduler",
     .global_only = true},
    {.name = "PipelineV3::backend",
     .kind = KeyKind::kBackend,
     .default_text = "BaselineSchedule",
     .meaning = "replaces the scheduler of the node"},
    {.name = "BaselineSchedule::backend",
     .kind = KeyKind::kBackend,
     .default_text = "Fusion",
     .meaning = "replaces the groups of `&`"},
    {.name = "Fusion::backend",
     .kind = KeyKind::kBackend,
     .default_text = "ContrastInstances",
     .meaning = "replaces the instances of a group"},
    {.name = "ContrastInstances::backend",
     .kind = KeyKind::kBackend,
     .default_text = "InstanceThread",
     .meaning = "replaces one instance and its thread"},
    {.name = "InstanceThread::backend",
     .kind = KeyKind::kBackend,
     .default_text = "",
     .meaning = "replaces what the thread runs; without it `backend`"},
};

constexpr std::array<std::string_view, 4> kChain = {"BaselineSchedule", "Fusion",
                                                    "ContrastInstances", "InstanceThread"};
constexpr std::array<std::string_view, 6> kReserved = {"global", "node_name", "data",
                                                       "result", "context",   "event"};
// Keys of the original that speak of other nodes: they are refused as not supported, not as typing
// errors.
constexpr std::array<std::string_view, 10> kSeveralNodes = {"next",
                                                            "map",
                                                            "filter",
                                                            "jump",
                                                            "split",
                                                            "merge",
                                                            "instances_grp",
                                                            "borrow_from",
                                                            "active_instances_grp",
                                                            "Interpreter::env"};

bool is_choice(std::string_view choices, std::string_view text) noexcept {
  while (!choices.empty()) {
    const std::size_t end = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, end) == text) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

bool is_number_of(const Key& key, std::string_view text) noexcept {
  const auto number = parse_number<double>(text);
  // "nan" compares false with every bound, and -0 would pass as 0.
  if (!number || !std::isfinite(*number) || std::signbit(*number)) return false;
  if (key.kind == KeyKind::kShare && *number == 0) return false;
  return *number <= static_cast<double>(key.high);
}

}  // namespace

std::span<const Key> key_table() noexcept { return kKeys; }

const Key* find_key(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kKeys, name, &Key::name);
  return found == std::end(kKeys) ? nullptr : found;
}

std::string allowed_text(const Key& key) {
  switch (key.kind) {
    case KeyKind::kBackend:
      return "a backend, such as A, A[B] or S[a,b]";
    case KeyKind::kCount:
      if (key.high == kAny) return fmt::format("a whole number from {}", key.low);
      return fmt::format("a whole number from {} to {}", key.low, key.high);
    case KeyKind::kMilliseconds:
      return fmt::format("milliseconds from 0 to {}, fractions too", key.high);
    case KeyKind::kShare:
      return fmt::format("a number above 0, at most {}", key.high);
    case KeyKind::kFlag:
      return "true or false";
    case KeyKind::kChoice:
      break;
  }
  std::string words(key.choices);
  for (std::size_t at = words.find('|'); at != words.npos; at = words.find('|', at))
    words.replace(at, 1, ", ");
  return "one of " + words;
}

bool takes(const Key& key, std::string_view text) noexcept {
  switch (key.kind) {
    case KeyKind::kBackend:
      return !text.empty();
    case KeyKind::kCount: {
      const auto number = parse_number<std::uint64_t>(text);
      return number && key.low <= *number && *number <= key.high;
    }
    case KeyKind::kMilliseconds:
    case KeyKind::kShare:
      return is_number_of(key, text);
    case KeyKind::kFlag:
      return is_choice("true|false|1|0", text);
    case KeyKind::kChoice:
      return is_choice(key.choices, text);
  }
  return false;
}

std::span<const std::string_view> default_chain() noexcept { return kChain; }

std::span<const std::string_view> reserved_names() noexcept { return kReserved; }

bool is_key_of_several_nodes(std::string_view name) noexcept {
  return std::ranges::find(kSeveralNodes, name) != kSeveralNodes.end();
}

}  // namespace corelane::scheduler
