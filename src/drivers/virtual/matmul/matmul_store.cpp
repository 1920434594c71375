#include "drivers/virtual/matmul/matmul_store.h"

#include <algorithm>
#include <utility>

namespace corelane::drivers::virtual_npu {

Result<SharedB::Packed> SharedB::get(const std::function<Result<Packed>()>& pack) {
  const std::lock_guard lock(mutex_);
  // Read before the memory is: what is renewed while we pack is stale at once.
  const std::uint64_t content = content_.load(std::memory_order_acquire);
  if (packed_ != nullptr && packed_content_ == content) return packed_;
  packed_.reset();
  bytes_ = 0;
  CORELANE_ASSIGN(packed_, pack());
  packed_content_ = content;
  bytes_ = packed_->bytes;
  return packed_;
}

struct StoreB::Use {
  std::shared_ptr<StoreB> store;
  KeyB key;
  const void* user;
  std::shared_ptr<SharedB> shared;  ///< Null until it is registered.
  Use(std::shared_ptr<StoreB> of, const KeyB& which, const void* whose)
      : store(std::move(of)), key(which), user(whose) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (shared != nullptr) store->give_back(key, shared, user);
  }
};

std::shared_ptr<SharedB> StoreB::use(const KeyB& key, const void* user) {
  // Where memory runs out nothing is registered: first the handle, without the lock that it takes
  // to go, then the entry, then who uses it.
  auto use = std::make_shared<Use>(shared_from_this(), key, user);
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(key);
    std::shared_ptr<SharedB> shared =
        found == in_use_.end() ? std::make_shared<SharedB>() : found->second;
    shared->users_.push_back(user);
    // A new one that the map has no memory for goes with its only user.
    if (found == in_use_.end()) in_use_.emplace(key, shared);
    use->shared = std::move(shared);
  }
  SharedB* const plain = use->shared.get();
  return {std::move(use), plain};
}

void StoreB::give_back(const KeyB& key, const std::shared_ptr<SharedB>& shared, const void* user) {
  const std::lock_guard lock(mutex_);
  auto& users = shared->users_;
  users.erase(std::find(users.begin(), users.end(), user));
  if (users.empty()) in_use_.erase(key);
}

std::size_t StoreB::bytes_counted_for(const void* user) const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, shared] : in_use_)
    if (shared->users_.front() == user) bytes += shared->bytes_;
  return bytes;
}

}  // namespace corelane::drivers::virtual_npu
