/// The context of a matrix product: what rknn_matmul_create makes.
///
/// Its lock (rknn_context_lock.h) lets one function at a time work with the product, a run
/// included. Contexts are independent of each other, so that several run in parallel from several
/// threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/matmul/rknn_matmul_memory.h"
#include "adapters/rknn/matmul/rknn_matmul_plan.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "adapters/rknn/model/rknn_context_lock.h"
#include "corelane/device/device.h"

namespace corelane::rknn {

/// The matrices, as indices.
enum class Matrix : std::uint8_t { kA = 0, kB = 1, kC = 2 };
/// kNotFound for any other name.
Result<Matrix> matrix_of(const char (&name)[RKNN_MAX_NAME_LEN]);
std::string_view matrix_name(Matrix matrix) noexcept;

class MatmulContext final : public Handle {
 public:
  static constexpr HandleKind kKind = HandleKind::kMatmul;

  /// `info` points at a rknn_matmul_info of any release, see plan_matmul(). `io` has room for as
  /// many as `shapes`. `dynamic`: they are a list of which none is chosen yet.
  static Result<std::shared_ptr<MatmulContext>> create(const void* info,
                                                       const std::vector<rknn_matmul_shape>& shapes,
                                                       bool dynamic, rknn_matmul_io_attr* io);
  /// Waits for what is running; functions that come after it find the context destroyed.
  void close(rknn_context number);

  Outcome set_io_mem(const rknn_tensor_mem* mem, const rknn_matmul_tensor_attr& attr);
  Outcome set_core_mask(rknn_core_mask mask);
  Outcome set_dynamic_shape(const rknn_matmul_shape& shape);
  Outcome run();

  // rknn_matmul_quant.cpp
  Outcome set_quant_params(const rknn_quant_params& params);
  Outcome get_quant_params(const rknn_quant_params& params, float* scale);

  std::int32_t domain() const noexcept { return plan_.domain; }

 private:
  /// Memory of one matrix.
  struct BoundMatrix {
    std::shared_ptr<Memory> memory;
    std::uint64_t age = 0;  ///< Which rknn_matmul_set_io_mem of this context bound it; 0: none.
  };
  /// What a shape runs with, made at its first run.
  struct Ready {
    std::shared_ptr<device::Executable> executable;
    std::shared_ptr<device::Bindings> bindings;
    std::array<std::uint64_t, 3> ages{};  ///< BoundMatrix::age that the bindings have.
    std::uint64_t b_writes = 0;           ///< Memory::writes of B when it was last announced.
    std::uint64_t b_hash = 0;             ///< Of its content then, in the checking mode.
    void forget_bindings() {
      bindings.reset();
      ages = {};
    }
  };
  struct Size {
    device::MatmulDesc desc;  ///< Without scales and zero points.
    std::array<std::size_t, 3> bytes{};
    Ready ready;
  };
  struct Scales {
    std::vector<float> scales;              ///< Empty: 1.
    std::vector<std::int32_t> zero_points;  ///< Empty: 0.
  };

  MatmulContext();
  Status add_shapes(const std::vector<rknn_matmul_shape>& shapes, rknn_matmul_io_attr* io)
      CORELANE_REQUIRES(mutex_);
  Result<Size*> current() CORELANE_REQUIRES(mutex_);
  /// Bytes of B of the shape that takes most of them.
  std::size_t largest_b() const noexcept CORELANE_REQUIRES(mutex_);
  DType type_of(Matrix matrix) const noexcept;
  Status check_bound(const Size& size) const CORELANE_REQUIRES(mutex_);
  Status prepare(Size& size) CORELANE_REQUIRES(mutex_);
  Status bind(Size& size) CORELANE_REQUIRES(mutex_);
  Status bind_one(Size& size, Matrix matrix) CORELANE_REQUIRES(mutex_);
  Status await_abandoned() CORELANE_REQUIRES(mutex_);
  Status run_limited(const Size& size, device::Submission job) CORELANE_REQUIRES(mutex_);

  // rknn_matmul_quant.cpp
  Result<device::MatmulDesc> with_quant(const Size& size) const CORELANE_REQUIRES(mutex_);
  Status check_lengths(Matrix matrix, const rknn_quant_params& params) CORELANE_REQUIRES(mutex_);
  /// True where C of int32 is brought to one scale after the product.
  bool normalizes() const noexcept CORELANE_REQUIRES(mutex_);
  void normalize(const Size& size) const CORELANE_REQUIRES(mutex_);

  // Constant once create() has returned.
  MatmulPlan plan_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<device::Queue> queue_;
  Chip chip_;
  bool dynamic_ = false;
  Duration timeout_{0};  ///< Of each run; 0: none.

  mutable ContextMutex mutex_;
  std::vector<Size> sizes_ CORELANE_GUARDED_BY(mutex_);
  std::size_t chosen_ CORELANE_GUARDED_BY(mutex_) = SIZE_MAX;
  std::array<BoundMatrix, 3> bound_ CORELANE_GUARDED_BY(mutex_);
  std::unique_ptr<Watch> b_watch_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t age_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::array<Scales, 3> quant_ CORELANE_GUARDED_BY(mutex_);
  device::CoreSet cores_ CORELANE_GUARDED_BY(mutex_);
  /// The last run, where it was over its time and the engine has its matrices yet.
  std::shared_ptr<device::Completion> abandoned_ CORELANE_GUARDED_BY(mutex_);
};

/// B of `k` x `n` from normal to native layout of the chip that this library opens; `type` is a
/// rknn_matmul_type. Padding is zeroed.
Outcome native_b(const void* input, void* output, int k, int n, std::uint32_t type);
/// Bytes of a native B, padding included.
std::size_t native_b_bytes(const device::MatmulDesc& desc) noexcept;

}  // namespace corelane::rknn
