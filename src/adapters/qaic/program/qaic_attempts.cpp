#include "adapters/qaic/program/qaic_attempts.h"

namespace corelane::qaic {
namespace {

constexpr std::uint32_t kMostRetries = 100;
constexpr std::uint32_t kMostThreads = 1024;

}  // namespace

Result<AttemptRules> check_properties(const QAicProgramProperties* properties) {
  AttemptRules rules;
  if (properties == nullptr) return rules;
  constexpr std::uint32_t kBits = QAIC_PROGRAM_PROPERTIES_USE_APP_BUFFER;
  if ((properties->selectMask & ~kBits) != 0)
    return error(Code::kInvalidArgument,
                 "selectMask of the program is {:#x}; of its bits {:#x} alone is defined",
                 properties->selectMask, kBits);
  if (properties->SubmitNumRetries > kMostRetries)
    return error(Code::kInvalidArgument, "SubmitNumRetries is {}; at most {} are allowed",
                 properties->SubmitNumRetries, kMostRetries);
  rules.retries = properties->SubmitNumRetries;
  if (properties->SubmitRetryTimeoutMs != 0)
    rules.time = std::chrono::milliseconds(properties->SubmitRetryTimeoutMs);
  return rules;
}

Status check_properties(const QAicQueueProperties* properties) {
  if (properties == nullptr) return {};
  constexpr std::uint32_t kBits = QAIC_QUEUE_PROPERTIES_ENABLE_MULTI_THREADED_QUEUES;
  if ((properties->properties & ~kBits) != 0)
    return error(Code::kInvalidArgument,
                 "properties of the queue are {:#x}; of their bits {:#x} alone is defined",
                 properties->properties, kBits);
  if (properties->numThreadsPerQueue < 1 || properties->numThreadsPerQueue > kMostThreads)
    return error(Code::kInvalidArgument, "numThreadsPerQueue is {}; 1 to {} are allowed",
                 properties->numThreadsPerQueue, kMostThreads);
  return {};
}

}  // namespace corelane::qaic
