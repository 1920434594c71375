#include "scheduler/backends/program_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "corelane/device/arbiter.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "scheduler/backends/backend_keys.h"
#include "scheduler/backends/tensor_values.h"

namespace corelane::scheduler {
namespace {

/// "data" of a request; empty where it holds no tensors.
Tensors data_of(const Request& request) {
  const auto found = request.values.find(kData);
  return found == request.values.end() ? Tensors() : tensors_of(found->second);
}

/// With forms for the sizes of a batch where the program's dimension 0 is open, and nothing else.
Result<Program> load_for_batches(const std::filesystem::path& model, const Config& config,
                                 LoadOptions options) {
  if (config.contains("max")) {
    CORELANE_ASSIGN(const Range asked, min_max(config, kMostBatch));
    options.batch_range = BatchRange{asked.min, asked.max};
    auto program = Program::load(model, options);
    if (program || program.error().code() != Code::kInvalidArgument) return program;
    options.batch_range.reset();
  }
  return Program::load(model, options);
}

class ProgramBackend final : public Backend {
 public:
  explicit ProgramBackend(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  Status init(const Config& config, const SharedDict& shared) override;
  Status forward(std::span<const RequestPtr> batch) override;
  std::uint32_t min() const noexcept override { return min_; }
  std::uint32_t max() const noexcept override { return max_; }
  /// A program computes the same again.
  bool repeatable() const noexcept override { return true; }

 private:
  /// A request of the batch: its tensors, and its rows of the batch.
  struct Rows {
    Request* request = nullptr;
    Tensors data;  ///< Empty where they do not fit: its rows are zeros.
    std::uint32_t first = 0;
  };

  Result<std::shared_ptr<device::Device>> open_device(const std::string& text, Dict& shared) const;
  Status load(const Config& config, const SharedDict& shared);
  Status read_range(const Config& config);
  Status check_rows(const std::vector<TensorDesc>& descs) const;
  Status check(const Request& request, const Tensors& data) const;
  Status set_batch(std::uint32_t items);
  Status bind(const std::vector<Rows>& rows, std::uint32_t items);
  Status gather(std::size_t index, const std::vector<Rows>& rows);
  Result<Tensors> bind_outputs();
  Status take_outputs(Tensors& results, std::uint32_t items);
  void hand_out(const std::vector<Rows>& rows, const Tensors& results);

  const std::shared_ptr<Clock> clock_;
  Program program_;
  Context context_;
  std::vector<TensorDesc> inputs_;  ///< Dimension 0 is that of one item, or kOpen.
  RunOptions run_options_;
  std::uint32_t min_ = 1;
  std::uint32_t max_ = 1;
  std::uint32_t batch_ = 0;  ///< Of the context's shapes; 0: none was set.
  bool fixed_ = true;
};

/// The device of this text, which all of a process share; on a virtual clock one of its own, which
/// those share that have the dictionary.
Result<std::shared_ptr<device::Device>> ProgramBackend::open_device(const std::string& text,
                                                                    Dict& shared) const {
  if (!clock_->is_virtual()) return device::open_device(text);
  std::any& kept = shared["device:" + text];
  if (!kept.has_value()) {
    device::OpenOptions open;
    open.clock = clock_;
    CORELANE_ASSIGN(std::shared_ptr<device::Device> made, device::open_device(text, open));
    kept = made;
  }
  return std::any_cast<std::shared_ptr<device::Device>>(kept);
}

Status ProgramBackend::load(const Config& config, const SharedDict& shared) {
  const auto text = [&](std::string_view key) {
    const auto found = config.find(key);
    return found == config.end() ? std::string() : found->second;
  };
  const std::string model = text("model");
  if (model.empty())
    return error(Code::kInvalidArgument,
                 "key 'model' is missing; set it to the path of a program or ONNX file")
        .with(Detail::kKey, "model");
  // A range is compiled for where there is a max.
  const std::string sizes = config.contains("max") ? text("min") + "," + text("max") : "";
  const std::string name =
      fmt::format("program:{}:{}:{}:{}", text("device"), text("weight"), sizes, model);
  // No lock: the instances of a node are initialised one after another (Backend::init).
  if (const auto found = shared->find(name); found != shared->end()) {
    program_ = std::any_cast<const Program&>(found->second);
    return {};
  }
  LoadOptions options;
  CORELANE_ASSIGN(options.on, open_device(text("device"), *shared));
  CORELANE_ASSIGN(options.weight, share(config, "weight", 1, 1e6));
  if (config.contains("weight")) CORELANE_TRY(options.on->set_arbiter(device::fair_arbiter()));
  CORELANE_ASSIGN(program_, load_for_batches(model, config, std::move(options)));
  shared->emplace(name, program_);
  return {};
}

Status ProgramBackend::read_range(const Config& config) {
  CORELANE_ASSIGN(const Range asked, min_max(config, UINT32_MAX));
  inputs_ = context_.inputs();
  if (inputs_.empty() || inputs_[0].shape.rank() == 0)
    return error(Code::kUnsupportedModel,
                 "the program's first input has no dimension 0, which batches are made along");
  const std::int64_t rows = inputs_[0].shape[0];
  const std::optional<BatchRange>& range = program_.description().batch_range;
  fixed_ = rows != Shape::kOpen;
  if (fixed_) {
    min_ = max_ = static_cast<std::uint32_t>(rows);
    const bool same = (!config.contains("min") || asked.min == min_) &&
                      (!config.contains("max") || asked.max == max_);
    if (!same)
      return error(Code::kInvalidArgument,
                   "the program was built for batches of {}, and the settings 'min' and 'max' say "
                   "otherwise; leave them out, or compile it with --batch-range",
                   rows);
  } else if (range) {
    min_ = config.contains("min") ? asked.min : range->low;
    max_ = config.contains("max") ? asked.max : range->high;
    if (min_ < range->low || max_ > range->high || min_ > max_)
      return error(Code::kInvalidArgument,
                   "the program serves batches of {} to {}, the settings 'min' and 'max' say {} to "
                   "{}",
                   range->low, range->high, min_, max_);
  } else {
    // Nothing says how large a batch may be. Without a max the default of min_max() is no size to
    // make buffers for, so that a call has exactly the min.
    min_ = asked.min;
    max_ = config.contains("max") ? asked.max : asked.min;
  }
  for (const TensorDesc& input : inputs_)
    if (input.shape.rank() == 0 || input.shape[0] != rows)
      return error(Code::kUnsupportedModel,
                   "input '{}' has shape {}; dimension 0 of every input must be the batch",
                   input.name, input.shape.to_string());
  return {};
}

/// Elements of less than a byte may end inside of one, where no request's rows can begin.
Status ProgramBackend::check_rows(const std::vector<TensorDesc>& descs) const {
  for (const TensorDesc& desc : descs)
    if (!desc.value.empty())
      return error(Code::kUnsupportedModel,
                   "'{}' is a {}, which has no items to serve in batches; use a session", desc.name,
                   desc.value.to_string());
  if (max_ == 1) return {};
  for (const TensorDesc& desc : descs)
    if (!has_whole_rows(desc.shape, desc.dtype))
      return error(Code::kUnsupportedModel,
                   "'{}' has items of {} {}, which do not take whole bytes; serve one item at a "
                   "time ('max' 1)",
                   desc.name, dtype_name(desc.dtype), desc.shape.to_string());
  return {};
}

Status ProgramBackend::init(const Config& config, const SharedDict& shared) {
  CORELANE_TRY(load(config, shared));
  CORELANE_ASSIGN(run_options_.priority, level(config, "priority", 0, -128, 127));
  CORELANE_ASSIGN(context_, program_.new_context({.keep_states = false}));
  CORELANE_TRY(read_range(config));
  // What is wrong with an output surfaces here, not in the first call.
  CORELANE_TRY(set_batch(max_));
  for (const TensorDesc& output : context_.outputs())
    if (output.shape.rank() == 0 ||
        (output.shape[0] != std::int64_t{max_} && output.shape[0] != Shape::kOpen))
      return error(Code::kUnsupportedModel,
                   "output '{}' has shape {} for a batch of {}; dimension 0 must be the batch",
                   output.name, output.shape.to_string(), max_);
  CORELANE_TRY(check_rows(inputs_));
  return check_rows(context_.outputs());
}

Status ProgramBackend::check(const Request& request, const Tensors& data) const {
  if (data.size() != inputs_.size())
    return error(Code::kInvalidArgument,
                 "\"data\" holds {} tensors, the program has {} inputs; it is a Tensor or a "
                 "std::vector<Tensor>",
                 data.size(), inputs_.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    Shape wanted = inputs_[i].shape;
    wanted[0] = request.options.items;
    if (data[i].dtype != inputs_[i].dtype)
      return error(Code::kTypeMismatch, "input '{}' is {}, \"data\" is {}", inputs_[i].name,
                   dtype_name(inputs_[i].dtype), dtype_name(data[i].dtype))
          .with(Detail::kInput, inputs_[i].name);
    // Alone it could be converted, but not in a batch, whose rows are copied as they are.
    const IoEntry& entry = program_.description().inputs[i];
    const Quant own = entry.quant_dtype == inputs_[i].dtype ? entry.quant : Quant::none();
    if (data[i].quant.kind != QuantKind::kNone && data[i].quant != own)
      return error(Code::kTypeMismatch,
                   "input '{}' has the quantization {}, \"data\" has {}; convert it, or clear its "
                   "`quant` where its integers are meant as they are",
                   inputs_[i].name, own.to_string(), data[i].quant.to_string())
          .with(Detail::kInput, inputs_[i].name);
    if (data[i].shape != wanted || data[i].layout != Layout{})
      return error(Code::kShapeMismatch, "input '{}' takes {} for {} items, \"data\" is {}",
                   inputs_[i].name, wanted.to_string(), request.options.items,
                   data[i].shape.to_string())
          .with(Detail::kInput, inputs_[i].name);
    CORELANE_ASSIGN(const std::size_t bytes, storage_bytes(wanted, data[i].dtype, {}));
    if (data[i].size < bytes || (data[i].data == nullptr && bytes != 0))
      return error(Code::kInvalidArgument,
                   "input '{}' takes {} bytes for {} items, \"data\" has {}{}", inputs_[i].name,
                   bytes, request.options.items, data[i].data == nullptr ? "no memory, size " : "",
                   data[i].size)
          .with(Detail::kInput, inputs_[i].name);
  }
  return {};
}

Status ProgramBackend::set_batch(std::uint32_t items) {
  if (batch_ == items) return {};
  // A failure below leaves shapes of which nothing is known: the next call sets them all again.
  batch_ = 0;
  std::vector<Shape> shapes;
  for (const TensorDesc& input : inputs_) {
    shapes.push_back(input.shape);
    shapes.back()[0] = items;
  }
  if (!fixed_) {
    // Memory for another number of items would be taken for the user's, and be too large or small.
    for (std::size_t i = 0; i < context_.outputs().size(); ++i)
      CORELANE_TRY(context_.unbind_output(i));
    CORELANE_TRY(context_.set_input_shapes(shapes));
  }
  batch_ = items;
  return {};
}

/// Copies the rows of all requests, one after the other, into the context's own memory.
Status ProgramBackend::gather(std::size_t index, const std::vector<Rows>& rows) {
  CORELANE_TRY(context_.unbind_input(index));
  CORELANE_ASSIGN(const MutableTensorView to, context_.input(index));
  const std::size_t each = to.size / batch_;
  auto* const base = static_cast<char*>(to.data);
  for (const Rows& some : rows) {
    char* const at = base + some.first * each;
    const std::size_t size = some.request->options.items * each;
    // A request that failed its check, or was cancelled, keeps its rows: the program runs a batch
    // of the size that was set.
    if (some.data.empty())
      std::memset(at, 0, size);
    else
      std::memcpy(at, some.data[index].data.get(), size);
  }
  return {};
}

Status ProgramBackend::bind(const std::vector<Rows>& rows, std::uint32_t items) {
  CORELANE_TRY(set_batch(items));
  const bool one = rows.size() == 1 && !rows[0].data.empty();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!one) {
      CORELANE_TRY(gather(i, rows));
      continue;
    }
    // The request's own memory, without a copy. It stays bound until the next call, which binds
    // each input anew before anything reads it.
    TensorView view = rows[0].data[i].view();
    view.quant = {};  // As in gather(): the integers are taken as they are.
    CORELANE_TRY(context_.bind_input(i, view));
  }
  return {};
}

/// Memory for the outputs whose size is known before the run.
Result<Tensors> ProgramBackend::bind_outputs() {
  Tensors results;
  const std::vector<TensorDesc> outputs = context_.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    results.emplace_back();
    if (!outputs[i].shape.is_static()) continue;
    CORELANE_ASSIGN(results.back(),
                    Tensor::allocate(outputs[i].name, outputs[i].dtype, outputs[i].shape));
    results.back().quant = outputs[i].quant;
    CORELANE_TRY(context_.bind_output(i, results.back().mutable_view()));
  }
  return results;
}

