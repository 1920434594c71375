#include "cli/qaic/runner_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "corelane/base/file.h"
#include "corelane/device/buffer.h"
#include "corelane/runtime/program.h"

namespace corelane::cli {
namespace {

/// Reads files while there is room for them.
class Loader {
 public:
  explicit Loader(std::uint64_t megabytes) : limit_(megabytes * 1'000'000) {}

  Result<ByteVector> read(const std::string& path) {
    CORELANE_ASSIGN(const MappedFile file, MappedFile::open(path));
    if (file.bytes().size() > limit_ - used_) {
      return error(Code::kOutOfMemory,
                   "'{}': with its {} bytes the files take more than the {} MB of "
                   "--aic-batch-max-memory; give fewer files, or a higher limit",
                   path, file.bytes().size(), limit_ / 1'000'000);
    }
    used_ += file.bytes().size();
    return ByteVector(file.bytes().begin(), file.bytes().end());
  }

 private:
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
};

Status check_tensors(const ProgramDescription& program) {
  for (const auto* entries : {&program.inputs, &program.outputs})
    for (const IoEntry& entry : *entries)
      if (!entry.desc.value.empty() || entry.desc.dtype == DType::kString) {
        return error(Code::kUnsupported,
                     "'{}' is a {}; qaic-runner takes tensors of numbers: use `corelane run`",
                     entry.desc.name, entry.desc.to_string());
      }
  return {};
}

std::vector<Shape> own_shapes(const ProgramDescription& program) {
  std::vector<Shape> shapes;
  for (const IoEntry& entry : program.inputs) shapes.push_back(entry.desc.shape);
  return shapes;
}

bool all_static(const std::vector<Shape>& shapes) {
  return std::ranges::all_of(shapes, [](const Shape& shape) { return shape.is_static(); });
}

std::size_t bytes_of(const ProgramDescription& program, std::size_t input, const Shape& shape) {
  return dtype_bytes(program.inputs[input].desc.dtype, shape.elements().value_or(0));
}

std::size_t bytes_of(const ProgramDescription& program, const std::vector<Shape>& shapes) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) sum += bytes_of(program, i, shapes[i]);
  return sum;
}

/// A partial input takes fewer bytes, or none.
bool takes(const ProgramDescription& program, const RunnerItem& item,
           const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!item.inputs[i]) continue;
    const std::size_t needed = bytes_of(program, i, shapes[i]);
    const std::size_t given = item.inputs[i]->size();
    if (given != needed && !(given < needed && program.inputs[i].partial_allowed)) return false;
  }
  return true;
}

/// The shapes that there are: the program's sets, or its own ones.
Result<std::vector<std::vector<Shape>>> choices_of(const ProgramDescription& program) {
  if (!program.shape_sets.empty()) return program.shape_sets;
  std::vector<Shape> own = own_shapes(program);
  if (all_static(own)) return std::vector<std::vector<Shape>>{std::move(own)};
  return error(Code::kShapeMismatch,
               "the program has open dimensions and no shape sets; compile it with --shape-set, or "
               "give dims in --aic-batch-json-input");
}

std::string sizes_text(const ProgramDescription& program, const RunnerItem& item,
                       const std::vector<std::vector<Shape>>& choices) {
  std::string given;
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    given += fmt::format("{}{} '{}'", i == 0 ? "" : ", ",
                         item.inputs[i] ? item.inputs[i]->size() : 0, program.inputs[i].desc.name);
  }
  constexpr std::size_t kShown = 8;
  std::string allowed;
  for (std::size_t k = 0; k < std::min(kShown, choices.size()); ++k) {
    allowed += k == 0 ? "" : " or ";
    for (std::size_t i = 0; i < choices[k].size(); ++i)
      allowed += fmt::format("{}{}", i == 0 ? "" : "+", bytes_of(program, i, choices[k][i]));
  }
  if (choices.size() > kShown) allowed += fmt::format(" or {} more", choices.size() - kShown);
  return fmt::format("the files have {} bytes; allowed are {}", given, allowed);
}

/// Dimensions win, then sizes; random inputs have the largest shapes.
Status choose_shapes(const ProgramDescription& program, const InferenceFiles& files,
                     RunnerItem& item) {
  const auto dims = [](const BufferFile& file) { return file.dims && !file.left_out(); };
  if (!files.inputs.empty() && std::ranges::all_of(files.inputs, dims)) {
    for (const BufferFile& file : files.inputs) item.shapes.emplace_back(*file.dims);
    if (takes(program, item, item.shapes)) return {};
    return error(Code::kShapeMismatch, "{} by the dims given",
                 sizes_text(program, item, {item.shapes}));
  }
  CORELANE_ASSIGN(auto choices, choices_of(program));
  std::ranges::stable_sort(choices, std::greater<>(), [&](const std::vector<Shape>& shapes) {
    return bytes_of(program, shapes);
  });
  // Of a partial input each larger set takes the bytes as well: the least that does is meant.
  for (auto at = choices.rbegin(); at != choices.rend(); ++at) {
    if (!takes(program, item, *at)) continue;
    const bool random =
        std::ranges::none_of(item.inputs, [](const auto& i) { return i.has_value(); });
    item.shapes = random ? choices.front() : *at;
    return {};
  }
  return error(Code::kShapeMismatch, "{}", sizes_text(program, item, choices));
}

