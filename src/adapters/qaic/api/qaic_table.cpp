/// The function table: every function of the API in the order that clients were built with.
#include "adapters/qaic/api/qaic_edge.h"
#include "qaic_ours.h"

namespace {

constexpr QAicApiFunctionTable kFunctions = {
#include "qaic_table.inc"
};

}  // namespace

QAIC_EXPORT const QAicApiFunctionTable* qaicGetFunctionTable(void) { return &kFunctions; }

extern "C" const char* qaicGetLastErrorText(void) { return corelane::qaic::last_error_text(); }

extern "C" QStatus qaicSetLastErrorText(QStatus status, const char* text) {
  // In the checking mode the report has the place in the program.
  const corelane::edge::CallScope scope(corelane::qaic::check::enabled(),
                                        "a method of the classes");
  return corelane::qaic::report(status, text != nullptr ? text : "");
}

extern "C" QStatus qaicBuffersAsked(const char* method, uint32_t numBuffers,
                                    const QBuffer* buffers) {
  using corelane::qaic::Outcome;
  return corelane::qaic::guard(method != nullptr ? method : __func__, [&]() -> Outcome {
    if (buffers != nullptr) corelane::qaic::check::buffers_asked({buffers, numBuffers});
    return {};
  });
}
