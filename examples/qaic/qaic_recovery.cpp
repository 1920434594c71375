/// A device that is lost while it works, by an injected fault: the error handler hears of it, and
/// what failed is submitted again when the device is back.
///
///   qaic_recovery folder_of_the_container page.png
#include <iostream>
#include <mutex>

#include "qaic_pages.h"

namespace {

using namespace qaic_example;  // NOLINT(google-build-using-namespace)

/// Lines of the handler and of the main thread do not mix.
std::mutex printing;

void print(const std::string& line) {
  const std::lock_guard<std::mutex> lock(printing);
  std::cout << line << std::endl;
}

/// Called once for each event, from a thread of the runtime.
void on_error(QAicContextID context, const char* text, QAicErrorType type, const void*, size_t,
              void*) {
  print("-- context " + std::to_string(context) + ", error " + std::to_string(type) + ": " + text);
}

}  // namespace

int main(int argc, char** argv) {
  // One of five inferences loses the device, for 50 ms. Read when the device is opened.
  setenv("CORELANE_FAULTS", "lost=0.2,lost_ms=50,seed=2", 0);
  return run(argc, argv, [](const Arguments& arguments) {
    const auto context = qaic::rt::Context::Factory(nullptr, {0}, nullptr, on_error);
    const auto qpc = qaic::rt::Qpc::Factory(arguments.container);
    const auto set = qaic::rt::InferenceSet::Factory(context, qpc, 0, 2, 1);
    constexpr std::size_t kRounds = 4;
    int again = 0;
    for (std::size_t id = 0; id < kRounds * kTurns; ++id) {
      Page page(arguments, qpc->getBufferMappings(), id);
      while (!infer(set, page, id)) {
        ++again;
        wait_until_ready(0);
      }
      print(page.answer());
    }
    print(std::to_string(kRounds * kTurns) + " inferences, none lost; " + std::to_string(again) +
          " were submitted again");
  });
}
