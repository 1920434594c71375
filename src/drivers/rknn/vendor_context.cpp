#include "drivers/rknn/vendor_context.h"

#include <algorithm>
#include <limits>

#include "corelane/base/log.h"
#include "corelane/device/core_set.h"

namespace corelane::drivers::rknn {
namespace {

/// More inputs or outputs than any model has: the answer is not a number of tensors.
constexpr std::uint32_t kMostTensors = 4096;

template <std::size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return {text, std::find(text, text + kSize, '\0')};
}

}  // namespace

Result<std::unique_ptr<VendorContext>> VendorContext::open(std::shared_ptr<const Library> library,
                                                           ByteSpan image, std::uint32_t flags) {
  if (image.empty()) return error(Code::kMalformed, "the image has no bytes");
  if (image.size() > std::numeric_limits<std::uint32_t>::max())
    return error(Code::kUnsupported, "an image of {} bytes; the RKNN API takes at most {}",
                 image.size(), std::numeric_limits<std::uint32_t>::max());
  rknn_context handle = 0;
  // The API takes the bytes to read them.
  const int result = library->api().init(&handle, const_cast<std::byte*>(image.data()),
                                         static_cast<std::uint32_t>(image.size()), flags, nullptr);
  if (result < 0)
    return error(library->failed(
        "rknn_init", result, Code::kUnsupportedModel,
        fmt::format("the library does not take the image of {} bytes", image.size())));
  return std::unique_ptr<VendorContext>(new VendorContext(std::move(library), handle, true));
}

Result<std::unique_ptr<VendorContext>> VendorContext::duplicate() const {
  if (library_->api().dup_context == nullptr)
    return error(library_->missing("rknn_dup_context", "to share weights"));
  rknn_context from = handle_;
  rknn_context made = 0;
  const int result = library_->api().dup_context(&from, &made);
  if (result < 0)
    return error(library_->failed("rknn_dup_context", result, Code::kUnsupported,
                                  "the context cannot be duplicated"));
  return std::unique_ptr<VendorContext>(new VendorContext(library_, made, false));
}

/// A failure has no caller any more.
VendorContext::~VendorContext() {
  const int result = library_->api().destroy(handle_);
  if (result < 0)
    log::warn("rknn", "{}",
              library_->failed("rknn_destroy", result, Code::kInternal, "a context").message());
}

Status VendorContext::query(rknn_query_cmd what, void* answer, std::size_t size,
                            std::string_view subject) const {
  const int result = library_->api().query(handle_, what, answer, static_cast<std::uint32_t>(size));
  if (result >= 0) return {};
  return library_->failed("rknn_query", result, Code::kEngineFailed, subject);
}

/// Once shapes were set, the library tells the new ones by other commands.
Result<Attributes> VendorContext::attributes() const {
  rknn_input_output_num count{};
  CORELANE_TRY(query(RKNN_QUERY_IN_OUT_NUM, &count, sizeof(count), "the number of inputs"));
  if (count.n_input > kMostTensors || count.n_output > kMostTensors)
    return error(Code::kMalformed, "{} reports {} inputs and {} outputs; at most {} are taken",
                 library_->name(), count.n_input, count.n_output, kMostTensors);
  const auto read = [this](rknn_query_cmd what, std::uint32_t number, const char* role,
                           std::vector<rknn_tensor_attr>& list) -> Status {
    for (std::uint32_t i = 0; i < number; ++i) {
      rknn_tensor_attr attr{};
      attr.index = i;
      CORELANE_TRY(query(what, &attr, sizeof(attr), fmt::format("{} {}", role, i)));
      list.push_back(attr);
    }
    return {};
  };
  Attributes result;
  CORELANE_TRY(read(reshaped_ ? RKNN_QUERY_CURRENT_INPUT_ATTR : RKNN_QUERY_INPUT_ATTR,
                    count.n_input, "input", result.inputs));
  CORELANE_TRY(read(reshaped_ ? RKNN_QUERY_CURRENT_OUTPUT_ATTR : RKNN_QUERY_OUTPUT_ATTR,
                    count.n_output, "output", result.outputs));
  return result;
}

/// The text is for people: a library that does not answer does not fail.
std::string VendorContext::version() const {
  rknn_sdk_version version{};
  if (!query(RKNN_QUERY_SDK_VERSION, &version, sizeof(version), "version").ok()) return {};
  const std::string driver = text_of(version.drv_version);
  const std::string api = text_of(version.api_version);
  return api.empty() || driver.empty() ? api : api + " driver " + driver;
}

rknn_mem_size VendorContext::memory() const {
  rknn_mem_size size{};
  if (!query(RKNN_QUERY_MEM_SIZE, &size, sizeof(size), "memory").ok()) return {};
  return size;
}

Result<std::string> VendorContext::layer_text() const {
  rknn_perf_detail detail{};
  CORELANE_TRY(query(RKNN_QUERY_PERF_DETAIL, &detail, sizeof(detail), "the times of layers"));
  if (detail.perf_data == nullptr) return std::string();
  return std::string(detail.perf_data);  // The API gives a C string, with or without a length.
}

/// All inputs at once, as the API takes them.
Status VendorContext::set_input_shapes(std::vector<rknn_tensor_attr>& shapes) {
  if (library_->api().set_input_shapes == nullptr)
    return library_->missing("rknn_set_input_shapes", "to give inputs other shapes");
  const int result = library_->api().set_input_shapes(
      handle_, static_cast<std::uint32_t>(shapes.size()), shapes.data());
  if (result < 0)
    return library_->failed("rknn_set_input_shapes", result, Code::kShapeMismatch,
                            "the image does not allow these input shapes together");
  reshaped_ = true;
  return {};
}

Status VendorContext::set_cores(std::uint32_t mask) {
  const int result = library_->api().set_core_mask(handle_, static_cast<rknn_core_mask>(mask));
  if (result >= 0) return {};
  const std::string cores = mask == RKNN_NPU_CORE_AUTO  ? "any"
                            : mask == RKNN_NPU_CORE_ALL ? "all"
                                                        : device::CoreSet::mask(mask).to_string();
  return library_->failed("rknn_set_core_mask", result, Code::kUnsupported,
                          fmt::format("cores '{}' cannot be chosen", cores));
}

}  // namespace corelane::drivers::rknn
