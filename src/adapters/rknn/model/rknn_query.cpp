#include "adapters/rknn/model/rknn_query.h"

#include <algorithm>
#include <cstring>

#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_perf.h"
#include "corelane/device/device.h"

namespace corelane::rknn {

/// One of the commands that describe a tensor.
struct AttrQuery {
  std::uint32_t cmd;
  Side side;
  bool current;  ///< With the shape now, not the first one.
  rknn_tensor_attr (*attr)(const IoTensor&, const Chip&);
};

namespace {

constexpr AttrQuery kAttrQueries[] = {
    {RKNN_QUERY_INPUT_ATTR, Side::kInput, false, normal_attr},
    {RKNN_QUERY_OUTPUT_ATTR, Side::kOutput, false, normal_attr},
    {RKNN_QUERY_NATIVE_INPUT_ATTR, Side::kInput, false, native_attr},
    {RKNN_QUERY_NATIVE_OUTPUT_ATTR, Side::kOutput, false, native_attr},
    {RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR, Side::kInput, false, native_nhwc_attr},
    {RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, Side::kOutput, false, native_nhwc_attr},
    {RKNN_QUERY_CURRENT_INPUT_ATTR, Side::kInput, true, normal_attr},
    {RKNN_QUERY_CURRENT_OUTPUT_ATTR, Side::kOutput, true, normal_attr},
    {RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR, Side::kInput, true, native_attr},
    {RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR, Side::kOutput, true, native_attr},
};

/// Sizes that programs compiled against old headers pass: rknn_tensor_attr before 1.3.0 and
/// rknn_mem_size before 1.4.0.
constexpr std::uint32_t kOldAttr = 372;
constexpr std::uint32_t kOldMemSize = 8;
/// Texts of PERF_DETAIL that stay valid at once.
constexpr std::size_t kTextsKept = 8;

#define CORELANE_RKNN_VERSION "2.5.0 (corelane " CORELANE_VERSION_STRING ")"
/// The version, for people and loaders who read the file without calling it.
[[gnu::used]] constexpr char kBanner[] = "librknnrt version: " CORELANE_RKNN_VERSION;

Outcome short_info(std::uint32_t given, const char* name, std::size_t needed) {
  return outcome(RKNN_ERR_PARAM_INVALID,
                 "info_len({}) < sizeof({})({}); pass the struct of rknn_api.h and its sizeof",
                 given, name, needed);
}

/// Copies `value` to `info`, all of it or the `old` bytes that older headers had.
template <class T>
Outcome give(const T& value, void* info, std::uint32_t size, const char* name,
             std::uint32_t old = 0) {
  if (size >= sizeof(T))
    std::memcpy(info, &value, sizeof(T));
  else if (old != 0 && size == old)
    std::memcpy(info, &value, old);
  else
    return short_info(size, name, sizeof(T));
  return {};
}

/// Sizes that callers allocate by are whole pages, one at least.
constexpr std::size_t kPageBytes = 4096;
std::size_t pages(std::size_t bytes) {
  return std::max((bytes + kPageBytes - 1) / kPageBytes * kPageBytes, kPageBytes);
}

/// Contexts that hold the forms of the largest sets that are not there yet. One that cannot be made
/// counts for nothing: its runs fail, too.
std::vector<Context> missing_forms(const Program& program, const ProgramDescription& description) {
  const std::vector<ProgramForm> forms = program.forms();
  std::vector<Context> made;
  for (const std::vector<Shape>& set : largest_sets(description)) {
    const auto is_of = [&](const ProgramForm& form) { return form.input_shapes == set; };
    if (std::ranges::any_of(forms, is_of)) continue;
    auto context = program.new_context({.keep_states = false});
    if (context && context->set_input_shapes(set).ok()) made.push_back(*std::move(context));
  }
  return made;
}

/// Cut to the room there is, with a zero at the end.
void put_text(char* to, std::size_t room, const std::string& text) {
  const std::size_t length = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

Outcome Queries::query(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (info == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID, "info is null; pass the struct of command {}", cmd);
  if (facts_.has(RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) && cmd != RKNN_QUERY_MEM_SIZE)
    return outcome(RKNN_ERR_FAIL,
                   "the context was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and answers "
                   "RKNN_QUERY_MEM_SIZE only; make another one to run");
  for (const AttrQuery& known : kAttrQueries)
    if (known.cmd == cmd) return query_attr(known, info, size);
  switch (cmd) {
    case RKNN_QUERY_IN_OUT_NUM: {
      const rknn_input_output_num count = {
          static_cast<std::uint32_t>(facts_.description->inputs.size()),
          static_cast<std::uint32_t>(facts_.description->outputs.size())};
      return give(count, info, size, "rknn_input_output_num");
    }
    case RKNN_QUERY_PERF_DETAIL:
    case RKNN_QUERY_PERF_RUN:
      return query_perf(cmd, info, size);
    case RKNN_QUERY_SDK_VERSION:
    case RKNN_QUERY_CUSTOM_STRING:
      return query_text(cmd, info, size);
    case RKNN_QUERY_MEM_SIZE:
      return query_mem_size(info, size);
    case RKNN_QUERY_DEVICE_MEM_INFO:
      return query_memory_info(info, size);
    case RKNN_QUERY_INPUT_DYNAMIC_RANGE:
      return query_range(info, size);
    default:
      return outcome(RKNN_ERR_PARAM_INVALID,
                     "query command {} does not exist; commands are 0 to {}", cmd,
                     RKNN_QUERY_CMD_MAX - 1);
  }
}

/// The caller has written `index` into the struct, the first member in every release.
Outcome Queries::query_attr(const AttrQuery& query, void* info, std::uint32_t size) {
  if (size < kOldAttr) return short_info(size, "rknn_tensor_attr", sizeof(rknn_tensor_attr));
  std::uint32_t index = 0;
  std::memcpy(&index, info, sizeof index);
  const bool input = query.side == Side::kInput;
  const std::size_t count =
      input ? facts_.description->inputs.size() : facts_.description->outputs.size();
  if (index >= count)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "index {} is past the last of {} {}; set `index` before the call", index, count,
                   input ? "inputs" : "outputs");
  Shape shape;
  {
    const MutexLock lock(mutex_);
    shape = (query.current ? input ? input_shapes_ : output_shapes_
             : input       ? first_inputs_
                           : first_outputs_)[index];
  }
  const auto with = [&](const Shape& s) {
    return query.attr(input ? facts_.input(index, s) : facts_.output(index, s), facts_.chip);
  };
  rknn_tensor_attr attr = with(shape);
  if (query.current) return give(attr, info, size, "rknn_tensor_attr", kOldAttr);
  // Memory of this size serves all listed shapes.
  const auto serve = [&](const Shape& s) {
    attr.size_with_stride = std::max(attr.size_with_stride, with(s).size_with_stride);
  };
  if (input)
    for (const auto& set : facts_.description->shape_sets) serve(set[index]);
  else
    for (const auto& set : facts_.set_outputs)
      if (set[index]) serve(*set[index]);
  return give(attr, info, size, "rknn_tensor_attr", kOldAttr);
}

Outcome Queries::query_text(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (cmd == RKNN_QUERY_CUSTOM_STRING) {
    rknn_custom_string text{};
    put_text(text.string, sizeof text.string, facts_.description->custom_string);
    return give(text, info, size, "rknn_custom_string");
  }
  const device::DeviceInfo& device = facts_.device->info();
  rknn_sdk_version version{};
  // Read from the left: clients compare the number and print the rest.
  put_text(version.api_version, sizeof version.api_version, CORELANE_RKNN_VERSION);
  put_text(version.drv_version, sizeof version.drv_version,
           fmt::format("0.9.8 ({}:{}, {})", device.kind, device.profile, device.engine));
  return give(version, info, size, "rknn_sdk_version");
}

/// In structs before 1.4.0 the first two sizes are all there is.
Outcome Queries::query_mem_size(void* info, std::uint32_t size) {
  CORELANE_ASSIGN(const std::size_t weights, outside_size(false));
  CORELANE_ASSIGN(const std::size_t internal, outside_size(true));
  const device::MemoryFigures all = program().memory();
  rknn_mem_size figures{};
  figures.total_weight_size =
      static_cast<std::uint32_t>(std::min<std::size_t>(weights, UINT32_MAX));
  figures.total_internal_size =
      static_cast<std::uint32_t>(std::min<std::size_t>(internal, UINT32_MAX));
  figures.total_dma_allocated_size = all.total();
  return give(figures, info, size, "rknn_mem_size", kOldMemSize);
}

Outcome Queries::query_memory_info(void* info, std::uint32_t size) {
  rknn_tensor_mem memory{};
  memory.fd = -1;
  memory.flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE;
  memory.size = static_cast<std::uint32_t>(
      std::min<std::size_t>(facts_.device->memory().total(), UINT32_MAX));
  return give(memory, info, size, "rknn_tensor_mem");
}

/// On the heap, since the struct has room for RKNN_MAX_DYNAMIC_SHAPE_NUM shapes.
Outcome Queries::query_range(void* info, std::uint32_t size) {
  if (size < sizeof(rknn_input_range))
    return short_info(size, "rknn_input_range", sizeof(rknn_input_range));
  std::uint32_t index = 0;
  std::memcpy(&index, info, sizeof index);
  if (index >= facts_.description->inputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "index {} is past the last of {} inputs", index,
                   facts_.description->inputs.size());
  if (facts_.description->shape_sets.empty())
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "the model has no list of input shapes; compile it with `corelane compile "
                   "--shape-set` to allow several")
        .as_probe(probed_.exchange(true, std::memory_order_relaxed));
  const auto range = std::make_unique<rknn_input_range>();
  range->index = index;
  const std::size_t sets =
      std::min<std::size_t>(facts_.description->shape_sets.size(), RKNN_MAX_DYNAMIC_SHAPE_NUM);
  range->shape_number = static_cast<std::uint32_t>(sets);
  for (std::size_t k = 0; k < sets; ++k) {
    const rknn_tensor_attr attr =
        normal_attr(facts_.input(index, facts_.description->shape_sets[k][index]), facts_.chip);
    if (k == 0) {
      range->fmt = attr.fmt;
      range->n_dims = attr.n_dims;
      std::memcpy(range->name, attr.name, sizeof range->name);
    }
    std::copy_n(attr.dims, RKNN_MAX_DIMS, range->dyn_range[k]);
  }
  return give(*range, info, size, "rknn_input_range");
}

/// The nodes of the network. Empty where only the device can read the program.
std::vector<device::LayerTime> Queries::untimed_layers() const {
  std::vector<device::LayerTime> layers;
  const auto nodes = program().nodes();
  if (!nodes) return layers;
  for (const NetworkNode& node : *nodes) {
    device::LayerTime layer;
    layer.name = node.name;
    layer.type = node.type;
    if (!node.outputs.empty()) layer.dtype = node.outputs.front().dtype;
    layer.executed = true;
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Copied under the lock and written as text without it.
std::string Queries::layer_table() const {
  PerfFacts facts;
  facts.description = facts_.description.get();
  std::vector<device::LayerTime> layers;
  {
    const MutexLock lock(mutex_);
    facts.inputs = input_shapes_;
    facts.outputs = output_shapes_;
    facts.bytes_read = last_record_.bytes_in;
    facts.bytes_written = last_record_.bytes_out;
    facts.core_bits = last_record_.core_bits;
    layers = layers_;
  }
  if (layers.empty()) layers = untimed_layers();
  return perf_detail_text(layers, facts);
}

Outcome Queries::query_perf(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (cmd == RKNN_QUERY_PERF_RUN) {
    const MutexLock lock(mutex_);
    const rknn_perf_run run = {std::chrono::duration_cast<std::chrono::microseconds>(
                                   last_record_.ended - last_record_.started)
                                   .count()};
    return give(run, info, size, "rknn_perf_run");
  }
  if (size < sizeof(rknn_perf_detail))
    return short_info(size, "rknn_perf_detail", sizeof(rknn_perf_detail));
  std::string table = layer_table();
  const MutexLock lock(mutex_);
  if (perf_texts_.size() == kTextsKept) perf_texts_.pop_front();
  const std::string& text = perf_texts_.emplace_back(std::move(table));
  rknn_perf_detail detail{};
  detail.perf_data = const_cast<char*>(text.data());  // The API has no const.
  detail.data_len = text.size();
  return give(detail, info, size, "rknn_perf_detail");
}

/// A handle to shared state: what runs with it goes on while another program is set.
Program Queries::program() const {
  const MutexLock lock(mutex_);
  return *program_;
}

void Queries::set_program(Program program) {
  const MutexLock lock(mutex_);
  program_ = std::move(program);
}

/// *_ATTR must not change while a program uses it: the first shapes are kept.
void Queries::set_shapes(std::vector<Shape> inputs, std::vector<Shape> outputs) {
  const MutexLock lock(mutex_);
  if (first_inputs_.empty() && first_outputs_.empty()) {
    first_inputs_ = inputs;
    first_outputs_ = outputs;
  }
  input_shapes_ = std::move(inputs);
  output_shapes_ = std::move(outputs);
}

void Queries::set_run(const device::JobRecord& record,
                      const std::vector<std::pair<std::size_t, Shape>>& outputs,
                      std::optional<std::vector<device::LayerTime>> layers) {
  const MutexLock lock(mutex_);
  last_record_ = record;
  for (const auto& [index, shape] : outputs) output_shapes_[index] = shape;
  if (layers) layers_ = *std::move(layers);
}

IoTensor Queries::input(std::size_t index) const {
  const MutexLock lock(mutex_);
  return facts_.input(index, input_shapes_[index]);
}

IoTensor Queries::output(std::size_t index) const {
  const MutexLock lock(mutex_);
  return facts_.output(index, output_shapes_[index]);
}

Result<std::size_t> Queries::outside_size(bool internal) {
  if (!internal) return pages(facts_.program_bytes);
  std::atomic<std::size_t>& asked = *facts_.internal_bytes;
  if (const std::size_t known = asked.load(std::memory_order_relaxed); known != 0) return known;
  const Program now = program();
  const std::vector<Context> made = missing_forms(now, *facts_.description);
  std::size_t most = 0;
  for (const ProgramForm& form : now.forms()) most = std::max(most, form.memory.internal);
  std::size_t none = 0;
  most = pages(most);
  return asked.compare_exchange_strong(none, most) ? most : none;
}

}  // namespace corelane::rknn
