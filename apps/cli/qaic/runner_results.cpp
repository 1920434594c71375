#include "cli/qaic/runner_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/tensors.h"
#include "corelane/base/file.h"
#include "corelane/base/printable.h"
#include "corelane/runtime/inference_set.h"

namespace corelane::cli {
namespace {

ByteSpan bytes_of(const TensorView& view) {
  // Its memory may be larger than the tensor.
  return {static_cast<const std::byte*>(view.data),
          dtype_bytes(view.dtype, view.shape.elements().value_or(0))};
}

}  // namespace

std::vector<std::string> buffer_file_names(const ProgramDescription& program) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const auto* entries : {&program.inputs, &program.outputs}) {
    for (const IoEntry& entry : *entries) {
      std::string name = printable(entry.desc.name.empty() ? "unnamed" : entry.desc.name);
      std::ranges::replace(name, '/', '_');
      names.push_back(unique_name(std::move(name), taken));
    }
  }
  return names;
}

Result<std::string> output_difference(const TensorView& actual, ByteSpan expected,
                                      double max_error) {
  const ByteSpan bytes = bytes_of(actual);
  if (bytes.size() != expected.size()) {
    return error(Code::kInvalidArgument, "it has {} bytes, the file of what is expected {}",
                 bytes.size(), expected.size());
  }
  if (max_error > 0) {
    TensorView view = actual;
    // The file has the tensor as the program gives it: the same type, shape and layout.
    view.data = expected.data();
    view.size = expected.size();
    CORELANE_ASSIGN(const auto x, as_doubles(actual));
    CORELANE_ASSIGN(const auto y, as_doubles(view));
    const Difference found = difference(x, y);
    if (found.max_relative_error <= max_error && found.not_finite_differs == 0)
      return std::string();
    return fmt::format("error {:.3g} of the largest element, {} elements not finite on one side",
                       found.max_relative_error, found.not_finite_differs);
  }
  const auto at = std::ranges::mismatch(bytes, expected);
  if (at.in1 == bytes.end()) return std::string();
  return fmt::format("byte {} is {:#04x}, expected {:#04x}", at.in1 - bytes.begin(),
                     std::to_integer<unsigned>(*at.in1), std::to_integer<unsigned>(*at.in2));
}

RunnerResults::RunnerResults(const ProgramDescription& program, const RunnerOptions& options,
                             const std::vector<RunnerItem>& items)
    : options_(options), items_(items) {
  std::vector<std::string> names = buffer_file_names(program);
  const auto middle = names.begin() + static_cast<std::ptrdiff_t>(program.inputs.size());
  input_names_.assign(names.begin(), middle);
  output_names_.assign(middle, names.end());
}

Status RunnerResults::take(const SetHandle& handle) {
  Context context = handle.context();
  const std::uint64_t number = handle.id();
  const RunnerItem& item = items_[number % items_.size()];
  if (!item.expected.empty()) CORELANE_TRY(compare(context, item, number));
  if (!options_.write.takes(number)) return {};
  // A set deals its handles out to the activations in turn (SetCore::create).
  const std::size_t activation = handle.index() % options_.activations;
  for (std::size_t i = 0; options_.write.inputs && i < input_names_.size(); ++i) {
    if (std::ranges::find(item.kept, i) != item.kept.end()) continue;
    CORELANE_ASSIGN(const MutableTensorView view, context.input(i));
    CORELANE_TRY(write(input_names_[i], view, activation, number));
  }
  for (std::size_t i = 0; options_.write.outputs() && i < output_names_.size(); ++i) {
    CORELANE_ASSIGN(const TensorView view, context.output(i));
    CORELANE_TRY(write(output_names_[i], view, activation, number));
  }
  return {};
}

Status RunnerResults::compare(const Context& context, const RunnerItem& item,
                              std::uint64_t number) {
  ++compared_;
  for (std::size_t i = 0; i < item.expected.size(); ++i) {
    CORELANE_ASSIGN(const TensorView view, context.output(i));
    const auto found = output_difference(view, item.expected[i], options_.checks.max_error);
    const std::string where = fmt::format("output '{}'", printable(context.outputs()[i].name));
    if (!found) return found.error().wrap(where);
    if (found->empty()) continue;
    // Inferences are counted, not outputs: the first output that differs is enough.
    if (different_++ == 0)
      first_difference_ = fmt::format("inference {}, {}: {}", number, where, *found);
    break;
  }
  return {};
}

Status RunnerResults::write(const std::string& name, const TensorView& view, std::size_t activation,
                            std::uint64_t number) {
  const std::filesystem::path folder = options_.write.folder.empty() ? "." : options_.write.folder;
  const auto path = folder / fmt::format("{}-activation-{}-inf-{}.bin", name, activation, number);
  CORELANE_TRY(write_file_atomic(path, bytes_of(view)));
  written_.push_back(path.string());
  return {};
}

}  // namespace corelane::cli
