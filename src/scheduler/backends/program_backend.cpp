#include "scheduler/backends/program_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "corelane/device/arbiter.h"
#include "corelane/device/device.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"
#include "corelane/tensor/tensor.h"

namespace corelane::scheduler {
namespace {

using Tensors = std::vector<Tensor>;

/// The setting as a number; `otherwise` where it is not there.
template <class T>
Result<T> number(const Config& config, std::string_view key, T low, T high, T otherwise) {
  const auto found = config.find(key);
  if (found == config.end()) return otherwise;
  const std::string& text = found->second;
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault == std::errc{} && end == text.data() + text.size() && value >= low && value <= high)
    return value;
  return error(Code::kInvalidArgument, "{} is '{}'; allowed is {} to {}", key, text, low, high);
}

/// "data" of a request; empty where it holds no tensors.
Tensors tensors_of(const Request& request) {
  const auto found = request.values.find(kData);
  if (found == request.values.end()) return {};
  if (const auto* const one = std::any_cast<Tensor>(&found->second)) return {*one};
  if (const auto* const some = std::any_cast<Tensors>(&found->second)) return *some;
  return {};
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

  Status load(const Config& config, const SharedDict& shared);
  Status read_range(const Config& config);
  Status check(const Request& request, const Tensors& data) const;
  Status set_batch(std::uint32_t items);
  Status bind(const std::vector<Rows>& rows, std::uint32_t items);
  Status gather(std::size_t index, const std::vector<Rows>& rows);
  Result<Tensors> bind_outputs();
  void hand_out(const std::vector<Rows>& rows, const Tensors& results, std::uint32_t items);

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

Status ProgramBackend::load(const Config& config, const SharedDict& shared) {
  const auto text = [&](std::string_view key) {
    const auto found = config.find(key);
    return found == config.end() ? std::string() : found->second;
  };
  const std::string model = text("model");
  if (model.empty())
    return error(Code::kInvalidArgument,
                 "key 'model' is missing: the path of a program or ONNX file");
  const std::string name = fmt::format("program:{}:{}", text("device"), model);
  if (const auto found = shared->find(name); found != shared->end()) {
    program_ = std::any_cast<const Program&>(found->second);
    return {};
  }
  device::OpenOptions open;
  open.clock = clock_;
  LoadOptions options;
  CORELANE_ASSIGN(options.on, device::open_device(text("device"), open));
  CORELANE_ASSIGN(options.weight, number<double>(config, "weight", 1e-6, 1e6, 1.0));
  if (config.contains("weight")) CORELANE_TRY(options.on->set_arbiter(device::fair_arbiter()));
  CORELANE_ASSIGN(program_, Program::load(std::filesystem::path(model), options));
  shared->emplace(name, program_);
  return {};
}

Status ProgramBackend::read_range(const Config& config) {
  CORELANE_ASSIGN(const auto low, number<std::uint32_t>(config, "min", 1, UINT32_MAX, 0));
  CORELANE_ASSIGN(const auto high, number<std::uint32_t>(config, "max", 1, UINT32_MAX, 0));
  inputs_ = context_.inputs();
  if (inputs_.empty() || inputs_[0].shape.rank() == 0)
    return error(Code::kUnsupportedModel,
                 "the program's first input has no dimension 0, which batches are made along");
  const std::int64_t rows = inputs_[0].shape[0];
  fixed_ = rows != Shape::kOpen;
  if (fixed_) {
    min_ = max_ = static_cast<std::uint32_t>(rows);
    if ((low != 0 && low != min_) || (high != 0 && high != max_))
      return error(Code::kInvalidArgument,
                   "the program was built for batches of {}, min and max are {} and {}; leave them "
                   "out, or compile it with --batch-range",
                   rows, low == 0 ? min_ : low, high == 0 ? max_ : high);
  } else {
    min_ = low == 0 ? 1 : low;
    max_ = high == 0 ? min_ : high;
  }
  for (const TensorDesc& input : inputs_)
    if (input.shape.rank() == 0 || input.shape[0] != rows)
      return error(Code::kUnsupportedModel,
                   "input '{}' has shape {}; dimension 0 of every input must be the batch",
                   input.name, input.shape.to_string());
  return {};
}

Status ProgramBackend::init(const Config& config, const SharedDict& shared) {
  CORELANE_TRY(load(config, shared));
  CORELANE_ASSIGN(run_options_.priority, number<std::int32_t>(config, "priority", -128, 127, 0));
  CORELANE_ASSIGN(context_, program_.new_context());
  CORELANE_TRY(read_range(config));
  // What is wrong with an output surfaces here, not in the first call.
  CORELANE_TRY(set_batch(max_));
  for (const TensorDesc& output : context_.outputs())
    if (output.shape.rank() == 0 || output.shape[0] != std::int64_t{max_})
      return error(Code::kUnsupportedModel,
                   "output '{}' has shape {} for a batch of {}; dimension 0 must be the batch",
                   output.name, output.shape.to_string(), max_);
  return {};
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
    if (data[i].shape != wanted || data[i].layout != Layout{})
      return error(Code::kShapeMismatch, "input '{}' takes {} for {} items, \"data\" is {}",
                   inputs_[i].name, wanted.to_string(), request.options.items,
                   data[i].shape.to_string())
          .with(Detail::kInput, inputs_[i].name);
  }
  return {};
}

Status ProgramBackend::set_batch(std::uint32_t items) {
  if (batch_ == items) return {};
  batch_ = 0;
  std::vector<Shape> shapes;
  for (const TensorDesc& input : inputs_) {
    shapes.push_back(input.shape);
    shapes.back()[0] = items;
  }
  if (!fixed_) CORELANE_TRY(context_.set_input_shapes(shapes));
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
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    CORELANE_TRY(one ? context_.bind_input(i, rows[0].data[i].view()) : gather(i, rows));
  return {};
}

Result<Tensors> ProgramBackend::bind_outputs() {
  Tensors results;
  const std::vector<TensorDesc> outputs = context_.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CORELANE_ASSIGN(Tensor whole,
                    Tensor::allocate(outputs[i].name, outputs[i].dtype, outputs[i].shape));
    whole.quant = outputs[i].quant;
    CORELANE_TRY(context_.bind_output(i, whole.mutable_view()));
    results.push_back(std::move(whole));
  }
  return results;
}

