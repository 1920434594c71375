#include "adapters/rknn/api/rknn_edge.h"

#include <exception>
#include <new>

namespace corelane::rknn {

int code_of(const Status& status) noexcept {
  switch (status.code()) {
    case Code::kOk:
      return RKNN_SUCC;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kOutOfRange:
    case Code::kShapeMismatch:
    case Code::kTypeMismatch:
      return RKNN_ERR_PARAM_INVALID;
    case Code::kMalformed:
    case Code::kCorrupted:
    case Code::kVersionMismatch:
    case Code::kUnsupportedModel:
      return RKNN_ERR_MODEL_INVALID;
    case Code::kForeignImage:
      return RKNN_ERR_TARGET_PLATFORM_UNMATCH;
    case Code::kOutOfMemory:
      return RKNN_ERR_MALLOC_FAIL;
    case Code::kTimeout:
      return RKNN_ERR_TIMEOUT;
    case Code::kDeviceLost:
      return RKNN_ERR_DEVICE_UNAVAILABLE;
    default:
      return RKNN_ERR_FAIL;
  }
}

Outcome::Outcome(Status status) : code_(code_of(status)), status_(std::move(status)) {}

int report(std::string_view function, const Outcome& outcome) noexcept {
  try {
    log::write(log::Level::kError, fmt::format("{}: {} (code {})", function,
                                               outcome.status().to_string(), outcome.code()));
  } catch (...) {
    log::write(log::Level::kError, "out of memory while reporting a failure");
  }
  return outcome.code();
}

namespace {
// Made when the library is loaded: there may be no memory to make them later.
const Status kOutOfMemory(Code::kOutOfMemory,
                          "no memory; free contexts or memory objects and call again");
const Status kUnknownException(Code::kInternal, "something was thrown that is no std::exception");
}  // namespace

Outcome current_exception_outcome() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {RKNN_ERR_MALLOC_FAIL, kOutOfMemory};
  } catch (const std::exception& problem) {
    try {
      return {RKNN_ERR_FAIL, Status(Code::kInternal, problem.what())};
    } catch (...) {
      return {RKNN_ERR_MALLOC_FAIL, kOutOfMemory};
    }
  } catch (...) {
    return {RKNN_ERR_FAIL, kUnknownException};
  }
}

}  // namespace corelane::rknn
