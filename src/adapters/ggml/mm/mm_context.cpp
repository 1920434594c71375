#include "adapters/ggml/mm/mm_context.h"

#include <algorithm>

namespace corelane::ggml {
namespace {

bool failed(int code, const char* function, std::string& why) {
  if (code == RKNN_SUCC) return false;
  why = std::string(function) + " returned " + std::to_string(code);
  return true;
}

}  // namespace

std::unique_ptr<MmContext> MmContext::create(std::shared_ptr<MmDevice> device, MmType type,
                                             std::int64_t k, std::int64_t n,
                                             const std::vector<std::int64_t>& buckets, int stream,
                                             std::string& why) {
  std::unique_ptr<MmContext> made(new MmContext(std::move(device), k, n));
  rknn_matmul_info info{};
  info.type = api_type(type);
  info.B_layout = RKNN_MM_LAYOUT_TP_NORM;
  std::vector<rknn_matmul_shape> shapes;
  for (const std::int64_t rows : buckets)
    shapes.push_back({static_cast<std::int32_t>(rows), static_cast<std::int32_t>(k),
                      static_cast<std::int32_t>(n)});
  made->buckets_ = buckets;
  made->io_.resize(buckets.size());
  const RknnFunctions& call = made->device_->call();
  if (failed(
          call.matmul_create_dynamic_shape(&made->context_, &info, static_cast<int>(shapes.size()),
                                           shapes.data(), made->io_.data()),
          "rknn_matmul_create_dynamic_shape", why)) {
    made->context_ = 0;
    return nullptr;
  }
  const rknn_core_mask* mask = made->device_->mask(stream);
  if (mask != nullptr &&
      failed(call.matmul_set_core_mask(made->context_, *mask), "rknn_matmul_set_core_mask", why))
    return nullptr;
  return made;
}

MmContext::~MmContext() {
  if (context_ != 0) device_->call().matmul_destroy(context_);
}

/// A and C are bound anew for another shape, as the API asks; B stays, or it would be packed again.
bool MmContext::choose(std::int64_t rows, std::string& why) {
  const auto at = static_cast<std::size_t>(std::find(buckets_.begin(), buckets_.end(), rows) -
                                           buckets_.begin());
  if (at == chosen_) return true;
  rknn_matmul_shape shape{static_cast<std::int32_t>(rows), static_cast<std::int32_t>(k_),
                          static_cast<std::int32_t>(n_)};
  if (failed(device_->call().matmul_set_dynamic_shape(context_, &shape),
             "rknn_matmul_set_dynamic_shape", why))
    return false;
  chosen_ = at;
  a_.reset();
  c_.reset();
  return true;
}

void MmContext::unbind() {
  chosen_ = SIZE_MAX;
  a_.reset();
  c_.reset();
}

bool MmContext::bind(std::shared_ptr<MmMemory>& bound, const std::shared_ptr<MmMemory>& memory,
                     rknn_matmul_tensor_attr& attr, std::string& why) {
  if (bound == memory) return true;
  bound.reset();
  if (failed(device_->call().matmul_set_io_mem(context_, memory->handle(), &attr),
             "rknn_matmul_set_io_mem", why))
    return false;
  bound = memory;
  return true;
}

bool MmContext::run(std::int64_t rows, const std::shared_ptr<MmMemory>& a,
                    const std::shared_ptr<MmMemory>& b, const std::shared_ptr<MmMemory>& c,
                    std::string& why) {
  if (!choose(rows, why)) return false;
  rknn_matmul_io_attr& io = io_[chosen_];
  return bind(a_, a, io.A, why) && bind(b_, b, io.B, why) && bind(c_, c, io.C, why) &&
         !failed(device_->call().matmul_run(context_), "rknn_matmul_run", why);
}

}  // namespace corelane::ggml