/// Each request gets its rows of the results' memory, which all of them hold.
void ProgramBackend::hand_out(const std::vector<Rows>& rows, const Tensors& results,
                              std::uint32_t items) {
  for (const Rows& some : rows) {
    if (some.data.empty()) continue;
    Tensors own;
    for (const Tensor& whole : results) {
      const std::size_t each = whole.size / items;
      Tensor part = whole;
      part.shape[0] = some.request->options.items;
      part.size = each * some.request->options.items;
      part.data = std::shared_ptr<void>(whole.data,
                                        static_cast<char*>(whole.data.get()) + some.first * each);
      own.push_back(std::move(part));
    }
    if (own.size() == 1)
      some.request->values[kResult] = std::move(own.front());
    else
      some.request->values[kResult] = std::move(own);
  }
}

Status ProgramBackend::forward(std::span<const RequestPtr> batch) {
  std::vector<Rows> rows;
  std::uint32_t items = 0;
  bool any = false;
  for (const RequestPtr& request : batch) {
    Rows some{request.get(), tensors_of(*request), items};
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
  if (!any) return {};
  CORELANE_TRY(bind(rows, items));
  CORELANE_ASSIGN(const Tensors results, bind_outputs());
  CORELANE_TRY(context_.run(run_options_));
  hand_out(rows, results, items);
  return {};
}

}  // namespace

std::unique_ptr<Backend> make_program_backend(const BackendSurroundings& surroundings) {
  return std::make_unique<ProgramBackend>(surroundings.clock);
}

}  // namespace corelane::scheduler
