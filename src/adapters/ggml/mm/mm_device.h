/// The NPU behind a librknnrt.so, as products need it: its cores, and memory that it shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_library.h"
#include "adapters/ggml/mm/mm_plan.h"

namespace corelane::ggml {

class MmMemory;

/// What memory objects may take together: the address space of one IOMMU domain, and descriptors,
/// of which each object holds one.
struct MmBudget {
  std::uint64_t bytes = std::uint64_t{4} << 30;
  std::size_t objects = 512;
};

/// Who memory objects are for.
enum class MmUse {
  kKept,    ///< Weights and buffers of the host: what stays.
  kShared,  ///< Rows, results and matrices that are no weights, which all products share.
};

/// The API's number of a product.
rknn_matmul_type api_type(MmType type);

/// From any thread.
class MmDevice : public std::enable_shared_from_this<MmDevice> {
 public:
  /// Makes the smallest product, which all memory is asked of, and probes what the library takes.
  /// `cores`: how many a product runs on. Null, with one line in `why`, where it makes no products.
  static std::shared_ptr<MmDevice> open(std::shared_ptr<const RknnLibrary> library, int cores,
                                        MmBudget budget, std::string& why);
  ~MmDevice();
  MmDevice(const MmDevice&) = delete;
  MmDevice& operator=(const MmDevice&) = delete;

  /// Whether the library makes products of the type: makes a small one to see, since chips differ.
  bool makes(MmType type) const;
  /// The products that weights of int4 are for here: kW4A8 where the library makes them, else
  /// kW4A4, else kInt8. `both`: A is to be int4, too, so never kW4A8.
  MmType type_of_int4(bool both) const;

  /// Zeroed memory with a descriptor; null where the budget is spent or the library has none. A
  /// part of the budget is left for kShared: without it no product runs. A library that has refused
  /// is asked more and more seldom, since each refusal is a line of its own in its log.
  std::shared_ptr<MmMemory> allocate(std::size_t bytes, MmUse use = MmUse::kKept);
  /// `bytes` from `offset` of `block`, which lives as long as the slice. Null on failure.
  std::shared_ptr<MmMemory> slice(std::shared_ptr<MmMemory> block, std::size_t offset,
                                  std::size_t bytes);

  const RknnFunctions& call() const { return library_->call; }
  const RknnLibrary& library() const { return *library_; }
  /// Products that run at the same time, each in a context of its own: one on all cores where the
  /// library takes a mask of several, else one on each core.
  int streams() const { return static_cast<int>(masks_.size()); }
  /// The core mask of a stream's contexts. Null: the chip has one core, or the library no masks.
  const rknn_core_mask* mask(int stream) const {
    return takes_mask_ ? &masks_[static_cast<std::size_t>(stream)] : nullptr;
  }
  int cores() const { return cores_; }
  std::uint64_t bytes() const;
  std::size_t objects() const;

 private:
  friend class MmMemory;
  MmDevice(std::shared_ptr<const RknnLibrary> library, MmBudget budget);
  int create(MmType type, rknn_matmul_shape shape, rknn_matmul_ctx& context) const;
  void probe_mask(int cores);
  bool take(std::size_t bytes, MmUse use);
  void give_back(std::size_t bytes, MmUse use);
  void note(bool refused, std::size_t bytes);

  const std::shared_ptr<const RknnLibrary> library_;
  const MmBudget budget_;
  const MmBudget reserve_;  ///< Of the budget, for kShared.
  rknn_matmul_ctx context_ = 0;
  std::vector<rknn_core_mask> masks_ = {RKNN_NPU_CORE_AUTO};
  bool takes_mask_ = false;
  int cores_ = 1;
  mutable std::mutex mutex_;
  MmBudget taken_[2] = {{0, 0}, {0, 0}};  ///< By MmUse.
  std::size_t refused_bytes_ = SIZE_MAX;  ///< The least that the library has refused.
  unsigned refusals_ = 0;                 ///< One after another.
  unsigned skips_ = 0;                    ///< Requests of that size to come that are not made.
};

/// A memory object of the library, or a slice of one. Freed with its last owner.
class MmMemory {
 public:
  ~MmMemory();
  MmMemory(const MmMemory&) = delete;
  MmMemory& operator=(const MmMemory&) = delete;

  /// Where the bytes are in this process.
  void* data() const;
  std::size_t size() const { return bytes_; }
  rknn_tensor_mem* handle() const { return mem_; }
  /// Says that the CPU has written: the NPU sees it, and a packed copy of it is made anew.
  void written() const;
  /// Says that the CPU will read what the NPU wrote.
  void read() const;

 private:
  friend class MmDevice;
  MmMemory() = default;
  std::shared_ptr<MmDevice> device_;
  std::shared_ptr<MmMemory> block_;  ///< Of a slice.
  rknn_tensor_mem* mem_ = nullptr;
  std::size_t bytes_ = 0;
  MmUse use_ = MmUse::kKept;
};

}  // namespace corelane::ggml
