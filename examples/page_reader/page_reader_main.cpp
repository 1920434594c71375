// Reads a page: finds and compiles the models, runs them, prints the text and writes the results.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "corelane/base/file.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/trace.h"
#include "page_drawing.h"
#include "page_pipeline.h"
#include "page_reader_options.h"
#include "page_summary.h"
#include "picture_file.h"
#include "progress.h"

namespace page_reader {
namespace {

namespace fs = std::filesystem;
using corelane::Result;
using corelane::Status;

/// Enough for any --repeat a person waits for; older records are dropped then.
constexpr std::size_t kTraceRecords = 1U << 16U;

using Device = std::shared_ptr<corelane::device::Device>;

Result<ModelSet> prepare(const CommandLine& options, const Device& device) {
  ModelSetOptions wanted;
  wanted.models_dir = options.models_dir;
  wanted.programs_dir = options.out / "programs";
  wanted.device = device;
  wanted.device_spec = options.device;
  wanted.page_contexts = options.in_flight;
  // One more than cores: the next line is ready when a core becomes free.
  wanted.line_contexts = device->info().cores.size() + 1;
  wanted.detection_cores = options.detection_cores;
  Progress progress("models", stderr_is_terminal());
  return open_models(wanted, [&](std::size_t step, std::size_t steps, std::string_view what) {
    progress.show(step, steps, what);
  });
}

Result<std::vector<PageResult>> read_pages(PageReader& reader, const Picture& page,
                                           const CommandLine& options, TensorDump* dump) {
  Progress progress("reading", stderr_is_terminal());
  PageReader::Options how;
  how.times = options.repeat;
  how.in_flight = options.in_flight;
  how.dump = dump;
  if (stderr_is_terminal()) {
    how.on_progress = [&](std::size_t done, std::size_t expected) {
      progress.show(done, expected, fmt::format("{} inferences done", done));
    };
  } else {
    progress.show(0, 1, fmt::format("'{}', {} x", options.page.string(), options.repeat));
  }
  return reader.read(page, how);
}

void print_text(const PageResult& result, std::span<const std::string> labels) {
  const Orientation& o = result.orientation;
  fmt::print("page: {} x {}, turned by {} degrees ({:.0f} % sure){}\n", result.width, result.height,
             o.degrees, o.score * 100,
             o.quarters_back() != 0 ? ", put upright"
             : o.degrees != 0       ? ", left as it is"
                                    : "");
  fmt::print("layout:");
  if (result.regions.empty()) fmt::print(" nothing found");
  for (const Region& r : result.regions)
    fmt::print(" {} ({:.0f} %)", labels[static_cast<std::size_t>(r.label)], r.score * 100);
  fmt::print("\n\n");
  if (result.lines.empty()) fmt::print("no text found\n");
  for (std::size_t i = 0; i < result.lines.size(); ++i)
    fmt::print("{:>3}  {}\n", i + 1, result.lines[i].text.text);
  fmt::print("\n");
}

/// Everything that one run leads to.
struct Outcome {
  const CommandLine& options;
  const Picture& page;
  const Device& device;
  std::span<const corelane::device::JobRecord> records;
  std::span<const PageResult> results;
  std::span<const std::string> labels;
  const RunSummary& summary;
};

Status write_results(const Outcome& o, Font& font) {
  const PageResult& first = o.results.front();
  const auto& info = o.device->info();
  const fs::path picture = o.options.out / "annotated.png";
  const fs::path trace = o.options.out / "trace.json";
  const fs::path results = o.options.out / "results.json";
  const std::string title =
      fmt::format("{}: {} lines read on {}", o.options.page.filename().string(), first.lines.size(),
                  info.instance);
  CORELANE_TRY(save_png(picture, draw_result(turn(o.page, first.orientation.quarters_back()), first,
                                             o.labels, title, font)));
  const auto spans = trace_spans(o.records);
  CORELANE_TRY(corelane::write_file_atomic(
      trace, corelane::as_byte_span(corelane::chrome_trace(info, spans))));
  CORELANE_TRY(corelane::write_file_atomic(
      results, corelane::as_byte_span(
                   results_json(o.options.page.string(), first, o.labels, o.summary, info))));
  fmt::print(
      "\nannotated page  {}\ntrace           {}  (open in ui.perfetto.dev or chrome://tracing)\n"
      "results         {}\nprogram files   {}\n",
      picture.string(), trace.string(), results.string(), (o.options.out / "programs").string());
  return {};
}

Status run(const CommandLine& options) {
  CORELANE_ASSIGN(const Picture page, load_picture(options.page));
  CORELANE_ASSIGN(Font font, Font::open(options.font));
  CORELANE_ASSIGN(const Device device, corelane::device::open_device(options.device));
  CORELANE_ASSIGN(ModelSet models, prepare(options, device));
  CORELANE_ASSIGN(PageReader reader, PageReader::create(models));
  std::unique_ptr<TensorDump> dump;
  if (!options.dump.empty()) {
    // The macro is two statements.
    CORELANE_ASSIGN(dump, TensorDump::create(options.dump));
  }
  CORELANE_TRY(device->set_trace(kTraceRecords));
  const corelane::TimePoint begin = corelane::real_clock()->now();
  CORELANE_ASSIGN(const auto results, read_pages(reader, page, options, dump.get()));
  const corelane::Duration reading = corelane::real_clock()->now() - begin;
  CORELANE_ASSIGN(const auto records, device->read_trace());
  const RunSummary summary =
      summarize_run(model_shares(models), records, device->info().cores.size(), results, reading);
  print_text(results.front(), reader.labels());
  fmt::print("{}", summary_table(summary, device->info()));
  CORELANE_TRY(
      write_results({options, page, device, records, results, reader.labels(), summary}, font));
  if (dump != nullptr) {
    CORELANE_ASSIGN(const fs::path list, dump->finish());
    fmt::print("tensors         {}\n", list.string());
  }
  return {};
}

}  // namespace
}  // namespace page_reader

int main(int argc, char** argv) {
  try {
    const auto parsed = page_reader::parse_command_line(argc, argv);
    if (parsed.exit) return *parsed.exit;
    const corelane::Status status = page_reader::run(parsed.options);
    if (!status.ok())
      std::fputs(fmt::format("page_reader: error: {}\n", status.to_string()).c_str(), stderr);
    return page_reader::exit_code(status);
  } catch (const std::exception& problem) {
    std::fputs(fmt::format("page_reader: error: {}\n", problem.what()).c_str(), stderr);
    return page_reader::kExitInternal;
  }
}
