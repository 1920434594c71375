/// A matrix product prepared for the lanes of one virtual NPU; see corelane/device/matmul_image.h.
///
/// This room computes products without the engine: matmul_pack.h brings B into the form that a
/// kernel reads, matmul_store.h shares the packed copies, matmul_request.cpp runs a product, on
/// oneDNN or on the loops of matmul_kernels.h (matmul_gemm.h chooses), with the threads of
/// matmul_threads.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/matmul_image.h"
#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/matmul/matmul_gemm.h"
#include "drivers/virtual/matmul/matmul_store.h"

namespace corelane::drivers::virtual_npu {

class MatmulProgram final : public device::LaneProgram,
                            public std::enable_shared_from_this<MatmulProgram> {
 public:
  static Result<std::shared_ptr<MatmulProgram>> create(const device::Image& image,
                                                       const device::PrepareOptions& options,
                                                       std::shared_ptr<StoreB> store);

  const std::vector<TensorDesc>& inputs() const noexcept override { return inputs_; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return outputs_; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override;
  bool keeps_input(std::size_t index) const noexcept override { return index == 1; }
  Result<std::shared_ptr<device::KeptContent>> kept_content(
      std::size_t index, const device::TensorRef& tensor) override;
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t width,
                                                           std::size_t core) override;
  Result<device::Executable::Precompiled> export_precompiled() const override;

  const device::MatmulDesc& desc() const noexcept { return desc_; }
  GemmForm form() const noexcept { return form_; }
  std::size_t b_bytes() const noexcept { return b_bytes_; }
  bool profiled() const noexcept { return profiled_; }
  std::shared_ptr<SharedB> shared_b(const device::TensorRef& b);
  /// Scratch memory of its requests, for the figures.
  std::atomic<std::size_t> scratch_bytes{0};

 private:
  MatmulProgram(device::MatmulDesc desc, std::shared_ptr<StoreB> store);
  KeyB key_of(const device::TensorRef& b) const { return {b.data, b_bytes_, meaning_}; }

  const device::MatmulDesc desc_;
  const std::shared_ptr<StoreB> store_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
  GemmForm form_;
  bool profiled_ = false;
  std::size_t b_bytes_ = 0;
  std::string meaning_;  ///< Of the bytes of B, for the key.
};

}  // namespace corelane::drivers::virtual_npu
