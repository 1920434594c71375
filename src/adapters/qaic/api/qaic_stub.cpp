/// Functions that are not written yet. Each goes from here with its code.
#include "adapters/qaic/api/qaic_edge.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

QStatus later(const char* function) noexcept {
  return guard(function, []() -> Outcome { return outcome(QS_UNSUPPORTED, "not written yet"); });
}

}  // namespace
}  // namespace corelane::qaic

extern "C" QStatus qaicQpcGetBytes(QAicQpcObj*, QData*) { return corelane::qaic::later(__func__); }
