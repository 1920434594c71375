/// A device that is lost at times (CORELANE_FAULTS): each loss is one call of the error handler,
/// every inference ends, and those that failed are submitted again.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

struct Watch {
  std::atomic<int> errors{0};
  std::atomic<int> lines{0};
  std::atomic<QAicContextID> context{0};
};

void on_error(QAicContextID context, const char* text, QAicErrorType type, const void*, size_t,
              void* user) {
  auto* watch = static_cast<Watch*>(user);
  client::need(text != nullptr && *text != '\0', "the text of an error");
  if (type == QAIC_ERROR_CONTEXT_RUNTIME) ++watch->errors;
  watch->context = context;
}

void on_line(QLogLevel, const char*, void* user) { ++static_cast<Watch*>(user)->lines; }

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  Watch watch;
  auto context = qaic::rt::Context::Factory(nullptr, {0}, on_line, &watch, on_error, &watch);
  client::need(context->setLogLevel(QL_INFO), "setLogLevel");
  client::need(context->log(QL_DEBUG, "below the level"), "log");
  client::need(watch.lines == 0, "a line below the level");
  client::need(context->log(QL_ERROR, "above it"), "log");
  auto qpc = qaic::rt::Qpc::Factory(folder);
  auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
  unsigned failed = 0;
  const unsigned total = client::kInferences * 25;
  for (unsigned n = 0; n < total;) {
    client::Buffers buffers(qpc->getBufferMappings(), folder, n % client::kInferences);
    qaic::rt::shInferenceHandle handle;
    client::need(set->getAvailable(handle), "getAvailable");
    client::need(handle->setBuffers(buffers.all()), "setBuffers");
    QStatus status = set->submit(handle, n);
    if (status == QS_SUCCESS) {
      qaic::rt::shInferenceHandle done;
      status = set->getCompletedId(done, n);
      client::need(done == handle, "a failure gives its handle back");
      client::need(done->getStatus() == status, "the status of the handle");
      client::need((status == QS_SUCCESS) == done->getErrorText().empty(), "the reason");
    }
    if (status == QS_SUCCESS) {
      buffers.write(argv[2], n % client::kInferences);
      ++n;
    } else {
      ++failed;
      client::need(status == QS_DEV_ERROR || status == QS_TIMEDOUT, "the code of a loss");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    client::need(set->putCompleted(handle), "putCompleted");
  }
  std::cout << "errors " << watch.errors << " failed " << failed << " of " << total << std::endl;
  client::need(watch.errors > 0, "a loss was reported");
  client::need(watch.context == context->getId(), "the id of the context");
  return 0;
}
