#include "scheduler/gather/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace corelane::scheduler {

std::string_view reason_name(Reason reason) noexcept {
  switch (reason) {
    case Reason::kFull:
      return "full";
    case Reason::kIdle:
      return "idle";
    case Reason::kTimeout:
      return "timeout";
    case Reason::kDeadline:
      return "deadline";
    case Reason::kFlush:
      return "flush";
    case Reason::kIsolate:
      return "isolate";
  }
  return "unknown";
}

Tally::Tally(std::uint32_t largest, std::size_t records) : kept_(records) {
  figures_.batch_sizes.resize(std::size_t{std::min(largest, kSizes)} + 1);
  figures_.queue_times.resize(kQueueTimeBounds.size() + 1);
}

void Tally::entered(std::uint32_t items, std::uint64_t bytes) noexcept {
  ++figures_.waiting;
  figures_.waiting_items += items;
  figures_.waiting_bytes += bytes;
}

void Tally::left(std::uint32_t items, std::uint64_t bytes) noexcept {
  --figures_.waiting;
  figures_.waiting_items -= items;
  figures_.waiting_bytes -= bytes;
}

void Tally::waited(Duration time) noexcept {
  const auto bucket = std::ranges::lower_bound(kQueueTimeBounds, time) - kQueueTimeBounds.begin();
  ++figures_.queue_times[static_cast<std::size_t>(bucket)];
  figures_.queue_time_sum += time;
}

void Tally::ended(RequestState how) noexcept {
  switch (how) {
    case RequestState::kDone:
      ++figures_.done;
      break;
    case RequestState::kFailed:
      ++figures_.failed;
      break;
    case RequestState::kRejected:
      ++figures_.rejected;
      break;
    case RequestState::kCancelled:
      ++figures_.cancelled;
      break;
    case RequestState::kExpired:
      ++figures_.expired;
      break;
    case RequestState::kWaiting:
    case RequestState::kRunning:
      break;
  }
}

void Tally::batch(BatchRecord record) {
  ++figures_.batches;
  figures_.batch_items += record.items;
  figures_.padding_items += record.padding;
  ++figures_.reasons[static_cast<std::size_t>(record.reason)];
  // The last bucket has its own size and all larger ones.
  ++figures_.batch_sizes[std::min<std::size_t>(record.items, figures_.batch_sizes.size() - 1)];
  figures_.busy_sum += record.ended - record.started;
  records_.push_back(std::move(record));
  keep(kept_);
}

void Tally::keep(std::size_t records) {
  kept_ = records;
  while (records_.size() > kept_) records_.pop_front();
}

/// Texts go in as they are: a node's name has no character that a label would have to escape
/// (node_toml.cpp), and the other labels are this file's.
std::string prometheus_of(const Statistics& figures, std::string_view name) {
  std::string text;
  auto out = std::back_inserter(text);
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  const auto family = [&](std::string_view metric, std::string_view type, std::string_view help) {
    fmt::format_to(out, "# HELP corelane_scheduler_{0} {2}\n# TYPE corelane_scheduler_{0} {1}\n",
                   metric, type, help);
  };
  family("requests_total", "counter", "Requests that ended, by outcome.");
  const std::pair<std::string_view, std::uint64_t> outcomes[] = {{"done", figures.done},
                                                                 {"failed", figures.failed},
                                                                 {"rejected", figures.rejected},
                                                                 {"cancelled", figures.cancelled},
                                                                 {"expired", figures.expired}};
  for (const auto& [outcome, count] : outcomes)
    fmt::format_to(out, "corelane_scheduler_requests_total{{node=\"{}\",outcome=\"{}\"}} {}\n",
                   name, outcome, count);
  family("requests", "gauge", "Requests without an answer.");
  fmt::format_to(out, "corelane_scheduler_requests{{node=\"{}\",state=\"waiting\"}} {}\n", name,
                 figures.waiting);
  fmt::format_to(out, "corelane_scheduler_requests{{node=\"{}\",state=\"running\"}} {}\n", name,
                 figures.running);
  family("batches_total", "counter", "Calls of backends, by what let them leave the line.");
  for (std::size_t i = 0; i < kReasons; ++i)
    fmt::format_to(out, "corelane_scheduler_batches_total{{node=\"{}\",reason=\"{}\"}} {}\n", name,
                   reason_name(static_cast<Reason>(i)), figures.reasons[i]);
  family("batch_items", "histogram", "Items of a call, padding left out.");
  std::uint64_t sum = 0;
  // Without the last bucket, which has no upper bound: it counts in +Inf alone.
  for (std::size_t size = 1; size + 1 < figures.batch_sizes.size(); ++size) {
    sum += figures.batch_sizes[size];
    fmt::format_to(out, "corelane_scheduler_batch_items_bucket{{node=\"{}\",le=\"{}\"}} {}\n", name,
                   size, sum);
  }
  fmt::format_to(out, "corelane_scheduler_batch_items_bucket{{node=\"{}\",le=\"+Inf\"}} {}\n", name,
                 figures.batches);
  fmt::format_to(out, "corelane_scheduler_batch_items_sum{{node=\"{}\"}} {}\n", name,
                 figures.batch_items);
  fmt::format_to(out, "corelane_scheduler_batch_items_count{{node=\"{}\"}} {}\n", name,
                 figures.batches);
  family("queue_seconds", "histogram", "Time in the line before a call.");
  sum = 0;
  for (std::size_t i = 0; i < kQueueTimeBounds.size(); ++i) {
    sum += figures.queue_times[i];
    fmt::format_to(out, "corelane_scheduler_queue_seconds_bucket{{node=\"{}\",le=\"{}\"}} {}\n",
                   name, seconds(kQueueTimeBounds[i]), sum);
  }
  sum += figures.queue_times.back();
  fmt::format_to(out, "corelane_scheduler_queue_seconds_bucket{{node=\"{}\",le=\"+Inf\"}} {}\n",
                 name, sum);
  fmt::format_to(out, "corelane_scheduler_queue_seconds_sum{{node=\"{}\"}} {}\n", name,
                 seconds(figures.queue_time_sum));
  fmt::format_to(out, "corelane_scheduler_queue_seconds_count{{node=\"{}\"}} {}\n", name, sum);
  family("busy_seconds_total", "counter", "Time of all instances in calls.");
  fmt::format_to(out, "corelane_scheduler_busy_seconds_total{{node=\"{}\"}} {}\n", name,
                 seconds(figures.busy_sum));
  return text;
}

}  // namespace corelane::scheduler
