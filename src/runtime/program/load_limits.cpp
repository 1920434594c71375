#include "runtime/program/load_limits.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/later.h"
#include "base/process/group_limits.h"
#include "corelane/base/clock.h"
#include "onnx/shape/onnx_estimate.h"
#include "runtime/program/shape_choice.h"

namespace corelane::runtime {
namespace {

std::uint64_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (pages > 0 && size > 0)
    bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  return std::min(bytes, group_memory());
}

std::string amount(std::uint64_t bytes) {
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return "more bytes than can be counted";
  return bytes >> 20 == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{} MiB", bytes >> 20);
}

std::uint64_t elements_of(const std::vector<Shape>& shapes) {
  std::uint64_t sum = 0;
  for (const Shape& shape : shapes) sum += shape.elements().value_or(0);
  return sum;
}

/// The largest shapes of the inputs; those that are declared where nothing bounds them.
std::vector<Shape> largest_shapes(const ProgramDescription& d) {
  std::vector<Shape> shapes;
  for (const std::vector<Shape>& set : d.shape_sets)
    if (shapes.empty() || elements_of(set) > elements_of(shapes)) shapes = set;
  if (!shapes.empty()) return shapes;
  return d.batch_range ? batch_shapes(d, d.batch_range->high) : declared_shapes(d);
}

}  // namespace

std::uint64_t memory_allowed(const LoadOptions& options) {
  static const std::uint64_t machine = machine_memory();
  return options.load_memory == 0 ? machine : options.load_memory;
}

LoadOptions with_deadline(const LoadOptions& options) {
  LoadOptions limited = options;
  if (options.load_timeout <= Duration{0}) return limited;
  limited.import.deadline =
      std::min(limited.import.deadline, later(real_clock()->now(), options.load_timeout));
  return limited;
}

Status late(const Status& failure, const std::string& name, const LoadOptions& options) {
  const double seconds = std::chrono::duration<double>(options.load_timeout).count();
  return failure
      .wrap(fmt::format("{} is not loaded after {} s: give more time (the option load_timeout), or "
                        "compile it once (corelane compile) and load the program file",
                        name, seconds))
      .with(Detail::kLimit, fmt::format("{} s", seconds));
}

namespace {

/// The batch is the first dimension; of states of recurrent networks, layers x batch x size, the
/// second one.
bool is_batch(const Shape& shape, std::size_t i) {
  return i == 0 ? shape.rank() > 1 : i == 1 && shape.rank() == 3 && shape[0] > 1 && shape[2] > 0;
}

/// True for floats of batch x samples, where no other input has a length of its own.
bool are_samples(const std::vector<IoEntry>& inputs, std::size_t input) {
  const auto is_open = [](const Shape& shape, std::size_t i) {
    return shape[i] == Shape::kOpen && !is_batch(shape, i);
  };
  std::size_t lengths = 0;
  for (const IoEntry& entry : inputs)
    for (std::size_t i = 0; i < entry.desc.shape.rank(); ++i)
      lengths += is_open(entry.desc.shape, i) ? 1 : 0;
  const TensorDesc& desc = inputs[input].desc;
  return lengths == 1 && desc.dtype == DType::kF32 && desc.shape.rank() == 2 &&
         is_open(desc.shape, 1);
}

/// Open dimensions counted as sizes of everyday use, so that the work of many a first run is known:
/// the batch as 1, height and width of a picture as 320, samples of a sound as 1024, others as 64.
std::vector<Shape> everyday_shapes(const std::vector<IoEntry>& inputs, std::vector<Shape> shapes) {
  const auto size = [](const Shape& shape, std::size_t i, bool is_sound) -> std::int64_t {
    if (is_batch(shape, i)) return 1;
    if (shape.rank() == 4 && i > 1) return 320;
    return is_sound ? 1024 : 64;
  };
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Shape declared = shapes[k];
    const bool is_sound = are_samples(inputs, k);
    for (std::size_t i = 0; i < declared.rank(); ++i)
      if (declared[i] == Shape::kOpen) shapes[k][i] = size(declared, i, is_sound);
  }
  return shapes;
}

/// `inputs`: as of onnx::estimate_run(). Gives the steps of a run, where they are known.
Result<std::optional<std::uint64_t>> check_network(const ImageSource& source,
                                                   const std::string& program,
                                                   const std::map<std::string, Shape>& inputs,
                                                   const LoadOptions& options,
                                                   std::shared_ptr<onnx::HeldModel> read) {
  if (source.kind != "onnx") return std::nullopt;
  const std::uint64_t allowed = memory_allowed(options);
  const auto estimated =
      read == nullptr
          ? onnx::estimate_run(source.graph, source.constants, inputs)
          : onnx::estimate_run(std::move(read), source.graph.size(), source.constants, inputs);
  CORELANE_ASSIGN(const auto need, estimated);
  if (need.bytes <= allowed) return need.steps;
  const std::string where =
      need.node.empty() ? std::string()
                        : fmt::format(", the largest value from node {} ({})", need.node, need.op);
  return error(Code::kOutOfMemory,
               "program '{}' needs {} of memory by its shapes{}; {} are allowed: give more "
               "(the option load_memory), or export the model with smaller shapes",
               program, amount(need.bytes), where, amount(allowed))
      .with(Detail::kNode, need.node)
      .with(Detail::kOperator, need.op)
      .with(Detail::kGiven, std::to_string(need.bytes))
      .with(Detail::kLimit, fmt::format("{} bytes", allowed));
}

}  // namespace

Result<KnownWork> check_memory(const ImageSource& source, const ProgramDescription& description,
                               const LoadOptions& options, std::shared_ptr<onnx::HeldModel> read) {
  for (const StageSource& stage : source.stages)
    if (auto fits = check_network(stage.image, stage.name, {}, options, nullptr); !fits)
      return error(std::move(fits).error());
  KnownWork work;
  work.shapes = largest_shapes(description);
  work.of_all = all_static(work.shapes);
  const auto check = [&](const std::map<std::string, Shape>& shapes) {
    return check_network(source, description.name, shapes, options, std::exchange(read, nullptr));
  };
  if (!work.of_all) {
    work.shapes = everyday_shapes(description.inputs, std::move(work.shapes));
    const auto steps = check(shapes_by_name(description, work.shapes));
    if (steps) work.steps = *steps;
    if (work.steps) return work;
    // The program may be meant for smaller ones, or does not take these.
    work.shapes.clear();
    const auto least = check({});
    return least ? Result<KnownWork>(std::move(work)) : error(least.error());
  }
  std::map<std::string, Shape> named;  // Only where they are not those of the network.
  if (work.shapes != declared_shapes(description)) named = shapes_by_name(description, work.shapes);
  CORELANE_ASSIGN(work.steps, check(named));
  return work;
}

}  // namespace corelane::runtime
