/// Products of the host's matrices on the NPU: C(M, N) = A(M, K) x B(N, K), all row by row.
///
/// Everything that the products share is here: contexts, memory for A and C, a B for one product.
/// From any thread; one product at a time, as there is one NPU. Nothing throws but std::bad_alloc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_pool.h"
#include "adapters/ggml/mm/mm_rows.h"
#include "adapters/ggml/mm/mm_weight.h"

namespace corelane::ggml {

struct MmOptions {
  int cores = 3;
  MmBudget budget;
  /// The most contexts of products. A weight that lost its context to another is packed anew.
  std::size_t max_contexts = 1024;
  MmLimits limits;
};

/// Counts since the start; times in nanoseconds.
struct MmFigures {
  std::uint64_t products = 0;
  std::uint64_t failed = 0;        ///< Of them, computed on the CPU.
  std::uint64_t conversions = 0;   ///< Of rows of A; fewer where products share them.
  std::uint64_t copied_bytes = 0;  ///< Of weights, in objects of their own.
  std::uint64_t convert_time = 0;  ///< Rows of A.
  std::uint64_t prepare_time = 0;  ///< B.
  std::uint64_t run_time = 0;      ///< In the library.
  std::uint64_t finish_time = 0;   ///< C to where it belongs.
  std::uint64_t failed_time = 0;
};

/// Computes a product on the CPU in another way than by its definition; false where it cannot.
using MmFallback = std::function<bool()>;

class MmEngine {
 public:
  /// `told`: gets one line about each kind of failure, once. Null, with one line in `why`, where
  /// the library makes no products.
  static std::shared_ptr<MmEngine> create(std::shared_ptr<const RknnLibrary> library,
                                          const MmOptions& options,
                                          std::function<void(const std::string&)> told,
                                          std::string& why);

  /// A `b` that stays as it is until release(). `block`: the memory object that it lies in from
  /// `offset` on, so that no copy is needed where its rows are as the library wants them; may be
  /// null. Null where there is no room for it.
  std::shared_ptr<MmWeight> prepare(const MmMatrix& b, MmType type,
                                    const std::shared_ptr<MmMemory>& block, std::size_t offset);
  /// Threads that convert rows and results. Until it is called: the CPU's, at most 8.
  void set_threads(int threads) { threads_.store(threads, std::memory_order_relaxed); }
  int threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Products of one row are to come: contexts that are made from now on have a bucket for them.
  void take_single_rows();
  /// Any matrix of the host's may have changed since the products before, but for weights.
  void begin_group();
  /// Waits for the product that runs, at most for `patience`; those to come are computed on the
  /// CPU. For the end of a process, when libraries below take down what products use.
  void stop(std::chrono::milliseconds patience);
  /// False while a product runs: figures() would wait for it.
  bool is_idle() const;
  /// Before the bytes of the weight change or go.
  void release(const std::shared_ptr<MmWeight>& weight);
  /// A product had no memory for the least number of rows, and none was given back since then: each
  /// is computed on the CPU. From any thread.
  bool lacks_memory() const;

  /// One B and, while it is there, any number of products with it. `weight`: null for a B that may
  /// be another one the next time; it is copied.
  class Products;

  MmFigures figures() const;
  MmDevice& device() { return *device_; }
  std::uint64_t allocated() const { return device_->bytes(); }
  std::size_t contexts() const;

 private:
  friend class Products;
  MmEngine(const std::shared_ptr<MmDevice>& device, const MmOptions& options,
           std::function<void(const std::string&)> told);
  std::shared_ptr<MmWeight> make(const MmMatrix& b, MmType type,
                                 const std::shared_ptr<MmMemory>& block, std::size_t offset);
  bool stage(const MmMatrix& b, MmType type);
  bool make_staged(std::size_t at, std::size_t bytes);
  enum class Outcome { kDone, kNoMemory, kFailed };
  bool multiply(const MmMatrix& a, const MmWeight& b, float* c, std::size_t c_row_bytes);
  Outcome multiply_rows(const MmMatrix& a, std::int64_t first, std::int64_t rows,
                        std::int64_t bucket, const MmWeight& b, float* c, std::size_t c_row_bytes);
  void take_fewer_rows(std::int64_t bucket);
  void tell_shortage();
  bool multiply_tiles(std::int64_t bucket, const MmWeight& b, const std::vector<std::size_t>& at);
  void finish(const MmWeight& b, std::size_t at, const MmMemory& sums, std::int64_t rows, float* c,
              std::size_t c_row_bytes);
  std::string taken() const;
  void tell(const std::string& kind, const std::string& line);

  const MmOptions options_;
  const std::shared_ptr<MmDevice> device_;
  const std::function<void(const std::string&)> told_;
  mutable std::mutex mutex_;
  bool stopped_ = false;
  MmPool pool_;
  MmRows a_;
  std::vector<std::shared_ptr<MmMemory>> c_;  ///< One for each stream of the device.
  std::vector<std::shared_ptr<MmMemory>> staged_memory_;
  MmWeight staged_;
  std::vector<std::string> kinds_told_;
  /// The bucket that rows and results had memory for at last, 0 for none, and the bytes that were
  /// taken then: with fewer taken, larger ones are tried again.
  std::atomic<std::int64_t> most_rows_{INT64_MAX};
  std::atomic<std::uint64_t> short_bytes_{0};
  MmFigures figures_;
  std::atomic<int> threads_;
};

/// Holds the NPU from its making to its end, in one thread.
class MmEngine::Products {
 public:
  /// `on_npu`: false where no product is to be tried there.
  Products(MmEngine& engine, const MmMatrix& b, MmType type, const MmWeight* weight,
           bool on_npu = true);
  /// `a`: columns as B. `c`: (rows of a, rows of b) floats. False: the CPU computed it, by `other`
  /// where there is one and it can.
  bool multiply(const MmMatrix& a, float* c, std::size_t c_row_bytes,
                const MmFallback& other = nullptr);

 private:
  MmEngine& engine_;
  const std::lock_guard<std::mutex> lock_;
  const MmMatrix& b_;
  const MmWeight* weight_;
};

}  // namespace corelane::ggml
