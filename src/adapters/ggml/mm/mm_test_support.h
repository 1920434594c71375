/// Matrices, products by definition, and a library whose runs fail when told to, for the tests of
/// this folder.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_convert.h"
#include "adapters/ggml/mm/mm_engine.h"

namespace corelane::ggml {

/// Owns the bytes of a matrix of floats or halves.
struct OwnedMatrix {
  std::vector<float> floats;
  std::vector<std::uint16_t> halves;
  MmMatrix view;
};

inline OwnedMatrix random_matrix(std::int64_t rows, std::int64_t columns, RowForm form,
                                 unsigned seed) {
  OwnedMatrix made;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  made.floats.resize(static_cast<std::size_t>(rows * columns));
  for (float& x : made.floats) x = uniform(random);
  made.view.rows = rows;
  made.view.columns = columns;
  made.view.form = form;
  if (form == RowForm::kHalves) {
    made.halves.resize(made.floats.size());
    floats_to_halves(made.floats.data(), made.floats.size(), made.halves.data());
    made.view.data = made.halves.data();
    made.view.row_bytes = static_cast<std::size_t>(columns) * 2;
  } else {
    made.view.data = made.floats.data();
    made.view.row_bytes = static_cast<std::size_t>(columns) * 4;
  }
  return made;
}

/// Mean square of the difference from the product in doubles, relative to that product's.
inline double error_of(const MmMatrix& a, const MmMatrix& b, const std::vector<float>& c,
                       std::size_t c_row) {
  std::vector<float> x(static_cast<std::size_t>(a.columns)), y(x.size());
  double difference = 0;
  double size = 0;
  for (std::int64_t m = 0; m < a.rows; ++m) {
    read_row(a, m, x.data());
    for (std::int64_t n = 0; n < b.rows; ++n) {
      read_row(b, n, y.data());
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
      const double got = c[static_cast<std::size_t>(m) * c_row + static_cast<std::size_t>(n)];
      difference += (got - sum) * (got - sum);
      size += sum * sum;
    }
  }
  return difference / size;
}

constexpr MmType kAllTypes[] = {MmType::kF16, MmType::kInt8, MmType::kW4A8, MmType::kW4A4};

/// What error_of() finds at most in products of random matrices. Int4 leaves 0.012 of the square of
/// each of the two, as it must of elements that are spread normally.
inline double bound_of(MmType type) {
  constexpr double kBounds[] = {1e-6, 5e-4, 0.015, 0.03};
  return kBounds[static_cast<int>(type)];
}

/// Our library, loaded once; runs fail while `failing_runs` is above 0, contexts while
/// `failing_creates` is, and memory while `lacks_memory` is set.
struct TestLibrary {
  inline static std::atomic<int> failing_runs{0};
  inline static std::atomic<int> failing_creates{0};
  inline static std::atomic<int> creates{0};
  inline static std::atomic<bool> lacks_memory{false};
  inline static std::atomic<int> memory_asked{0};
  inline static std::atomic<int> bindings_of_b{0};
  inline static std::atomic<int> syncs_to_device{0};
  /// As older releases do.
  inline static std::atomic<bool> refuses_masks_of_several{false};
  inline static std::atomic<int> masks_set[8] = {};  ///< By mask, for contexts of products.
  /// Bits of the numbers of the types that the chip lacks.
  inline static std::atomic<unsigned> lacks_types{0};
  inline static RknnFunctions real;

  static int run(rknn_matmul_ctx ctx) {
    if (failing_runs.load() > 0 && failing_runs.fetch_sub(1) > 0) return RKNN_ERR_TIMEOUT;
    return real.matmul_run(ctx);
  }
  static int create(rknn_matmul_ctx* ctx, rknn_matmul_info* info, int count,
                    rknn_matmul_shape* shapes, rknn_matmul_io_attr* io) {
    ++creates;
    if ((lacks_types >> info->type & 1U) != 0) return RKNN_ERR_PARAM_INVALID;
    if (failing_creates.load() > 0 && failing_creates.fetch_sub(1) > 0) return RKNN_ERR_MALLOC_FAIL;
    return real.matmul_create_dynamic_shape(ctx, info, count, shapes, io);
  }
  static rknn_tensor_mem* create_mem(rknn_context ctx, std::uint32_t size) {
    ++memory_asked;
    return lacks_memory ? nullptr : real.create_mem(ctx, size);
  }
  static int set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem, rknn_matmul_tensor_attr* attr) {
    if (attr->name[0] == 'B') ++bindings_of_b;
    return real.matmul_set_io_mem(ctx, mem, attr);
  }
  static int mem_sync(rknn_context ctx, rknn_tensor_mem* mem, rknn_mem_sync_mode mode) {
    if (mode == RKNN_MEMORY_SYNC_TO_DEVICE) ++syncs_to_device;
    return real.mem_sync(ctx, mem, mode);
  }
  static int set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask mask) {
    if (refuses_masks_of_several && (mask & (mask - 1)) != 0) return RKNN_ERR_PARAM_INVALID;
    ++masks_set[mask & 7];
    return real.matmul_set_core_mask(ctx, mask);
  }
  /// Counts begin anew.
  static std::shared_ptr<const RknnLibrary> get() {
    std::string why;
    const auto ours = RknnLibrary::open(RKNNRT_FILE, why);
    EXPECT_NE(ours, nullptr) << why;
    real = ours->call;
    RknnFunctions call = real;
    call.matmul_run = run;
    call.matmul_create_dynamic_shape = create;
    call.matmul_set_io_mem = set_io_mem;
    call.matmul_set_core_mask = set_core_mask;
    call.create_mem = create_mem;
    call.mem_sync = mem_sync;
    failing_runs = failing_creates = creates = bindings_of_b = memory_asked = syncs_to_device = 0;
    lacks_memory = false;
    refuses_masks_of_several = false;
    lacks_types = 0;
    for (auto& count : masks_set) count = 0;
    return std::make_shared<RknnLibrary>(call);
  }
};

}  // namespace corelane::ggml
