#include "adapters/qaic/api/qaic_edge.h"

#include <string>

#include "corelane/base/log.h"
#include "edge/code_table.h"

namespace corelane::qaic {
namespace {

/// Every code of the library; the table of docs/apis/object-runtime.md.
constexpr edge::CodeTable<QStatus> kTable({
    {Code::kOk, QS_SUCCESS},
    {Code::kInvalidArgument, QS_INVAL},
    {Code::kNotFound, QS_INVAL},
    {Code::kOutOfRange, QS_INVAL},
    {Code::kWrongState, QS_INVAL},
    {Code::kUnsupported, QS_UNSUPPORTED},
    {Code::kShapeMismatch, QS_INVAL},
    {Code::kTypeMismatch, QS_INVAL},
    {Code::kMalformed, QS_INVAL},
    {Code::kCorrupted, QS_DATA_CRC_ERROR},
    {Code::kVersionMismatch, QS_UNSUPPORTED},
    {Code::kUnsupportedModel, QS_UNSUPPORTED},
    {Code::kForeignImage, QS_UNSUPPORTED},
    {Code::kOutOfMemory, QS_NOMEM},
    {Code::kOutOfCores, QS_NOSPC},
    {Code::kBusy, QS_BUSY},
    {Code::kIo, QS_ERROR},
    {Code::kTimeout, QS_TIMEDOUT},
    {Code::kCancelled, QS_ERROR},
    {Code::kDeviceReset, QS_DEV_ERROR},
    {Code::kDeviceLost, QS_DEV_ERROR},
    {Code::kBadResult, QS_PROTOCOL},
    {Code::kHostOperatorMissing, QS_UNSUPPORTED},
    {Code::kHostOperatorFailed, QS_ERROR},
    {Code::kEngineFailed, QS_ERROR},
    {Code::kInternal, QS_ERROR},
});

/// Not destroyed before other objects of the thread whose destructors call the API.
std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

}  // namespace

QStatus code_of(Code code) noexcept { return kTable[code]; }

QStatus report(std::string_view function, const Outcome& outcome) noexcept {
  try {
    return report(outcome.code(), fmt::format("{}: {}", function, outcome.status().to_string()));
  } catch (...) {
    // There is no memory for the text: the code alone is told.
    return report(outcome.code(), {});
  }
}

QStatus report(QStatus code, std::string_view text) noexcept {
  try {
    last_error() = text;
    log::debug("qaic", "{} (status {})", last_error(), static_cast<int>(code));
  } catch (...) {
    // Rather none than the text of an earlier failure.
    last_error().clear();
  }
  // A program that goes on after these codes goes on without what it asked for.
  if (code == QS_INVAL || code == QS_BADFD || code == QS_UNSUPPORTED) check::failed(text);
  return code;
}

const char* last_error_text() noexcept { return last_error().c_str(); }

}  // namespace corelane::qaic
