/// What every subcommand of `corelane` shares: options, exit codes, output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/runtime/program.h"

namespace corelane::cli {

using Json = nlohmann::ordered_json;

/// Stable exit codes, printed by `corelane --help` and in docs/cli.md.
enum Exit : int {
  kExitOk = 0,
  kExitCheckFailed = 1,  ///< `compare` beyond tolerance, `doctor` found a problem.
  kExitUsage = 2,        ///< Unknown option, missing argument.
  kExitCaller = 3,       ///< Status 1xx: a name, shape, value or file that does not fit.
  kExitData = 4,         ///< Status 2xx: a broken, foreign or refused model.
  kExitResource = 5,     ///< Status 3xx: memory, cores, files.
  kExitExecution = 6,    ///< Status 4xx: timeout, fault, engine.
  kExitInternal = 7,
  kExitInterrupted = 130,  ///< Ended by Ctrl-C; `bench` reports what it measured so far.
};
int exit_code(const Status& status) noexcept;

/// Options before the subcommand.
struct Global {
  bool json = false;
  bool quiet = false;
};

/// A subcommand registers itself and returns what to do when it was chosen.
using Action = std::function<Result<int>()>;
using Register = Action (*)(CLI::App& parent, Global& global);

Action add_devices(CLI::App& parent, Global& global);
Action add_doctor(CLI::App& parent, Global& global);
Action add_compile(CLI::App& parent, Global& global);
Action add_inspect(CLI::App& parent, Global& global);
Action add_validate(CLI::App& parent, Global& global);
Action add_run(CLI::App& parent, Global& global);
Action add_bench(CLI::App& parent, Global& global);
Action add_compare(CLI::App& parent, Global& global);
Action add_qaic_runner(CLI::App& parent, Global& global);
Action add_completion(CLI::App& parent, Global& global);

/// Prints to stdout (the CLI is a program; the library never does). A failure to write is found
/// at the end, by flush_output().
void print(const std::string& text);
void print_json(const Json& value);
/// As print_json() writes it, on several lines; what is not UTF-8 is replaced.
std::string json_text(const Json& value);
/// Says a failure on stderr; with `json` also on stdout, in one document with `found`, what the
/// command has to report nevertheless. The exit code.
int report_failure(const Status& status, bool json, Json found = Json::object());
/// What a command found, and how it ended: prints `found` with --json, else `text`, and the failure
/// as report_failure() does.
int print_outcome(const Global& global, const Json& found, const std::string& text,
                  const Result<int>& outcome);
/// A name of a model or a device in a table: control characters are written out.
std::string shown(const Json& text);
/// `json` with --json, else `text`.
void print(const Global& global, const Json& json, const std::string& text);
/// kIo when something printed could not be written (a full disk, a closed pipe).
Status flush_output();

/// Splits "name=value"; kInvalidArgument names the option and an example.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                             const std::string& option);
/// The same for "name=file", of names that hold no "=": the path may.
Result<std::pair<std::string, std::string>> split_file(const std::string& text,
                                                       const std::string& option);
/// "0.5,1,2" as floats, at least one.
Result<std::vector<float>> parse_floats(const std::string& text, const std::string& option);
/// "name=1,3,224,224" options as a map.
Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& items);

/// How a program is opened; the same options in run, bench and compare.
struct OpenArguments {
  std::string model;
  std::string part;
  std::string device;
  std::string precision = "f32";
  std::vector<std::string> shapes;
  bool fast_math = false;
  std::string engine = "auto";
  bool no_static_forms = false;
  bool no_cache = false;
  double load_seconds = 600;
  std::uint64_t load_memory = 0;
  bool profile = false;
  std::vector<std::string> exposed;
};
void add_open_options(CLI::App& app, OpenArguments& arguments);
/// Load options without opening.
Result<LoadOptions> load_options(const OpenArguments& arguments);
Result<Program> open_program(const OpenArguments& arguments);

/// Shapes for a context: `--shape` for program files with open dimensions, else the program's
/// own, completed by those `offered` by name (what the inputs' files have); of a program with sets
/// of shapes the first set that they fit. A dimension's name
/// means one size in all inputs. kShapeMismatch names the inputs that still have open dimensions.
Status choose_shapes(Context& context, const Program& program, const OpenArguments& arguments,
                     const std::map<std::string, Shape>& offered = {});
/// A new context with these shapes.
Result<Context> open_context(const Program& program, const OpenArguments& arguments,
                             const std::map<std::string, Shape>& offered = {});

Json to_json(const TensorDesc& desc);
Json to_json(const ProgramDescription& description);
Json to_json(const device::MemoryFigures& figures);
/// Output and input of each; an empty array without any.
Json states_json(const ProgramDescription& description);
/// A line for people.
std::string state_text(const StateDecl& state);
/// The prepared forms of a program, the first of which serves where no other does.
Json forms_json(const Program& program);
/// A line for each of them, where there are several.
std::string forms_text(const Program& program);
/// "OpenVINO 2026.4.1", or "ONNX Runtime 1.31.1: <why>" where it is not the device's own engine.
std::string engine_text(const device::EngineChoice& choice);
double to_us(Duration d) noexcept;
std::string human_bytes(std::uint64_t n);

}  // namespace corelane::cli
