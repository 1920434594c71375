#include "drivers/virtual/matmul_store.h"

#include <algorithm>

namespace corelane::virtual_npu {

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

std::shared_ptr<SharedB> StoreB::use(const KeyB& key, const void* user) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedB>& mine = in_use_[key];
  if (mine == nullptr) mine = std::make_shared<SharedB>();
  mine->users_.push_back(user);
  SharedB* plain = mine.get();
  return {plain, [store = shared_from_this(), key, shared = mine, user](SharedB*) {
            store->give_back(key, shared, user);
          }};
}

void StoreB::give_back(const KeyB& key, const std::shared_ptr<SharedB>& shared, const void* user) {
  const std::lock_guard lock(mutex_);
  auto& users = shared->users_;
  users.erase(std::find(users.begin(), users.end(), user));
  if (users.empty()) in_use_.erase(key);
}

void StoreB::renew(const KeyB& key) {
  const std::lock_guard lock(mutex_);
  const auto found = in_use_.find(key);
  if (found != in_use_.end()) found->second->renew();
}

std::size_t StoreB::bytes_counted_for(const void* user) const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, shared] : in_use_)
    if (shared->users_.front() == user) bytes += shared->bytes_;
  return bytes;
}

}  // namespace corelane::virtual_npu
