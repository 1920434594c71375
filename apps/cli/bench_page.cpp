// The HTML page and the CSV of `corelane bench`. Pictures are inline SVG: no script, no network.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/load_generator.h"

namespace corelane::cli {
namespace {

constexpr int kWidth = 860;
constexpr std::array kColours{"#2a6fdb", "#d9822b", "#3a9b5c", "#8e44ad", "#c0392b", "#16a085"};

/// Names come from models and devices: text of a page and of attributes in quotes.
std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  return out;
}

/// 60 bins from the minimum to p99.5, the rest in the last one.
std::string histogram(const std::vector<Sample>& samples) {
  constexpr int kBins = 60;
  constexpr int kHeight = 150;
  std::vector<double> us;
  for (const auto& s : samples) us.push_back(to_us(s.latency));
  std::sort(us.begin(), us.end());
  if (us.empty()) return "<p>no samples</p>";
  const double lo = us.front();
  // A range of its own where all samples are alike, so that nothing is divided by zero.
  const double hi = std::max(
      us[static_cast<std::size_t>(static_cast<double>(us.size() - 1) * 0.995)], lo * 1.001 + 1e-3);
  std::array<std::size_t, kBins> bins{};
  for (const double v : us)
    bins[static_cast<std::size_t>(std::clamp((v - lo) / (hi - lo) * kBins, 0.0, kBins - 1.0))]++;
  const double top = static_cast<double>(*std::max_element(bins.begin(), bins.end()));
  std::string svg =
      fmt::format("<svg viewBox='0 0 {} {}' width='{}'>", kWidth, kHeight + 22, kWidth);
  const double w = static_cast<double>(kWidth) / kBins;
  for (int i = 0; i < kBins; ++i) {
    const double h = static_cast<double>(bins[static_cast<std::size_t>(i)]) / top * kHeight;
    svg += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'/>",
                       i * w, kHeight - h, w - 1, h, kColours[0]);
  }
  return svg + fmt::format(
                   "<text x='0' y='{0}'>{1:.1f} us</text><text x='{2}' y='{0}' "
                   "text-anchor='end'>{3:.1f} us and more</text></svg>",
                   kHeight + 17, lo, kWidth, hi);
}

/// The device part of the last 300 inferences, one row a core.
std::string timeline(const std::vector<Sample>& samples, const std::vector<std::string>& cores) {
  constexpr int kRow = 22;
  const std::size_t first = samples.size() > 300 ? samples.size() - 300 : 0;
  if (samples.empty()) return {};
  const auto t0 = samples[first].due;
  TimePoint t1 = t0;
  for (std::size_t i = first; i < samples.size(); ++i)
    t1 = std::max(t1, samples[i].due + samples[i].latency);
  const double scale = (kWidth - 70) / std::max(1.0, to_us(t1 - t0));
  const int height = static_cast<int>(cores.size()) * kRow + 20;
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' width='{}'>", kWidth, height, kWidth);
  for (std::size_t c = 0; c < cores.size(); ++c) {
    const int y = static_cast<int>(c) * kRow;
    svg += fmt::format("<text x='0' y='{}'>{}</text>", y + 15, escape(cores[c]));
    for (std::size_t i = first; i < samples.size(); ++i) {
      const auto& s = samples[i];
      if (((s.core_bits >> c) & 1U) == 0) continue;
      // A sample has no start of its own on the device: counted back from its end.
      const auto end = s.due + s.latency - s.times.copy_out;
      const double x = 70 + to_us(end - s.times.device - t0) * scale;
      svg += fmt::format("<rect x='{:.1f}' y='{}' width='{:.2f}' height='{}' fill='{}'/>", x, y + 3,
                         std::max(0.3, to_us(s.times.device) * scale), kRow - 6,
                         kColours[c % kColours.size()]);
    }
  }
  return svg + fmt::format("<text x='70' y='{}'>last {} inferences, {:.2f} ms</text></svg>",
                           height - 4, samples.size() - first, to_us(t1 - t0) / 1000);
}