/// Copies of the others, and whether all have the batch's rows.
Status ProgramBackend::take_outputs(Tensors& results, std::uint32_t items) {
  const std::vector<TensorDesc> outputs = context_.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (results[i].data == nullptr) {
      // The context's own memory, which the next run overwrites.
      CORELANE_ASSIGN(const TensorView view, context_.output(i));
      CORELANE_ASSIGN(results[i], Tensor::copy_of(outputs[i].name, view));
    }
    if (results[i].shape.rank() == 0 || results[i].shape[0] != std::int64_t{items})
      return error(Code::kUnsupportedModel,
                   "output '{}' has shape {} for a batch of {}; dimension 0 must be the batch",
                   outputs[i].name, results[i].shape.to_string(), items)
          .with(Detail::kOutput, outputs[i].name);
  }
  return {};
}

/// Each request gets its rows of the results' memory, which all of them hold.
void ProgramBackend::hand_out(const std::vector<Rows>& rows, const Tensors& results) {
  for (const Rows& some : rows) {
    if (some.data.empty()) continue;
    Tensors own;
    for (const Tensor& whole : results)
      own.push_back(rows_of(whole, some.first, some.request->options.items));
    some.request->values[kResult] = value_of(std::move(own), results.size() == 1);
  }
}

Status ProgramBackend::forward(std::span<const RequestPtr> batch) {
  std::vector<Rows> rows;
  std::uint32_t items = 0;
  bool any = false;
  for (const RequestPtr& request : batch) {
    Rows some{request.get(), data_of(*request), items};
    if (Status fits = check(*request, some.data); !fits.ok()) {
      request->fail(std::move(fits));
      some.data.clear();
    } else if (request->cancelled()) {
      some.data.clear();
    }
    any = any || !some.data.empty();
    items += request->options.items;
    rows.push_back(std::move(some));
  }
  // Each request has failed or is unwanted: there is nothing to run for.
  if (!any) return {};
  CORELANE_TRY(bind(rows, items));
  CORELANE_ASSIGN(Tensors results, bind_outputs());
  CORELANE_TRY(context_.run(run_options_));
  CORELANE_TRY(take_outputs(results, items));
  hand_out(rows, results);
  return {};
}

}  // namespace

std::unique_ptr<Backend> make_program_backend(const BackendSurroundings& surroundings) {
  return std::make_unique<ProgramBackend>(surroundings.clock);
}

}  // namespace corelane::scheduler
