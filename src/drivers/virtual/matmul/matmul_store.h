/// The packed copies of B of one device, shared by the programs and requests that use the same B.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/driver/kept_content.h"
#include "drivers/virtual/matmul/matmul_gemm.h"

namespace corelane::drivers::virtual_npu {

/// Identifies a B: its memory, and how it is read and packed.
struct KeyB {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::string meaning;
  auto operator<=>(const KeyB&) const = default;
};

class StoreB;

/// One B. Any thread.
class SharedB final : public device::KeptContent {
 public:
  using Packed = std::shared_ptr<const PackedB>;

  /// The packed copy, made by `pack` where there is none or it is stale; other callers wait for it.
  /// A caller may go on using the copy it holds when it has become stale.
  Result<Packed> get(const std::function<Result<Packed>()>& pack);
  /// Marks the content of the memory as new.
  void renew() noexcept override { content_.fetch_add(1, std::memory_order_acq_rel); }
  std::uint64_t stamp() const noexcept override { return content_.load(std::memory_order_acquire); }

 private:
  friend class StoreB;
  /// Held while this B is packed: callers that want it have to wait for it in any case, and it
  /// guards nothing else.
  Mutex mutex_{LockRank::kPackedMatrix};
  Packed packed_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t packed_content_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> content_{1};
  std::atomic<std::size_t> bytes_{0};
};

/// Any thread. Held by a shared_ptr.
class StoreB : public std::enable_shared_from_this<StoreB> {
 public:
  /// The entry of a B, found or made empty. It is released with the last pointer to it.
  std::shared_ptr<SharedB> use(const KeyB& key, const void* user);
  /// Bytes of the packed copies that `user` is the first user of.
  std::size_t bytes_counted_for(const void* user) const;

 private:
  struct Use;
  struct InUse {
    std::shared_ptr<SharedB> shared = std::make_shared<SharedB>();
    std::vector<const void*> users;  ///< The bytes count for the first one.
  };
  void give_back(const KeyB& key, const void* user);

  mutable Mutex mutex_{LockRank::kLeaf};
  std::map<KeyB, InUse> in_use_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::drivers::virtual_npu
