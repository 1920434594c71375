/// Contexts: callbacks, numbers, levels, free devices, logs of devices, properties.
#include <mutex>

#include "statements.h"

namespace statements {

namespace {

/// What the callbacks of a context were called with.
struct Heard {
  void log(const char* text) {
    const std::lock_guard<std::mutex> lock(mutex);
    lines.emplace_back(text);
    threads.push_back(std::this_thread::get_id());
  }
  void error(QAicContextID context, QAicErrorType type) {
    const std::lock_guard<std::mutex> lock(mutex);
    contexts.push_back(context);
    types.push_back(type);
  }
  static void on_log(QLogLevel, const char* text, void* user) {
    static_cast<Heard*>(user)->log(text);
  }
  static void on_error(QAicContextID context, const char* text, QAicErrorType type, const void*,
                       size_t, void* user) {
    if (text != nullptr && *text != '\0') static_cast<Heard*>(user)->error(context, type);
  }
  /// The place of the first line with this text; -1: none.
  long place(const std::string& part, long from = 0) const {
    for (size_t i = static_cast<size_t>(from); i < lines.size(); ++i)
      if (lines[i].find(part) != std::string::npos) return static_cast<long>(i);
    return -1;
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  std::vector<std::thread::id> threads;
  std::vector<QAicContextID> contexts;
  std::vector<QAicErrorType> types;
};

shContext heard_by(Heard& heard, const std::vector<QID>& devices,
                   QAicContextProperties_t properties = 0) {
  return Context::Factory(&properties, devices, Heard::on_log, &heard, Heard::on_error, &heard);
}

/// What the process writes to its error stream meanwhile.
std::string error_stream_of(const std::function<void()>& work) {
  const std::string path = scratch() + "/stderr.txt";
  std::fflush(stderr);
  const int saved = dup(2);
  std::FILE* const file = std::fopen(path.c_str(), "w");
  CORELANE_NEED(saved >= 0 && file != nullptr && dup2(fileno(file), 2) == 2);
  work();
  std::fflush(stderr);
  CORELANE_NEED(dup2(saved, 2) == 2 && close(saved) == 0 && std::fclose(file) == 0);
  const std::vector<char> text = client::read_file(path);
  return {text.begin(), text.end()};
}

/// A failure that the error handler hears of: more cores than the device has.
void fail(const shContext& context, QID device) {
  const shQpc qpc = Qpc::Factory(container("pair"));
  CORELANE_THROWS(CoreExceptionInit, QS_NOSPC, InferenceSet::Factory(context, qpc, device, 1, 9));
}

}  // namespace

CORELANE_STATEMENT(statement_07_a_context_has_callbacks_or_defaults_and_refuses_bad_input) {
  Heard heard;
  {
    const auto context = heard_by(heard, {kLeft, kRight});
    CORELANE_GIVES(QS_SUCCESS, context->log(QL_ERROR, "for the callback"));
    fail(context, kLeft);
  }
  CORELANE_NEED(heard.place("for the callback") == 0 && heard.types.size() == 1);
  // Callbacks without user data, one of the two, and none: the library's log.
  std::atomic<int> errors{0};
  const auto on_error = [&](QAicContextID, const char*, QAicErrorType, const void*, size_t, void*) {
    ++errors;
  };
  fail(Context::Factory(nullptr, {kLeft}, nullptr, on_error), kLeft);
  CORELANE_NEED(errors == 1);
  const std::string written = error_stream_of([] {
    const auto context = Context::Factory(nullptr, {kLeft});
    CORELANE_GIVES(QS_SUCCESS, context->log(QL_ERROR, "for the library's log"));
    fail(context, kLeft);
  });
  CORELANE_NEED(written.find("for the library's log") != std::string::npos);
  CORELANE_NEED(written.find("need 9 cores") != std::string::npos);
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, Context::Factory(nullptr, {}));
  CORELANE_THROWS(CoreExceptionInit, QS_INVAL, Context::Factory(nullptr, {kLeft, kLeft}));
  CORELANE_THROWS(CoreExceptionInit, QS_NODEV, Context::Factory(nullptr, {kLeft, 99}));
  CORELANE_THROWS(CoreExceptionInit, QS_NODEV, Context::Factory(nullptr, {-1}));
}

CORELANE_STATEMENT(statement_08_numbers_are_unique_and_the_error_handler_gets_them) {
  Heard heard[2];
  const auto first = heard_by(heard[0], {kLeft});
  const auto second = heard_by(heard[1], {kLeft});
  CORELANE_NEED(first->getId() != 0 && first->getId() != second->getId());
  fail(second, kLeft);
  fail(first, kLeft);
  CORELANE_NEED(heard[0].contexts == std::vector<QAicContextID>{first->getId()});
  CORELANE_NEED(heard[1].contexts == std::vector<QAicContextID>{second->getId()});
  CORELANE_NEED(first->objName() == "Context");
  CORELANE_NEED(first->objNameCstr() == std::string("Context"));
}

CORELANE_STATEMENT(statement_09_lines_below_the_level_never_reach_the_callback) {
  Heard heard;
  const auto context = heard_by(heard, {kLeft});
  QLogLevel level = QL_DEBUG;
  CORELANE_GIVES(QS_SUCCESS, context->getLogLevel(level));
  CORELANE_NEED(level == QL_WARN);
  static_assert(QL_DEBUG == 0 && QL_INFO == 1 && QL_WARN == 2 && QL_ERROR == 3);
  for (const QLogLevel lowest : {QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR}) {
    CORELANE_GIVES(QS_SUCCESS, context->setLogLevel(lowest));
    CORELANE_GIVES(QS_SUCCESS, context->getLogLevel(level));
    CORELANE_NEED(level == lowest);
    heard.lines.clear();
    for (const QLogLevel line : {QL_DEBUG, QL_INFO, QL_WARN, QL_ERROR})
      CORELANE_GIVES(QS_SUCCESS, context->log(line, "line"));
    CORELANE_NEED(heard.lines.size() == static_cast<size_t>(QL_ERROR - lowest + 1));
  }
}

CORELANE_STATEMENT(statement_10_find_device_takes_one_with_room_or_says_that_none_has) {
  const auto context = Context::Factory(nullptr, {kLeft, kRight});
  const shQpc qpc = Qpc::Factory(container("pair"));
  CORELANE_NEED(context->findDevice(qpc) == kLeft);
  auto left = InferenceSet::Factory(context, qpc, std::nullopt, 1, 1);
  CORELANE_NEED(context->findDevice(qpc) == kRight);
  const auto right = InferenceSet::Factory(context, qpc, std::nullopt, 1, 1);
  CORELANE_THROWS(CoreExceptionRuntime, QS_NODEV, context->findDevice(qpc));
  QID device = 77;
  CORELANE_GIVES(QS_NODEV, context->findDevice(qpc, device));
  CORELANE_THROWS(CoreExceptionInit, QS_NODEV, InferenceSet::Factory(context, qpc));
  CORELANE_NEED(context->findDevice(nullptr) == kLeft);  // Without a program: one that works.
  left = nullptr;
  CORELANE_GIVES(QS_SUCCESS, context->findDevice(qpc, device));
  CORELANE_NEED(device == kLeft);
  // Two cores are more than each of the two has.
  CORELANE_THROWS(CoreExceptionRuntime, QS_NODEV,
                  context->findDevice(Qpc::Factory(container("parts"))));
  CORELANE_THROWS(CoreExceptionRuntime, QS_INVAL, context->findDevice(qpc, 1));
}

CORELANE_STATEMENT(statement_11_device_logs_come_by_another_thread_in_the_order_of_time) {
  constexpr int kRuns = 5;
  Heard heard;
  Heard other;
  Heard without;
  {
    const auto context = heard_by(heard, {kLogging, kLeft}, QAIC_CONTEXT_COLLECT_DEVICE_LOGS);
    const auto second = heard_by(other, {kLogging}, QAIC_CONTEXT_COLLECT_DEVICE_LOGS);
    const auto third = heard_by(without, {kLogging});
    for (const shContext& each : {context, second, third})
      CORELANE_GIVES(QS_SUCCESS, each->setLogLevel(QL_DEBUG));
    const shQpc qpc = Qpc::Factory(container("pair"));
    const auto program = Program::Factory(context, kLogging, "logs", qpc);
    const Pair pair;
    const auto object = ExecObj::Factory(context, program, pair.buffers());
    for (int i = 0; i < kRuns; ++i) {
      CORELANE_GIVES(QS_SUCCESS, context->log(QL_INFO, "before " + std::to_string(i)));
      CORELANE_GIVES(QS_SUCCESS, object->run());
      CORELANE_GIVES(QS_SUCCESS, context->log(QL_INFO, "after " + std::to_string(i)));
    }
  }
  // The end of a context delivers what waits.
  long at = 0;
  for (int i = 0; i < kRuns; ++i) {
    const long before = heard.place("before " + std::to_string(i), at);
    const long line = before < 0 ? -1 : heard.place("logging: ", before);
    at = line < 0 ? -1 : heard.place("after " + std::to_string(i), line);
    CORELANE_NEED(before >= 0 && line == before + 1 && at == line + 1);
  }
  for (const std::thread::id thread : heard.threads)
    CORELANE_NEED(thread != std::this_thread::get_id());
  // A device's log is that of all its users; a context without the bit gets none of it.
  CORELANE_NEED(other.lines.size() == kRuns && other.place("logging: ") == 0);
  CORELANE_NEED(without.lines.empty());
}

CORELANE_STATEMENT(statement_12_an_undefined_property_of_a_context_throws) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    const QAicContextProperties_t properties = 1U << bit;
    if (properties == QAIC_CONTEXT_COLLECT_DEVICE_LOGS)
      CORELANE_NEED(Context::Factory(&properties, {kLeft}) != nullptr);
    else
      CORELANE_THROWS(CoreExceptionInit, QS_INVAL, Context::Factory(&properties, {kLeft}));
  }
}

}  // namespace statements
