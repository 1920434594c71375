#include "adapters/ggml/mm/mm_pool.h"

#include <iterator>
#include <utility>

namespace corelane::ggml {

/// The entry that has to make room for another; the end where there is room for one more.
std::list<MmPool::Entry>::iterator MmPool::victim(bool staged) {
  auto last = entries_.end();
  std::size_t count = 0;
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (!at->staged) continue;
    last = at;
    ++count;
  }
  if (staged && count >= kMostStaged) return last;
  return entries_.size() >= max_contexts_ ? std::prev(entries_.end()) : entries_.end();
}

MmContext* MmPool::find(MmType type, const MmTile& tile, int stream, const MmMemory& b, bool staged,
                        std::string& why) {
  const std::int64_t k = tile.padded_k;
  const std::int64_t n = tile.padded_n;
  auto same_size = entries_.end();  // The one used least lately of this size.
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->staged != staged || at->type != type || at->k != k || at->n != n ||
        at->stream != stream)
      continue;
    same_size = at;
    if (at->context->b() == &b) break;
  }
  const bool bound = same_size != entries_.end() && same_size->context->b() == &b;
  const auto going = bound ? entries_.end() : victim(staged);
  if (bound || (going != entries_.end() && same_size != entries_.end())) {
    entries_.splice(entries_.begin(), entries_, same_size);
    return entries_.front().context.get();
  }
  if (going != entries_.end()) entries_.erase(going);
  auto context = MmContext::create(device_, type, k, n, buckets_, stream, why);
  if (context == nullptr) return nullptr;
  entries_.push_front({staged, type, k, n, stream, std::move(context)});
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
