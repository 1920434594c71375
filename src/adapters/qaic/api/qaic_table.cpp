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
  return corelane::qaic::report(status, text != nullptr ? text : "");
}
