/// rknn_query: everything that can be asked. Short structs of old headers are filled as far as they
/// go.
#include <algorithm>
#include <cstring>

#include "adapters/rknn/model/rknn_model.h"
#include "adapters/rknn/model/rknn_perf.h"

namespace corelane::rknn {
namespace {

/// Sizes that programs compiled against old headers pass: rknn_tensor_attr before 1.3.0 and
/// rknn_mem_size before 1.4.0.
constexpr std::uint32_t kOldAttr = 372;
constexpr std::uint32_t kOldMemSize = 8;
/// Texts of PERF_DETAIL that stay valid at once.
constexpr std::size_t kTextsKept = 8;

#define CORELANE_RKNN_VERSION "2.5.0 (corelane " CORELANE_VERSION_STRING ")"
/// What the file says of itself, to people and to whoever loads it, before there is a context.
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
  if (size >= sizeof(T)) {
    std::memcpy(info, &value, sizeof(T));
  } else if (old != 0 && size == old) {
    std::memcpy(info, &value, old);
  } else {
    return short_info(size, name, sizeof(T));
  }
  return {};
}

void put_text(char* to, std::size_t room, const std::string& text) {
  const std::size_t length = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace

Outcome ModelContext::query(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (info == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID, "info is null; pass the struct of command {}", cmd);
  if ((flags_ & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) != 0 && cmd != RKNN_QUERY_MEM_SIZE)
    return outcome(RKNN_ERR_FAIL,
                   "the context was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and answers "
                   "RKNN_QUERY_MEM_SIZE only; make another one to run");
  switch (cmd) {
    case RKNN_QUERY_IN_OUT_NUM: {
      const rknn_input_output_num count = {
          static_cast<std::uint32_t>(description_->inputs.size()),
          static_cast<std::uint32_t>(description_->outputs.size())};
      return give(count, info, size, "rknn_input_output_num");
    }
    case RKNN_QUERY_INPUT_ATTR:
    case RKNN_QUERY_OUTPUT_ATTR:
    case RKNN_QUERY_NATIVE_INPUT_ATTR:
    case RKNN_QUERY_NATIVE_OUTPUT_ATTR:
    case RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR:
    case RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR:
    case RKNN_QUERY_CURRENT_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_OUTPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR:
      return query_attr(cmd, info, size);
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
      return outcome(RKNN_ERR_PARAM_INVALID, "query command {} is none; commands are 0 to {}", cmd,
                     RKNN_QUERY_CMD_MAX - 1);
  }
}

Outcome ModelContext::query_attr(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (size < kOldAttr) return short_info(size, "rknn_tensor_attr", sizeof(rknn_tensor_attr));
  std::uint32_t index = 0;
  std::memcpy(&index, info, sizeof index);
  const bool current = cmd >= RKNN_QUERY_CURRENT_INPUT_ATTR;
  const bool input = cmd == RKNN_QUERY_INPUT_ATTR || cmd == RKNN_QUERY_NATIVE_INPUT_ATTR ||
                     cmd == RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR ||
                     cmd == RKNN_QUERY_CURRENT_INPUT_ATTR ||
                     cmd == RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR;
  const std::size_t count = input ? description_->inputs.size() : description_->outputs.size();
  if (index >= count)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "index {} is behind the last of {} {}; set `index` before the call", index,
                   count, input ? "inputs" : "outputs");
  const IoTensor io = current ? input ? current_input(index) : current_output(index)
                      : input ? input_tensor(index, first_inputs_[index])
                              : output_tensor(index, first_outputs_[index]);
  rknn_tensor_attr attr;
  switch (cmd) {
    case RKNN_QUERY_NATIVE_INPUT_ATTR:
    case RKNN_QUERY_NATIVE_OUTPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR:
    case RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR:
      attr = native_attr(io, chip_);
      break;
    case RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR:
    case RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR:
      attr = native_nhwc_attr(io, chip_);
      break;
    default:
      attr = normal_attr(io, chip_);
  }
  return give(attr, info, size, "rknn_tensor_attr", kOldAttr);
}

Outcome ModelContext::query_text(std::uint32_t cmd, void* info, std::uint32_t size) {
  if (cmd == RKNN_QUERY_CUSTOM_STRING) {
    rknn_custom_string text{};
    put_text(text.string, sizeof text.string, description_->custom_string);
    return give(text, info, size, "rknn_custom_string");
  }
  const device::DeviceInfo& device = device_->info();
  rknn_sdk_version version{};
  // Read from the left: clients compare the number and print the rest.
  put_text(version.api_version, sizeof version.api_version, CORELANE_RKNN_VERSION);
  put_text(version.drv_version, sizeof version.drv_version,
           fmt::format("0.9.8 ({}:{}, {})", device.kind, device.profile, device.engine));
  return give(version, info, size, "rknn_sdk_version");
}

Outcome ModelContext::query_mem_size(void* info, std::uint32_t size) {
  auto weights = outside_size(false);
  if (!weights) return weights.error();
  auto internal = outside_size(true);
  if (!internal) return internal.error();
  const device::MemoryFigures all = program().memory();
  rknn_mem_size figures{};
  figures.total_weight_size =
      static_cast<std::uint32_t>(std::min<std::size_t>(*weights, UINT32_MAX));
  figures.total_internal_size =
      static_cast<std::uint32_t>(std::min<std::size_t>(*internal, UINT32_MAX));
  figures.total_dma_allocated_size = all.total();
  return give(figures, info, size, "rknn_mem_size", kOldMemSize);
}

Outcome ModelContext::query_memory_info(void* info, std::uint32_t size) {
  rknn_tensor_mem memory{};
  memory.fd = -1;
  memory.flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE;
  memory.size =
      static_cast<std::uint32_t>(std::min<std::size_t>(device_->memory().total(), UINT32_MAX));
  return give(memory, info, size, "rknn_tensor_mem");
}

Outcome ModelContext::query_range(void* info, std::uint32_t size) {
  if (size < sizeof(rknn_input_range))
    return short_info(size, "rknn_input_range", sizeof(rknn_input_range));
  std::uint32_t index = 0;
  std::memcpy(&index, info, sizeof index);
  if (index >= description_->inputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "index {} is behind the last of {} inputs", index,
                   description_->inputs.size());
  if (description_->shape_sets.empty())
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "the model has no list of input shapes; compile it with `corelane compile "
                   "--shape-set` to allow several");
  const auto range = std::make_unique<rknn_input_range>();
  range->index = index;
  const std::size_t sets =
      std::min<std::size_t>(description_->shape_sets.size(), RKNN_MAX_DYNAMIC_SHAPE_NUM);
  range->shape_number = static_cast<std::uint32_t>(sets);
  for (std::size_t k = 0; k < sets; ++k) {
    const rknn_tensor_attr attr =
        normal_attr(input_tensor(index, description_->shape_sets[k][index]), chip_);
    if (k == 0) {
      range->fmt = attr.fmt;
      range->n_dims = attr.n_dims;
      std::memcpy(range->name, attr.name, sizeof range->name);
    }
    std::copy_n(attr.dims, RKNN_MAX_DIMS, range->dyn_range[k]);
  }
  return give(*range, info, size, "rknn_input_range");
}

