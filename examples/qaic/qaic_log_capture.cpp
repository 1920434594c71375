/// Log lines of the host and of the devices in one callback, in the order of their time. The device
/// is lost at times, by an injected fault, and logs it.
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
  // One of five inferences loses the device, for 20 ms. Read when the device is opened.
  setenv("CORELANE_FAULTS", "lost=0.2,lost_ms=20,seed=4", 0);
  return run(argc, argv, [](const Arguments& arguments) {
    Capture capture;
    {
      const QAicContextProperties_t properties = QAIC_CONTEXT_COLLECT_DEVICE_LOGS;
      const auto keep = [&](QLogLevel level, const char* text) {
        const std::lock_guard<std::mutex> lock(capture.mutex);
        capture.lines.push_back(std::string(name_of(level)) + ": " + text);
      };
      // A loss is in the devices' lines, too.
      const auto ignore = [](QAicContextID, const char*, QAicErrorType, const void*, size_t,
                             void*) {};
      const auto context = qaic::rt::Context::Factory(&properties, {0}, keep, ignore);
      need(context->setLogLevel(QL_DEBUG), "setLogLevel");
      const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
      const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 1, 1);
      for (std::size_t turn = 0; turn < kTurns; ++turn) {
        Page page(arguments, qpc->getBufferMappings(), turn);
        while (!infer(set, page, turn)) wait_until_ready(0);
        need(context->log(QL_INFO, "the page " + page.answer()), "log");
      }
    }  // What is still held back for its order comes before the context has gone.
    for (const std::string& line : capture.lines) std::cout << line << "\n";
    std::cout << capture.lines.size() << " lines\n";
  });
}
