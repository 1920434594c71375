/// A request of more items than a call takes: cut into parts, and put together again.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/sync.h"
#include "corelane/base/status.h"
#include "corelane/scheduler/request.h"
#include "scheduler/node/ticket_state.h"

namespace corelane::scheduler {

/// Whether "data" is what split_values() can cut into `items`; kOutOfRange says why not.
Status check_split(const Dict& values, std::uint32_t items);

/// Cuts "data", a Tensor or a vector of them whose dimension 0 is the sum of `sizes`, into one Dict
/// for each size; the other values are copied. kOutOfRange for data that cannot be cut.
Result<std::vector<Dict>> split_values(const Dict& values, const std::vector<std::uint32_t>& sizes);

/// The values that fill up a call: one item of a request of `items`, or the whole request where
/// "data" cannot be cut.
Dict padding_of(const Dict& values, std::uint32_t items);

/// Puts "result" of the parts, in their order, together along dimension 0. kBadResult where they do
/// not fit each other. Not a Result, in which a std::any would take a failure for its value.
Status join_results(const std::vector<Dict>& parts, std::any& result);

/// Collects the answers of the parts. Any thread.
class SplitRequest {
 public:
  SplitRequest(TicketPtr whole, std::size_t parts) : whole_(std::move(whole)), parts_(parts) {}

  /// The answer of the whole request.
  struct Answer {
    RequestState how = RequestState::kDone;
    Status why;
    Dict values;
    SureVector<std::uint64_t> parts{};  ///< In the whole answer: the numbers of the parts.
  };
  const TicketPtr& whole() const noexcept { return whole_; }
  /// A part has ended; called once for each. The last call returns the whole answer: all results
  /// joined, or the answer of the first part, in their order, that has no result.
  std::optional<Answer> ended(std::size_t part, std::uint64_t id, RequestState how, Status why,
                              Dict values) noexcept;

  /// The tickets of the parts, which hold this object until they end; fixed before they enter.
  std::vector<std::weak_ptr<TicketState>> tickets;

 private:
  const TicketPtr whole_;
  Mutex mutex_{LockRank::kLeaf};
  std::vector<Answer> parts_ CORELANE_GUARDED_BY(mutex_);
  std::size_t done_ CORELANE_GUARDED_BY(mutex_) = 0;
};

}  // namespace corelane::scheduler
