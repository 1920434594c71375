/// A slicing specification of a program: which of its buffers are given in parts, and where these
/// begin.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/program/qaic_slicing_json.h"

namespace corelane::qaic {

class BufferPlan;

/// Immutable; any thread.
class SlicingObject : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::kSlicing;
  using Handle = QAicSlicingSpec;
  using Values = std::map<std::string, std::int64_t, std::less<>>;

  /// Reads `json` by read_slicing(). If several entries match a buffer, the first one counts.
  /// kMalformed; kInvalidArgument for an expression that is not one, or that matches no buffer, and
  /// for another element size or number of dimensions than the buffer's.
  static Result<std::shared_ptr<SlicingObject>> create(std::string_view json,
                                                       std::shared_ptr<const BufferPlan> plan);

  const std::shared_ptr<const BufferPlan>& plan() const noexcept { return plan_; }
  /// Where a slice of the buffer begins; none where it is given whole. kNotFound: a parameter
  /// without a value.
  Result<std::vector<std::int64_t>> start_of(std::size_t buffer, const Values& values) const;
  bool slices(std::size_t buffer) const noexcept { return rule_of_[buffer] != kNone; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  SlicingObject(std::vector<SliceRule> rules, std::shared_ptr<const BufferPlan> plan);
  Status match(std::size_t rule);

  const std::vector<SliceRule> rules_;
  const std::shared_ptr<const BufferPlan> plan_;
  std::vector<std::size_t> rule_of_;  ///< By buffer.
};

}  // namespace corelane::qaic
