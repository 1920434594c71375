/// Log lines of the host and of the devices in one callback, in the order of their time.
///
///   qaic_log_capture folder_of_the_container page.png
#include <iostream>
#include <mutex>

#include "qaic_pages.h"

namespace {

using namespace qaic_example;  // NOLINT(google-build-using-namespace)

/// Lines come from several threads.
struct Capture {
  std::mutex mutex;
  std::vector<std::string> lines;
};

const char* name_of(QLogLevel level) {
  switch (level) {
    case QL_DEBUG:
      return "debug";
    case QL_INFO:
      return "info";
    case QL_WARN:
      return "warning";
    case QL_ERROR:
      return "error";
  }
  return "?";
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const Arguments& arguments) {
    Capture capture;
    {
      const QAicContextProperties_t properties = QAIC_CONTEXT_COLLECT_DEVICE_LOGS;
      const auto context =
          qaic::rt::Context::Factory(&properties, {0}, [&](QLogLevel level, const char* text) {
            const std::lock_guard<std::mutex> lock(capture.mutex);
            capture.lines.push_back(std::string(name_of(level)) + ": " + text);
          });
      need(context->setLogLevel(QL_DEBUG), "setLogLevel");
      const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
      const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 1, 1);
      for (std::size_t turn = 0; turn < kTurns; ++turn) {
        Page page(arguments, qpc->getBufferMappings(), turn);
        qaic::rt::shInferenceHandle handle;
        need(set->getAvailable(handle), "getAvailable");
        need(handle->setBuffers(page.buffers()), "setBuffers");
        need(set->submit(handle, turn), "submit");
        need(set->getCompletedId(handle, turn), "getCompletedId");
        need(context->log(QL_INFO, "the page " + page.answer()), "log");
        need(set->putCompleted(handle), "putCompleted");
      }
    }  // What is still held back for its order comes before the context has gone.
    for (const std::string& line : capture.lines) std::cout << line << "\n";
    std::cout << capture.lines.size() << " lines\n";
  });
}