std::string table(const Json& report) {
  std::string html = "<table><tr>";
  for (const auto& column : bench_columns()) html += fmt::format("<th>{}</th>", column.title);
  for (const auto& point : report["points"]) {
    html += "</tr><tr>";
    for (const auto& column : bench_columns())
      html += fmt::format("<td>{}</td>", column.text(point));
  }
  return html + "</tr></table><p>Times are in us; queue to copy out are medians.</p>";
}

}  // namespace

std::string BenchColumn::text(const Json& point) const {
  return fmt::format("{:.{}f}", point.at(Json::json_pointer(path)).get<double>(), digits);
}

const std::vector<BenchColumn>& bench_columns() {
  // One list for the terminal and the page, so that both show the same figures.
  static const std::vector<BenchColumn> columns{
      {"callers", "/concurrency", 0},   {"rate/s", "/rate", 0},
      {"done", "/inferences", 0},       {"failed", "/failed", 0},
      {"per second", "/throughput", 1}, {"p50 us", "/latency_us/p50", 1},
      {"p90", "/latency_us/p90", 1},    {"p95", "/latency_us/p95", 1},
      {"p99", "/latency_us/p99", 1},    {"p99.9", "/latency_us/p99.9", 1},
      {"queue", "/queue_us/p50", 1},    {"copy in", "/copy_in_us/p50", 1},
      {"device", "/device_us/p50", 1},  {"copy out", "/copy_out_us/p50", 1}};
  return columns;
}

std::string bench_page(const Json& report, const std::vector<LoadResult>& results,
                       const std::vector<std::string>& cores) {
  // One file that needs no other: no script, font or picture from elsewhere.
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><title>corelane bench</title>"
      "<style>body{{font:14px sans-serif;margin:2em;max-width:{}px;color:#222}}table{{border-"
      "collapse:collapse;margin:1em 0}}td,th{{border:1px solid #ccc;padding:3px 8px;text-align:"
      "right}}text{{font:12px sans-serif;fill:#444}}h2{{margin-top:1.6em}}</style>"
      "<h1>{}</h1><p>{} on {}, {}</p>{}",
      kWidth + 300, escape(report["model"].get<std::string>()),
      escape(report["corelane"].get<std::string>()), escape(report["device"].get<std::string>()),
      escape(report["engine"].get<std::string>()), table(report));
  for (const auto& r : results) {
    html += fmt::format("<h2>{} caller{}{}</h2>{}<h3>Latency</h3>{}<h3>Cores</h3>{}",
                        r.point.concurrency, r.point.concurrency == 1 ? "" : "s",
                        r.point.rate > 0 ? fmt::format(", {:.0f}/s{}", r.point.rate,
                                                       r.point.poisson ? " Poisson" : "")
                                         : "",
                        r.failed == 0 ? ""
                                      : fmt::format("<p>{} failed, the first with: {}</p>",
                                                    r.failed, escape(r.first_error.to_string())),
                        histogram(r.samples), timeline(r.samples, cores));
  }
  return html + "</html>\n";
}

std::string bench_csv(const std::vector<LoadResult>& results) {
  std::string csv =
      "concurrency,rate,due_us,latency_us,queue_us,copy_in_us,device_us,copy_out_us,cores\n";
  for (const auto& r : results) {
    for (const auto& s : r.samples) {
      // Microseconds from the first inference of this point.
      csv += fmt::format("{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:#x}\n",
                         r.point.concurrency, r.point.rate, to_us(s.due - r.samples.front().due),
                         to_us(s.latency), to_us(s.times.queue), to_us(s.times.copy_in),
                         to_us(s.times.device), to_us(s.times.copy_out), s.core_bits);
    }
  }
  return csv;
}

}  // namespace corelane::cli
