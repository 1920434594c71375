#include "adapters/rknn/checks/rknn_dump.h"

#include <algorithm>
#include <set>

#include "adapters/rknn/api/rknn_log.h"
#include "adapters/rknn/memory/rknn_io_mem.h"
#include "adapters/rknn/model/rknn_frame.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "base/trust/secure_environment.h"
#include "corelane/tensor/convert.h"

namespace corelane::rknn {
namespace {

/// Values of these nodes may not be tensors.
bool may_be_no_tensor(const NetworkNode& node) {
  return node.type.find("Sequence") != std::string::npos || node.type.starts_with("Optional") ||
         node.type == "Loop" || node.type == "If" || node.type == "Scan" ||
         node.type.starts_with("String");
}

/// A tensor in memory of its own.
struct Converted {
  ByteVector bytes;
  MutableTensorView view;
};

Result<Converted> converted(const TensorView& from, DType dtype, const Quant& quant,
                            const ConvertOptions& options = {}) {
  Converted to;
  to.bytes.resize(dtype_bytes(dtype, from.shape.elements().value_or(0)));
  to.view = {to.bytes.data(), to.bytes.size(), dtype, from.shape, {}, quant};
  if (!to.bytes.empty()) CORELANE_TRY(convert(from, to.view, options));
  return to;
}

/// One file for each tensor, and a second one for its integer form.
class FrameFiles {
 public:
  FrameFiles(std::filesystem::path folder, std::uint64_t frame)
      : folder_(std::move(folder)), frame_(frame) {}

  void write(std::string_view what, std::string_view name, const TensorView& tensor,
             const IoEntry* entry) {
    note(write_npy(path(what, name, ""), tensor));
    if (entry != nullptr && entry->quant_dtype != DType::kUndefined && dump_quantized())
      note(write_quantized(path(what, name, "_quant"), tensor, *entry));
    ++place_;
  }
  void note(const Status& status) {
    if (!status.ok() && first_.ok()) first_ = status;
  }
  const Status& status() const noexcept { return first_; }
  unsigned count() const noexcept { return place_; }

 private:
  std::filesystem::path path(std::string_view what, std::string_view name,
                             std::string_view ending) const {
    return folder_ /
           fmt::format("{:06}_{:03}_{}_{}{}.npy", frame_, place_, what, file_word(name), ending);
  }
  static Status write_quantized(const std::filesystem::path& path, const TensorView& tensor,
                                const IoEntry& entry) {
    CORELANE_ASSIGN(Converted small, converted(tensor, entry.quant_dtype, entry.quant));
    small.view.quant = {};  // The integers themselves.
    return write_npy(path, small.view);
  }

