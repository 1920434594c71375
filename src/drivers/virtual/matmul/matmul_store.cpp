#include "drivers/virtual/matmul/matmul_store.h"

#include <algorithm>
#include <utility>

namespace corelane::drivers::virtual_npu {

Result<SharedB::Packed> SharedB::get(const std::function<Result<Packed>()>& pack) {
  const MutexLock lock(mutex_);
  // Read before the memory is, so that content that is renewed while it is packed counts as stale.
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
    if (shared != nullptr) store->give_back(key, user);
  }
};

std::shared_ptr<SharedB> StoreB::use(const KeyB& key, const void* user) {
  // The handle is made first, without the lock that its destructor takes. Where memory runs out
  // later, nothing is registered.
  auto use = std::make_shared<Use>(shared_from_this(), key, user);
  {
    const MutexLock lock(mutex_);
    const auto [place, added] = in_use_.try_emplace(key);
    try {
      place->second.users.push_back(user);
    } catch (...) {
      if (added) in_use_.erase(place);
      throw;
    }
    use->shared = place->second.shared;
  }
  SharedB* const plain = use->shared.get();
  return {std::move(use), plain};
}

void StoreB::give_back(const KeyB& key, const void* user) {
  const MutexLock lock(mutex_);
  const auto found = in_use_.find(key);
  auto& users = found->second.users;
  users.erase(std::find(users.begin(), users.end(), user));
  if (users.empty()) in_use_.erase(found);
}

std::size_t StoreB::bytes_counted_for(const void* user) const {
  const MutexLock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, use] : in_use_)
    if (use.users.front() == user) bytes += use.shared->bytes_;
  return bytes;
}

}  // namespace corelane::drivers::virtual_npu
