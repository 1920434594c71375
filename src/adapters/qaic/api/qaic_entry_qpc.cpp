/// The functions of containers.
#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/api/qaic_handle.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/program/program_file.h"
#include "qaic_ours.h"

namespace corelane::qaic {
namespace {

Outcome opened(QAicQpcObj** to, Result<std::shared_ptr<QpcObject>> container) {
  if (!container) return container.error();
  *to = publish(*std::move(container));
  return {};
}

}  // namespace
}  // namespace corelane::qaic

using namespace corelane::qaic;  // NOLINT(google-build-using-namespace)

QAIC_EXPORT QStatus qaicOpenQpc(QAicQpcObj** qpc, const uint8_t* data, size_t size, bool makeCopy) {
  return guard(__func__, [&]() -> Outcome {
    if (qpc == nullptr || data == nullptr) return outcome(QS_INVAL, "qpc or data is null");
    return opened(qpc, QpcObject::open({reinterpret_cast<const std::byte*>(data), size}, makeCopy));
  });
}

QAIC_EXPORT QStatus qaicOpenQpcFile(QAicQpcObj** qpc, const char* path) {
  return guard(__func__, [&]() -> Outcome {
    if (qpc == nullptr || path == nullptr) return outcome(QS_INVAL, "qpc or path is null");
    return opened(qpc, QpcObject::open_file(path));
  });
}

QAIC_EXPORT QStatus qaicQpcGetInfo(QAicQpcObj* qpc, const QAicQpcInfo** info) {
  return on<QpcObject>(__func__, qpc, [&](const QpcObject& object) -> Outcome {
    if (info == nullptr) return outcome(QS_INVAL, "info is null");
    *info = &object.info();
    return {};
  });
}

QAIC_EXPORT QStatus qaicCloseQpc(QAicQpcObj* qpc) {
  return release<QpcObject>(__func__, qpc, [](const QpcObject&) -> Outcome { return {}; });
}

extern "C" QStatus qaicQpcGetIoDescriptor(QAicQpcObj* qpc, uint32_t programIndex, QData* ioDesc) {
  return on<QpcObject>(__func__, qpc, [&](const QpcObject& object) -> Outcome {
    if (ioDesc == nullptr) return outcome(QS_INVAL, "ioDesc is null");
    CORELANE_TRY(object.check_program(programIndex));
    *ioDesc = writable(object.program(programIndex).io_descriptor);
    return {};
  });
}

extern "C" QStatus qaicQpcGetBufferShapes(QAicQpcObj* qpc, uint32_t programIndex,
                                          uint32_t* numBuffers, const QAicBufferShapes** shapes) {
  return on<QpcObject>(__func__, qpc, [&](const QpcObject& object) -> Outcome {
    if (numBuffers == nullptr || shapes == nullptr)
      return outcome(QS_INVAL, "numBuffers or shapes is null");
    CORELANE_TRY(object.check_program(programIndex));
    const auto lists = object.shapes(programIndex);
    *numBuffers = static_cast<uint32_t>(lists.size());
    *shapes = lists.data();
    return {};
  });
}

extern "C" QStatus qaicQpcGetBytes(QAicQpcObj* qpc, QData* bytes) {
  return on<QpcObject>(__func__, qpc, [&](const QpcObject& object) -> Outcome {
    if (bytes == nullptr) return outcome(QS_INVAL, "bytes is null");
    const corelane::ByteSpan all = object.file()->bytes();
    *bytes = writable({reinterpret_cast<const uint8_t*>(all.data()), all.size()});
    return {};
  });
}
