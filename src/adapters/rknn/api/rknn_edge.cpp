#include "adapters/rknn/api/rknn_edge.h"

#include "adapters/rknn/api/rknn_log.h"
#include "edge/code_table.h"

namespace corelane::rknn {
namespace {

/// Every code of the library; the table of docs/apis/rknn.md.
constexpr edge::CodeTable<int> kTable({
    {Code::kOk, RKNN_SUCC},
    {Code::kInvalidArgument, RKNN_ERR_PARAM_INVALID},
    {Code::kNotFound, RKNN_ERR_PARAM_INVALID},
    {Code::kOutOfRange, RKNN_ERR_PARAM_INVALID},
    {Code::kWrongState, RKNN_ERR_FAIL},
    {Code::kUnsupported, RKNN_ERR_FAIL},
    {Code::kShapeMismatch, RKNN_ERR_PARAM_INVALID},
    {Code::kTypeMismatch, RKNN_ERR_PARAM_INVALID},
    {Code::kMalformed, RKNN_ERR_MODEL_INVALID},
    {Code::kCorrupted, RKNN_ERR_MODEL_INVALID},
    {Code::kVersionMismatch, RKNN_ERR_MODEL_INVALID},
    {Code::kUnsupportedModel, RKNN_ERR_MODEL_INVALID},
    {Code::kForeignImage, RKNN_ERR_TARGET_PLATFORM_UNMATCH},
    {Code::kOutOfMemory, RKNN_ERR_MALLOC_FAIL},
    {Code::kOutOfCores, RKNN_ERR_FAIL},
    {Code::kBusy, RKNN_ERR_FAIL},
    {Code::kIo, RKNN_ERR_FAIL},
    {Code::kTimeout, RKNN_ERR_TIMEOUT},
    {Code::kCancelled, RKNN_ERR_FAIL},
    {Code::kDeviceReset, RKNN_ERR_FAIL},
    {Code::kDeviceLost, RKNN_ERR_DEVICE_UNAVAILABLE},
    {Code::kBadResult, RKNN_ERR_FAIL},
    {Code::kHostOperatorMissing, RKNN_ERR_FAIL},
    {Code::kHostOperatorFailed, RKNN_ERR_FAIL},
    {Code::kEngineFailed, RKNN_ERR_FAIL},
    {Code::kInternal, RKNN_ERR_FAIL},
});

}  // namespace

int code_of(Code code) noexcept { return kTable[code]; }

int report(std::string_view function, const Outcome& outcome) noexcept {
  const bool probe = outcome.line() != Outcome::Line::kError;
  if (outcome.line() == Outcome::Line::kNone || (probe && !log::enabled(log::Level::kDebug)))
    return outcome.code();
  try {
    log::write(
        probe ? log::Level::kDebug : log::Level::kError,
        fmt::format("{}: {} (code {})", function, outcome.status().to_string(), outcome.code()));
  } catch (...) {
    log::write(log::Level::kError, "out of memory while reporting a failure");
  }
  return outcome.code();
}

}  // namespace corelane::rknn