/// The files of several samples, one after the other.
Result<ByteVector> read_joined(Loader& loader, std::span<const InferenceFiles> samples,
                               std::size_t count,
                               const std::vector<BufferFile> InferenceFiles::*list,
                               std::size_t buffer) {
  ByteVector all;
  for (std::size_t k = 0; k < count; ++k) {
    // A last batch that is not full repeats its last sample.
    const InferenceFiles& files = samples[std::min(k, samples.size() - 1)];
    CORELANE_ASSIGN(const ByteVector bytes, loader.read((files.*list)[buffer].path));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

/// A state stays on the device, a partial input is not written.
Status leave_out(const ProgramDescription& program, const RunnerOptions& options, std::size_t input,
                 RunnerItem& item) {
  const std::string& name = program.inputs[input].desc.name;
  if (std::ranges::find(program.states, name, &StateDecl::input) != program.states.end()) {
    // Handles of one activation share its state: the order of their inferences would decide the
    // results.
    if (options.set_size > 1) {
      return error(Code::kInvalidArgument,
                   "input '{}' is left out, so its state stays on the device, where inferences of "
                   "one activation follow each other; give -S 1, and -a for more at a time",
                   name);
    }
    item.kept.push_back(input);
    return {};
  }
  if (program.inputs[input].partial_allowed) return {};
  return error(Code::kNotFound,
               "no file for input '{}', which may not be left out; compile with --partial {}", name,
               name);
}

Result<RunnerItem> load_item(const ProgramDescription& program, const RunnerOptions& options,
                             Loader& loader, std::span<const InferenceFiles> samples,
                             std::size_t count) {
  const InferenceFiles& first = samples.front();
  RunnerItem item;
  item.inputs.resize(program.inputs.size());
  for (std::size_t i = 0; i < first.inputs.size(); ++i) {
    if (first.inputs[i].path.empty()) {
      CORELANE_TRY(leave_out(program, options, i, item));
      continue;
    }
    CORELANE_ASSIGN(item.inputs[i],
                    read_joined(loader, samples, count, &InferenceFiles::inputs, i));
  }
  CORELANE_TRY(choose_shapes(program, first, item));
  if (!options.checks.listed) return item;
  if (first.outputs.empty()) {
    return error(Code::kInvalidArgument,
                 "--compare-outputs: the list names no files of outputs; name them, or leave the "
                 "option out");
  }
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    CORELANE_ASSIGN(item.expected.emplace_back(),
                    read_joined(loader, samples, count, &InferenceFiles::outputs, i));
  }
  return item;
}

/// Memory of its own; an output whose size only a run tells stays as it is.
Status give_output(Context& context, std::size_t index) {
  const auto bytes = context.outputs()[index].bytes();
  if (!bytes) return {};
  CORELANE_ASSIGN(auto memory, device::create_host_buffer(std::max<std::size_t>(*bytes, 1)));
  return context.bind_output(index, std::move(memory));
}

}  // namespace

Result<std::vector<RunnerItem>> runner_items(const ProgramDescription& program,
                                             const RunnerOptions& options) {
  CORELANE_TRY(check_tensors(program));
  CORELANE_ASSIGN(const auto files, runner_files(program, options));
  Loader loader(options.sources.max_megabytes);
  std::vector<RunnerItem> items;
  const std::size_t batch =
      options.sources.auto_batch ? std::max<std::size_t>(program.batch, 1) : 1;
  for (std::size_t at = 0; at < files.size(); at += batch) {
    const auto samples = std::span(files).subspan(at, std::min(batch, files.size() - at));
    CORELANE_ASSIGN(auto item, load_item(program, options, loader, samples, batch));
    items.push_back(std::move(item));
  }
  if (items.empty()) {
    RunnerItem& random = items.emplace_back();
    random.inputs.resize(program.inputs.size());
    CORELANE_TRY(choose_shapes(program, {}, random));
  }
  if (options.checks.files.empty()) return items;
  if (options.checks.files.size() != program.outputs.size()) {
    return error(Code::kInvalidArgument,
                 "-o is given {} times, but the program has {} output{}; give a file for each, in "
                 "their order",
                 options.checks.files.size(), program.outputs.size(),
                 program.outputs.size() == 1 ? "" : "s");
  }
  for (const std::string& path : options.checks.files) {
    CORELANE_ASSIGN(auto bytes, loader.read(path));
    for (RunnerItem& item : items) item.expected.push_back(bytes);
  }
  return items;
}

Status give_item(Context& context, const RunnerItem& item) {
  const auto inputs = context.inputs();
  const bool same = std::ranges::equal(inputs, item.shapes, {}, &TensorDesc::shape);
  if (!same) CORELANE_TRY(context.set_input_shapes(item.shapes));
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    if (!item.inputs[i]) continue;
    CORELANE_ASSIGN(const MutableTensorView view, context.input(i));
    std::memcpy(view.data, item.inputs[i]->data(), std::min(view.size, item.inputs[i]->size()));
  }
  CORELANE_ASSIGN(const auto states, context.states());
  for (const KeptState& state : states) {
    if (std::ranges::find(item.kept, state.input_index) != item.kept.end()) {
      CORELANE_TRY(context.unbind_input(state.input_index));
      CORELANE_TRY(context.unbind_output(state.output_index));
    } else if (!same || state.output_kept) {
      CORELANE_TRY(give_output(context, state.output_index));
    }
  }
  return {};
}

}  // namespace corelane::cli
