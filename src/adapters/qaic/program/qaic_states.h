/// State on the device, as clients ask for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "QAicApi.h"
#include "adapters/qaic/api/qaic_edge.h"
#include "corelane/runtime/context.h"

namespace corelane::qaic {

class BufferPlan;

/// A call about the state of a context. One caller at a time.
class StateCalls {
 public:
  StateCalls(Context& context, const BufferPlan& plan) : context_(context), plan_(plan) {}

  /// `count`: in, how many `states` takes (null: none); out, how many there are.
  Outcome list(std::uint32_t& count, QAicStateInfo* states) const;
  /// QAIC_ALL_STATES: all of them.
  Outcome reset(std::uint32_t state);
  Outcome set(std::uint32_t state, const void* data, std::uint64_t size);
  Outcome copy(std::uint32_t state, void* data, std::uint64_t size) const;

 private:
  Context& context_;
  const BufferPlan& plan_;
};

}  // namespace corelane::qaic
