#include "adapters/ggml/mm/mm_pool.h"

#include <utility>

namespace corelane::ggml {

MmContext* MmPool::find(MmType type, const MmTile& tile, int stream, const MmMemory& b,
                        std::string& why) {
  const std::int64_t k = tile.padded_k;
  const std::int64_t n = tile.padded_n;
  auto same_size = entries_.end();  // The one used least lately of this size.
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->type != type || at->k != k || at->n != n || at->stream != stream) continue;
    same_size = at;
    if (at->context->b() == &b) break;
  }
  const bool bound = same_size != entries_.end() && same_size->context->b() == &b;
  const bool full = entries_.size() >= max_contexts_;
  if (bound || (full && same_size != entries_.end())) {
    entries_.splice(entries_.begin(), entries_, same_size);
    return entries_.front().context.get();
  }
  if (full) entries_.pop_back();
  auto context = MmContext::create(device_, type, k, n, buckets_, stream, why);
  if (context == nullptr) return nullptr;
  entries_.push_front({type, k, n, stream, std::move(context)});
  return entries_.front().context.get();
}

void MmPool::unbind() {
  for (Entry& entry : entries_) entry.context->unbind();
}

void MmPool::set_buckets(std::vector<std::int64_t> buckets) {
  if (buckets == buckets_) return;
  buckets_ = std::move(buckets);
  entries_.clear();
}

void MmPool::forget(const MmMemory& b) {
  entries_.remove_if([&b](const Entry& entry) { return entry.context->b() == &b; });
}

}  // namespace corelane::ggml
