/// What the object runtime's classes promise, a function for each promise: compiled for qaic::rt
/// and, with CORELANE_OPENRT, for qaic::openrt. The table of docs/apis/object-runtime-tests.md
/// lists the functions.
#pragma once

#ifdef CORELANE_OPENRT
#include "QAicOpenRtApi.hpp"
namespace tested = qaic::openrt;
#else
#include "QAicApi.hpp"
namespace tested = qaic::rt;
#endif

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_support.h"

namespace statements {

using namespace tested;                // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

/// A condition that does not hold.
struct Failure {
  std::string text;
};

inline void need(bool ok, const char* text, const char* file, int line) {
  if (!ok) throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + text};
}
inline void gives(QStatus wanted, QStatus status, const char* text, const char* file, int line) {
  if (status == wanted) return;
  throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + text + " gives " +
                std::to_string(static_cast<int>(status)) + ", wanted " +
                std::to_string(static_cast<int>(wanted)) + ": " +
                qaic::rt::library().qaicGetLastErrorText()};
}

#define CORELANE_NEED(...) \
  ::statements::need(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
/// The call gives this code.
#define CORELANE_GIVES(status, ...) \
  ::statements::gives(status, __VA_ARGS__, #__VA_ARGS__, __FILE__, __LINE__)
/// The calls throw this exception with this code.
#define CORELANE_THROWS(exception, status, ...)                                             \
  ::statements::need(::statements::throws<exception>(status, [&] { (void)(__VA_ARGS__); }), \
                     #__VA_ARGS__ " throws " #exception ", " #status, __FILE__, __LINE__)

template <class Exception>
bool throws(QStatus status, const std::function<void()>& make) {
  try {
    make();
  } catch (const Exception& e) {
    return e.status() == status && e.msg().size() > 20 && e.msg() == e.what();
  }
  return false;
}

/// The functions by their names.
using Function = void (*)();
std::vector<std::pair<std::string, Function>>& all();
inline bool add(const char* name, Function function) {
  all().emplace_back(name, function);
  return true;
}
#define CORELANE_STATEMENT(name)                                                      \
  static void name();                                                                 \
  [[maybe_unused]] static const bool name##_listed = ::statements::add(#name, &name); \
  static void name()

/// The devices of the process, by their number.
enum Device : QID {
  kReal,     ///< Computes.
  kFailing,  ///< Every second inference fails.
  kSlow,     ///< No inference ends before its time limit.
  kLate,     ///< An inference takes 40 ms.
  kLogging,  ///< Each inference is a line in its log.
  kLeft,     ///< One core.
  kRight,    ///< One core.
  kLosing,   ///< Is lost by faults that its function injects.
  kSecond,   ///< Computes.
};

/// A folder with a container and inputs: "pair" (a, b -> their sum, and scores), "shapes" (x of 4
/// or 8 elements and a partial rest -> 2 x + rest), "parts" (two programs, 2 cores), "cut" ("pair"
/// in two parts).
std::string container(const std::string& name);
/// A folder for what a function writes.
const std::string& scratch();

/// Memory of one inference of "pair", each of a and b filled with a number.
class Pair {
 public:
  explicit Pair(float value = 1) {
    for (size_t i = 0; i < 4; ++i) {
      values_[i].assign(6, i < 2 ? value : -1);
      buffers_.push_back(QBuffer{24, reinterpret_cast<uint8_t*>(values_[i].data())});
    }
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  const std::vector<QBuffer>& buffers() const { return buffers_; }
  /// The first output is a + b.
  bool added() const {
    return std::all_of(values_[2].begin(), values_[2].end(),
                       [&](float sum) { return sum == 2 * values_[0][0]; });
  }

 private:
  std::vector<float> values_[4];
  std::vector<QBuffer> buffers_;
};

/// A set of "pair" with memory for each of its handles.
struct SetBench {
  explicit SetBench(QID device, uint32_t size = 1, uint32_t activations = 1,
                    const InferenceSetProperties& properties = {});
  /// An available handle with its memory.
  shInferenceHandle take() const;
  Pair& memory(const shInferenceHandle& handle) const { return *pairs[handle->getIndex()]; }

  shContext context;
  shQpc qpc;
  std::vector<std::unique_ptr<Pair>> pairs;
  shInferenceSet set;
};

/// Milliseconds and retries of a program.
inline InferenceSetProperties limit(uint32_t timeout_ms, uint32_t retries = 0) {
  InferenceSetProperties properties;
  properties.programProperties.SubmitRetryTimeoutMs = timeout_ms;
  properties.programProperties.SubmitNumRetries = retries;
  return properties;
}

/// A thread with one call.
template <class Call>
class Caller {
 public:
  explicit Caller(Call call)
      : thread_([this, call = std::move(call)] {
          number_ = static_cast<int>(syscall(SYS_gettid));
          status_ = call();
          returned_ = true;
        }) {}
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// Waits until the thread sleeps in its call; false where the call has returned.
  bool waits() const {
    while (!returned_) {
      if (number_ != 0 && state() == 'S') return !returned_;
      std::this_thread::yield();
    }
    return false;
  }
  /// What the call gave.
  QStatus status() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  char state() const {
    std::ifstream file("/proc/self/task/" + std::to_string(number_) + "/stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
  }

  std::atomic<int> number_{0};
  std::atomic<bool> returned_{false};
  QStatus status_ = QS_ERROR;
  std::thread thread_;
};

}  // namespace statements