  std::filesystem::path folder_;
  std::uint64_t frame_;
  unsigned place_ = 0;
  Status first_;
};

/// Writes an input as the network gets it: bound memory is converted first.
Status write_own_form(FrameFiles& files, const TensorView& view, const ConvertOptions& options,
                      const IoEntry& entry) {
  CORELANE_ASSIGN(const Converted own, converted(view, entry.desc.dtype, {}, options));
  files.write("input", entry.desc.name, own.view, &entry);
  return {};
}

}  // namespace

std::filesystem::path dump_directory() {
  const char* const text = environment("RKNN_DUMP_DIR");
  return text == nullptr || *text == '\0' ? "." : text;
}

bool dump_quantized() {
  const char* const text = environment("RKNN_DUMP_QUANT");
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

/// File systems take 255 bytes; places, numbers and the ending need the rest.
std::string file_word(std::string_view name) {
  constexpr std::size_t kLongest = 120;
  std::string word(name.substr(0, kLongest));
  for (char& c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  return word.empty() ? "unnamed" : word;
}

std::vector<std::string> dumped_values(const std::vector<NetworkNode>& nodes,
                                       const ProgramDescription& description) {
  std::set<std::string> known;
  for (const IoEntry& entry : description.outputs) known.insert(entry.desc.name);
  std::vector<std::string> values;
  for (const NetworkNode& node : nodes) {
    if (node.type == "Constant" || may_be_no_tensor(node)) continue;
    for (const TensorDesc& output : node.outputs)
      if (!output.name.empty() && known.insert(output.name).second) values.push_back(output.name);
  }
  return values;
}

/// Loads twice: the nodes of a program are known once it is loaded. Without the cache, which would
/// be filled with programs that nobody runs again.
Result<Program> load_dumped(const LoadOptions& options,
                            const std::function<Result<Program>(const LoadOptions&)>& load) {
  auto program = load(options);
  if (!program || !log::enabled(log::Level::kDump)) return program;
  auto nodes = program->nodes();
  if (!nodes) {
    log::line(log::Level::kWarn, "dump: only inputs and outputs: {}", nodes.error().to_string());
    return program;
  }
  LoadOptions more = options;
  more.exposed_values = dumped_values(*nodes, program->description());
  more.cache = false;
  auto again = load(more);
  if (again) return again;
  log::line(log::Level::kWarn,
            "dump: only inputs and outputs, the values between cannot be had: {}",
            again.error().to_string());
  return program;
}

namespace {

/// A failure of one tensor leaves the others to be written.
void dump_inputs(FrameFiles& files, const ModelFacts& facts, const IoMemory& io_memory,
                 Frame& frame) {
  for (std::size_t i = 0; i < facts.description->inputs.size(); ++i) {
    const IoEntry& entry = facts.description->inputs[i];
    const auto bound = io_memory.input_plan(i);
    if (!bound)
      files.note(bound.error());
    else if (*bound)
      files.note(write_own_form(files, (*bound)->view, (*bound)->convert, entry));
    else if (auto view = frame.context.input(i))
      files.note(write_own_form(files, *view, {}, entry));
  }
}

/// Values of nodes first, in the order of the network.
void dump_outputs(FrameFiles& files, const ModelFacts& facts, const Frame& frame) {
  const std::size_t own = facts.description->outputs.size();
  const std::vector<TensorDesc> descs = frame.context.outputs();
  for (std::size_t k = 0; k < descs.size(); ++k) {
    const std::size_t i = (own + k) % descs.size();
    const auto view = frame.context.output(i);
    if (view)
      files.write(i < own ? "output" : "layer", descs[i].name, *view,
                  i < own ? &facts.description->outputs[i] : nullptr);
    else
      files.note(view.error());
  }
}

void dump(const ModelFacts& facts, const IoMemory& io_memory, Frame& frame) {
  const std::filesystem::path folder =
      dump_directory() / fmt::format("rknn_dump_{:x}", facts.number);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  FrameFiles files(folder, frame.id);
  if (problem) {
    files.note(error(Code::kIo, "'{}' cannot be made: {}", folder.string(), problem.message()));
  } else {
    dump_inputs(files, facts, io_memory, frame);
    dump_outputs(files, facts, frame);
  }
  if (!files.status().ok())
    log::line(log::Level::kWarn, "dump of frame {}: {}", frame.id, files.status().to_string());
  log::line(log::Level::kDump, "dump of frame {}: {} tensors in {}", frame.id, files.count(),
            folder.string());
}

}  // namespace

/// A line of the log for each line of the table, so that each has the log's head.
void log_run(const ModelFacts& facts, const Queries& queries, const IoMemory& io_memory,
             Frame& frame) {
  const std::string table = queries.layer_table();
  for (std::size_t at = 0; at < table.size();) {
    const std::size_t end = std::min(table.find('\n', at), table.size());
    log::line(log::Level::kLayers, "{}", std::string_view(table).substr(at, end - at));
    at = end + 1;
  }
  if (log::enabled(log::Level::kDump)) dump(facts, io_memory, frame);
}

}  // namespace corelane::rknn
