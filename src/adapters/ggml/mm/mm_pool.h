/// The contexts that products run in: by type, K and N, and among those by the B that is bound.
///
/// A B of weights finds the context that it ran in before, where it lies packed. When there are as
/// many contexts as allowed, the one that was used least lately serves another B of its K and N, or
/// goes. A B that is written anew for each product is packed anew in any case: contexts of such are
/// few, or a host with matrices of ever new sizes would fill the memory. One call at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "adapters/ggml/mm/mm_context.h"

namespace corelane::ggml {

class MmPool {
 public:
  MmPool(std::shared_ptr<MmDevice> device, std::vector<std::int64_t> buckets,
         std::size_t max_contexts)
      : device_(std::move(device)),
        buckets_(std::move(buckets)),
        max_contexts_(std::max(max_contexts, kLeastContexts)) {}

  /// For a product with `b`, whose size fits, in a stream of the device. `staged`: not a weight's.
  /// Valid for as many calls more as there are streams. Null, with a line in `why`, where the
  /// library makes none.
  MmContext* find(MmType type, const MmTile& tile, int stream, const MmMemory& b, bool staged,
                  std::string& why);
  /// Contexts keep no A and no C that is not needed any more.
  void unbind();
  /// Destroys the contexts that hold `b`, which is going.
  void forget(const MmMemory& b);

  const std::vector<std::int64_t>& buckets() const { return buckets_; }
  /// The contexts that there are go: they were made with others.
  void set_buckets(std::vector<std::int64_t> buckets);
  std::size_t contexts() const { return entries_.size(); }

 private:
  /// As many as products run at the same time.
  static constexpr std::size_t kLeastContexts = 3;
  /// The most B that are not weights: two of attention, and as many for layers of another width.
  static constexpr std::size_t kMostStaged = 8;
  struct Entry {
    bool staged;
    MmType type;
    std::int64_t k;
    std::int64_t n;
    int stream;
    std::unique_ptr<MmContext> context;
  };
  std::list<Entry>::iterator victim(bool staged);

  const std::shared_ptr<MmDevice> device_;
  std::vector<std::int64_t> buckets_;
  const std::size_t max_contexts_;
  std::list<Entry> entries_;  ///< The one used last first.
};

}  // namespace corelane::ggml
