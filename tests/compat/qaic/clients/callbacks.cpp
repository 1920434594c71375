/// Callbacks that hold something of the caller's, throw, or call the API, and a context that goes
/// while others are in use: nothing is called after its context has gone.
#include "QAicApi.hpp"
#include "client_support.h"

namespace {

using namespace qaic::rt;  // NOLINT(google-build-using-namespace)

void captured() {
  const auto lines = std::make_shared<std::vector<std::string>>();
  auto context = Context::Factory(nullptr, {0},
                                  [lines](QLogLevel, const char* text) { lines->push_back(text); });
  client::need(context->log(QL_ERROR, "first"), "log");
  client::need(lines->size() == 1 && lines->front().find("first") != std::string::npos, "a line");
  client::need(lines.use_count() == 2, "the callback is kept");
  QLogLevel level = QL_ERROR;
  client::need(context->getLogLevel(level) == QS_SUCCESS && level == QL_WARN, "the level at first");
  for (const QLogLevel one : {QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR}) {
    client::need(context->setLogLevel(one), "setLogLevel");
    client::need(context->getLogLevel(level) == QS_SUCCESS && level == one, "getLogLevel");
  }
  context = nullptr;
  client::need(lines.use_count() == 1, "the callback goes with its context");
}

void throwing() {
  auto context = Context::Factory(
      nullptr, {0}, [](QLogLevel, const char*) { throw std::runtime_error("of the callback"); });
  for (int i = 0; i < 3; ++i) static_cast<void>(context->log(QL_ERROR, "a line"));
  client::need(context->getId() != 0, "the context works on");
}

void calling_back() {
  std::atomic<int> calls{0};
  const Context* self = nullptr;
  auto context = Context::Factory(nullptr, {0}, [&](QLogLevel level, const char*) {
    QLogLevel now = QL_DEBUG;
    if (calls++ == 0 && level == QL_ERROR) {
      client::need(self->getLogLevel(now), "a call from a callback");
      client::need(self->log(QL_WARN, "a line of a callback"), "a line from a callback");
    }
  });
  self = context.get();
  client::need(context->log(QL_ERROR, "a line"), "log");
  // With its window over, and at the latest when the context ends, both have come.
  context = nullptr;
  client::need(calls == 2, "both lines");
}

/// Two contexts know their own lines.
void two_contexts() {
  std::vector<std::string> lines[2];
  std::mutex mutex;
  const auto keep = [&](size_t place) {
    return [&, place](QLogLevel, const char* text) {
      const std::lock_guard<std::mutex> lock(mutex);
      lines[place].push_back(text);
    };
  };
  auto first = Context::Factory(nullptr, {0}, keep(0));
  auto second = Context::Factory(nullptr, {0}, keep(1));
  client::need(first->getId() != second->getId(), "each has its number");
  client::need(first->objName() == "Context" && first->objNameCstr() == first->objName(), "name");
  Logger logger(second);
  logger.log(QL_ERROR) << "number " << 7 << std::endl;
  logger.logDebug("below the level");
  first = nullptr;
  second = nullptr;
  logger.log(QL_DEBUG) << "without a context";
  client::need(lines[0].empty(), "no line of another context");
  client::need(lines[1].size() == 1 && lines[1][0].find("number 7") != std::string::npos, "a line");
}

/// Objects keep their context, and with it the callbacks.
void kept(const std::string& folder) {
  std::atomic<int> lines{0};
  auto context = Context::Factory(nullptr, {0}, [&](QLogLevel, const char*) { ++lines; });
  auto qpc = Qpc::Factory(folder);
  auto set = InferenceSet::Factory(context, qpc, 0, 1, 1);
  context = nullptr;
  qpc = nullptr;
  set->logError("a line");
  set = nullptr;
  client::need(lines == 1, "lines after the user's pointer to the context has gone");
}

}  // namespace

int main(int, char** argv) {
  captured();
  throwing();
  calling_back();
  two_contexts();
  kept(argv[1]);
  return 0;
}