std::string ModelContext::layer_table() const {
  PerfFacts facts;
  facts.description = description_.get();
  facts.inputs = input_shapes_;
  facts.outputs = output_shapes_;
  facts.bytes_read = last_record_.bytes_in;
  facts.bytes_written = last_record_.bytes_out;
  facts.core_bits = last_record_.core_bits;
  return perf_detail_text(layers_, facts);
}

Outcome ModelContext::query_perf(std::uint32_t cmd, void* info, std::uint32_t size) {
  const std::lock_guard lock(state_);
  if (cmd == RKNN_QUERY_PERF_RUN) {
    const rknn_perf_run run = {std::chrono::duration_cast<std::chrono::microseconds>(
                                   last_record_.ended - last_record_.started)
                                   .count()};
    return give(run, info, size, "rknn_perf_run");
  }
  if (size < sizeof(rknn_perf_detail))
    return short_info(size, "rknn_perf_detail", sizeof(rknn_perf_detail));
  if (perf_texts_.size() == kTextsKept) perf_texts_.pop_front();
  const std::string& text = perf_texts_.emplace_back(layer_table());
  rknn_perf_detail detail{};
  detail.perf_data = const_cast<char*>(text.data());  // The API has no const.
  detail.data_len = text.size();
  return give(detail, info, size, "rknn_perf_detail");
}

}  // namespace corelane::rknn
