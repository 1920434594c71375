/// Calls as older and newer clients spell them. Compiled, not run.
#include <optional>
#include <string>

#include "QAicCc.hpp"
#include "QAicOpenRtContext.hpp"
#include "QAicOpenRtVersion.hpp"
#include "QAicRuntimeTypes.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void short_log(QLogLevel, const char*) {}
void long_log(QLogLevel, const char*, void*) {}
void on_error(QAicContextID, const char*, QAicErrorType, const void*, size_t, void*) {}

void contexts_in_c() {
  QAicContext* context = nullptr;
  const QAicContextProperties_t properties = QAIC_CONTEXT_DEFAULT;
  const QID device = 0;
  // Newer: user data for the log callback, too.
  qaicCreateContext(&context, &properties, 1, &device, long_log, nullptr, on_error, nullptr);
  qaicCreateContext(&context, &properties, 1, &device, short_log, nullptr, on_error, nullptr);
  qaicCreateContext(&context, &properties, 1, &device, nullptr, nullptr, nullptr, nullptr);
  qaicCreateContext(&context, &properties, 1, &device, NULL, NULL, NULL, NULL);
  qaicCreateContext(
      &context, nullptr, 1, &device, [](QLogLevel, const char*) {}, nullptr, on_error, nullptr);
  // Older.
  qaicCreateContext(&context, &properties, 1, &device, short_log, on_error, nullptr);
  qaicCreateContext(&context, &properties, 1, &device, long_log, on_error, nullptr);
  qaicCreateContext(&context, &properties, 1, &device, nullptr, nullptr, nullptr);
}

void contexts() {
  constexpr QAicContextProperties_t* none = nullptr;
  QAicContextProperties properties = 0x00;
  const std::vector<QID> ids{0};
  int count = 0;
  Context::Factory();
  Context::Factory(nullptr, ids);
  Context::Factory(none, ids);
  Context::Factory(&properties, {0, 1});
  Context::Factory(nullptr, ids, short_log);
  Context::Factory(nullptr, ids, short_log, on_error);
  Context::Factory(nullptr, ids, long_log, on_error);
  Context::Factory(nullptr, ids, nullptr, nullptr);
  Context::Factory(nullptr, ids, NULL, NULL);
  Context::Factory(nullptr, ids, long_log, &count, on_error, &count);
  Context::Factory(nullptr, ids, short_log, nullptr, nullptr, nullptr);
  Context::Factory(nullptr, ids, LogCallback(), ErrorHandler());
  const auto context = Context::Factory(
      nullptr, ids, [&](QLogLevel, const char*) { ++count; },
      [&](QAicContextID, const char*, QAicErrorType_t, const void*, size_t, void*) { ++count; });
  qaic::openrt::shContext same = context;
  QID device = context->findDevice(nullptr);
  static_cast<void>(same->findDevice(nullptr, device));
}

void sets(const shContext& context) {
  auto qpc = Qpc::Factory("folder");
  qpc = Qpc::Factory(std::string("folder"), "programqpc.bin");
  qpc = Qpc::Factory(qpc->buffer(), qpc->size(), true);
  InferenceSetProperties properties;
  const InferenceSetProperties* none = nullptr;
  const std::vector<shInferenceVector> vectors;
  auto set = InferenceSet::Factory(context, qpc);
  set = InferenceSet::Factory(context, qpc, 0);
  set = InferenceSet::Factory(context, qpc, std::nullopt, 2, 3);
  set = InferenceSet::Factory(context, qpc, std::optional<QID>(2), 2, 3);
  set = InferenceSet::Factory(context, qpc, std::optional<std::string>("2"), 2, 3);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, nullptr);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, none);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, {});
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, &properties);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, &properties, false);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, properties);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, vectors);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, vectors, &properties);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, {}, &properties);
  set = InferenceSet::Factory(context, qpc, 0, 2, 3, {}, nullptr, false);
  shInferenceHandle handle;
  set->submit(handle);
  set->submit(handle, 3);
  set->putCompleted(handle);
  set->putCompleted(std::move(handle));
}

void openrt() {
  const BufferMapping mapping("x", 0, QAicBufferIoTypeEnum::BUFFER_IO_TYPE_INPUT, 4, false,
                              QAicBufferDataTypeEnum::BUFFER_DATA_TYPE_FLOAT);
  const BufferMappings mappings{mapping};
  const ::BufferDimensions dims{{4, {1, 2}}};
  QBuffer positional{4, nullptr};
  positional.type = QBufferType::QBUFFER_TYPE_HEAP;
  const auto vector = qaic::openrt::InferenceVector::Factory(
      mappings, qaic::openrt::InferenceVector::DataSourceType::ZERO_FILL);
  static_cast<void>(vector->setBuffers({positional}));
  qaic::openrt::Logger logger;
  logger.log(QL_INFO) << "dims " << dims.size() << std::endl;
  logger.logWarn("warned");
  throw qaic::openrt::CoreExceptionNullPtr("spellings");
}

}  // namespace

int main() {
  contexts_in_c();
  contexts();
  sets(Context::Factory());
  openrt();
  static_cast<void>(qaic_fs::exists("folder"));
  return LRT_LIB_MAJOR_VERSION + LRT_LIB_MINOR_VERSION;
}
