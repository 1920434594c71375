/// A, B and C of one matrix product, and the run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "corelane/driver/lane_engine.h"
#include "drivers/virtual/matmul/matmul_gemm.h"
#include "drivers/virtual/matmul/matmul_program.h"

namespace corelane::drivers::virtual_npu {

/// A run makes A plain (rows of i8 or f32), multiplies, and makes C of the sums. An A or C that has
/// the product's form already is used in place.
class MatmulRequest final : public device::LaneRequest {
 public:
  explicit MatmulRequest(std::shared_ptr<MatmulProgram> program);
  ~MatmulRequest() override;

  Status set_input(std::size_t index, const device::TensorRef& tensor) override;
  Status set_output(std::size_t index, const device::TensorRef& tensor) override;
  Status run(std::uint64_t core_bits) override;
  Result<device::TensorRef> output(std::size_t index) override;
  Result<std::vector<device::LayerTime>> layer_times() const override;

 private:
  /// From sums to C.
  struct Scale {
    std::vector<double> of_channel;  ///< Empty: `of_all` serves every channel.
    std::vector<float> floats;       ///< The same in f32.
    double of_all = 1;
  };
  /// Sized for one number of threads.
  struct Scratch {
    std::vector<std::byte> a_rows;  ///< A made plain.
    std::vector<std::byte> sums;    ///< Where they do not lie in C.
    std::vector<std::byte> c_rows;  ///< One for each thread, before it is cut into blocks.
    std::size_t bytes = 0;          ///< With the product's own, as the program counts them.
  };

  Status check_bound() const;
  void make_factors();
  void make_scratch(std::size_t threads);
  void multiply(const std::shared_ptr<const PackedB>& b);
  void make_corrections(const std::shared_ptr<const PackedB>& b);
  const void* plain_a();
  void make_a_row(std::size_t row, std::byte* out) const;
  void make_c(const void* a);
  void finish_row(std::size_t row, const void* a, std::byte* out);
  void scatter_row(std::size_t row, const std::byte* values) const;

  const std::shared_ptr<MatmulProgram> program_;
  const device::MatmulDesc& desc_;
  const std::size_t m_;
  const std::size_t k_;
  const std::size_t n_;
  const std::size_t c_width_;  ///< Bytes of an element of C.
  const bool integer_;         ///< Sums are i32, else f32.
  const bool a_direct_;        ///< The product reads the bound A in place.
  const bool c_direct_;        ///< It writes its sums into the bound C.
  const bool c_finished_;      ///< The sums are C already.
  device::TensorRef a_;
  device::TensorRef b_;
  device::TensorRef c_;
  std::shared_ptr<SharedB> shared_b_;

  std::optional<Gemm> gemm_;
  std::weak_ptr<const PackedB> corrected_;  ///< The B that `column_add_` belongs to.
  std::vector<std::int32_t> column_add_;    ///< What zero points add to each column; may be empty.
  const std::int32_t* column_zero_ = nullptr;  ///< B's zero points, where A's rows matter.
  std::vector<std::int32_t> zeros_;            ///< For `column_zero_`.
  Scale scale_;
  Scratch scratch_;
  std::atomic<bool> narrow_failed_{false};  ///< In a part of this run.
  Duration last_run_{};
  bool ran_ = false;
};

}  // namespace corelane::drivers::virtual_npu
