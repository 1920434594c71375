#include "cli/top/core_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/options.h"
#include "corelane/base/printable.h"

namespace corelane::cli {
namespace {

const WatchedCore* find(const CoreLook& look, const WatchedCore& core) {
  const auto found = std::ranges::find_if(look.cores, [&](const WatchedCore& c) {
    return c.device == core.device && c.core == core.core;
  });
  return found == look.cores.end() ? nullptr : &*found;
}

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", *share * 100) : "-";
}

std::string number(const auto& value, const char* form = "{}") {
  return value ? fmt::format(fmt::runtime(form), *value) : "-";
}

std::string holder_text(const std::string& process, const std::string& program) {
  if (process.empty()) return "-";
  return printable(program.empty() ? process : fmt::format("{} ({})", process, program));
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::vector<CoreRow> core_rows(const CoreLook& before, const CoreLook& now) {
  std::vector<CoreRow> rows;
  const double time = seconds(now.at - before.at);
  for (const WatchedCore& core : now.cores) {
    CoreRow& row = rows.emplace_back();
    row.device = core.device;
    row.core = core.core;
    if (!core.holder) continue;
    row.process = core.holder->process;
    row.program = core.holder->program;
    if (!core.holder->figures) continue;
    const device::LeaseFigures& figures = *core.holder->figures;
    // What follows stays empty where it cannot be told: a core without a holder, or without
    // figures.
    row.set = figures.programs;
    row.jobs = figures.jobs;
    row.waiting = figures.waiting;
    const WatchedCore* const earlier = find(before, core);
    // Figures that go back are of another lease, also where a process has the number of an earlier
    // one.
    const bool same = earlier != nullptr && earlier->holder && earlier->holder->figures &&
                      earlier->holder->process == core.holder->process &&
                      earlier->holder->figures->jobs <= figures.jobs &&
                      earlier->holder->figures->busy <= figures.busy;
    if (!same || time <= 0) continue;
    const device::LeaseFigures& old = *earlier->holder->figures;
    // The holder wrote them at moments of its own.
    row.busy = std::clamp(seconds(figures.busy - old.busy) / time, 0.0, 1.0);
    row.rate = static_cast<double>(figures.jobs - old.jobs) / time;
  }
  return rows;
}

std::vector<SetRow> set_rows(const std::vector<CoreRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, SetRow> sets;
  for (const CoreRow& row : rows) {
    if (row.process.empty()) continue;
    SetRow& set = sets[{row.device, row.process, row.set}];
    set.device = row.device;
    set.process = row.process;
    set.program = row.program;
    set.set = row.set;
    set.cores.push_back(row.core);
    if (row.busy) set.busy = set.busy.value_or(0) + *row.busy;
    if (row.rate) set.rate = set.rate.value_or(0) + *row.rate;
    if (row.waiting) set.waiting = std::max(set.waiting.value_or(0), *row.waiting);
  }
  std::vector<SetRow> list;
  for (auto& [key, set] : sets) {
    if (set.busy) *set.busy /= static_cast<double>(set.cores.size());
    list.push_back(std::move(set));
  }
  return list;
}

std::string watch_table(const std::vector<CoreRow>& rows) {
  std::string text;
  std::string device;
  for (const CoreRow& row : rows) {
    if (text.empty() || row.device != device) {
      device = row.device;
      text += fmt::format("{}\n{:>4} {:>8} {:>10} {:>10} {:>6}  {:<24} {}\n", printable(device),
                          "core", "busy", "jobs", "jobs/s", "queue", "holder", "programs");
    }
    text += fmt::format("{:>4} {:>8} {:>10} {:>10} {:>6}  {:<24} {}\n", row.core, percent(row.busy),
                        number(row.jobs), number(row.rate, "{:.1f}"), number(row.waiting),
                        holder_text(row.process, row.program),
                        row.set.empty() ? "-" : printable(row.set));
  }
  const auto sets = set_rows(rows);
  if (sets.empty()) return text + "no core is held by a lease\n";
  text += fmt::format("{:>13} {:>10} {:>10} {:>6}  {:<24} {}\n", "busy", "cores", "jobs/s", "queue",
                      "holder", "programs");
  for (const SetRow& set : sets) {
    text += fmt::format("{:>13} {:>10} {:>10} {:>6}  {:<24} {}\n", percent(set.busy),
                        fmt::format("{}", fmt::join(set.cores, ",")), number(set.rate, "{:.1f}"),
                        number(set.waiting), holder_text(set.process, set.program),
                        set.set.empty() ? "-" : printable(set.set));
  }
  return text;
}

Json watch_json(const std::vector<CoreRow>& rows, Duration period) {
  Json out{{"seconds", seconds(period)}, {"cores", Json::array()}, {"sets", Json::array()}};
  for (const CoreRow& row : rows) {
    out["cores"].push_back({{"device", row.device},
                            {"core", row.core},
                            {"process", row.process},
                            {"program", row.program},
                            {"set", row.set},
                            {"busy", or_null(row.busy)},
                            {"jobs", or_null(row.jobs)},
                            {"jobs_per_second", or_null(row.rate)},
                            {"waiting", or_null(row.waiting)}});
  }
  for (const SetRow& set : set_rows(rows)) {
    out["sets"].push_back({{"device", set.device},
                           {"set", set.set},
                           {"process", set.process},
                           {"program", set.program},
                           {"cores", set.cores},
                           {"busy", or_null(set.busy)},
                           {"jobs_per_second", or_null(set.rate)},
                           {"waiting", or_null(set.waiting)}});
  }
  return out;
}

Result<CoreLook> CoreWatch::look() const {
  CoreLook one;
  one.at = clock_->now();
  CORELANE_ASSIGN(one.cores, hooks_.look());
  return one;
}

bool CoreWatch::wait(TimePoint until) const {
  for (TimePoint now = clock_->now(); now < until; now = clock_->now()) {
    if (hooks_.stop()) return false;
    hooks_.sleep(std::min(until, now + Interrupts::kStep));
  }
  return !hooks_.stop();
}

Status CoreWatch::run(std::uint64_t rounds, Duration period) {
  CORELANE_ASSIGN(CoreLook before, look());
  for (std::uint64_t round = 0; rounds == 0 || round < rounds; ++round) {
    if (!wait(before.at + period)) return {};
    CORELANE_ASSIGN(CoreLook now, look());
    hooks_.show(core_rows(before, now), now.at - before.at);
    before = std::move(now);
  }
  return {};
}

}  // namespace corelane::cli
