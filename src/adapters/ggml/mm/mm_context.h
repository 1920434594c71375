/// One matmul context of the library: one K, N and type, all buckets of M, and at most one B.
///
/// The library packs B when it is bound, so that a B of weights keeps the context that it was bound
/// to (MmPool); A and C are the memory that all contexts share. One call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_device.h"
#include "adapters/ggml/mm/mm_plan.h"

namespace corelane::ggml {

class MmContext {
 public:
  /// K and N as the library takes them; on the cores of the stream. Null, with the function and its
  /// code in `why`, on failure.
  static std::unique_ptr<MmContext> create(std::shared_ptr<MmDevice> device, MmType type,
                                           std::int64_t k, std::int64_t n,
                                           const std::vector<std::int64_t>& buckets, int stream,
                                           std::string& why);
  ~MmContext();
  MmContext(const MmContext&) = delete;
  MmContext& operator=(const MmContext&) = delete;

  /// Computes `rows` rows, one of the buckets. False, with a line in `why`, on failure.
  bool run(std::int64_t rows, const std::shared_ptr<MmMemory>& a,
           const std::shared_ptr<MmMemory>& b, const std::shared_ptr<MmMemory>& c,
           std::string& why);
  /// Lets go of the A and C that it was last run with, which the next run binds anew.
  void unbind();
  /// The B that it was last run with; null before.
  const MmMemory* b() const { return b_.get(); }

 private:
  MmContext(std::shared_ptr<MmDevice> device, std::int64_t k, std::int64_t n)
      : device_(std::move(device)), k_(k), n_(n) {}
  bool choose(std::int64_t rows, std::string& why);
  bool bind(std::shared_ptr<MmMemory>& bound, const std::shared_ptr<MmMemory>& memory,
            rknn_matmul_tensor_attr& attr, std::string& why);

  const std::shared_ptr<MmDevice> device_;
  const std::int64_t k_;
  const std::int64_t n_;
  rknn_matmul_ctx context_ = 0;
  std::vector<std::int64_t> buckets_;
  std::vector<rknn_matmul_io_attr> io_;  ///< By bucket.
  std::size_t chosen_ = SIZE_MAX;
  std::shared_ptr<MmMemory> a_;
  std::shared_ptr<MmMemory> b_;
  std::shared_ptr<MmMemory> c_;
};

}  // namespace corelane::ggml
