/// Which call of the program it was, for the messages of an API's checking mode: function, number,
/// and the place in the program that called.
#pragma once

#include <cstdint>
#include <string>

namespace corelane::edge {

/// One call of an API's function.
struct CallSite {
  const char* function = nullptr;  ///< Null: no call.
  const void* caller = nullptr;    ///< Address in the program that called; null when not known.
  std::uint64_t number = 0;        ///< Counted from 1 over the whole process.
};

/// "rknn_run (call 12, from demo+0x11a3 in main)". Any thread.
std::string text(const CallSite& call);

/// The innermost call of this thread.
CallSite current_call() noexcept;

/// Makes `function` this thread's current call while it lives, if `on`. Else it costs a branch.
class CallScope {
 public:
  CallScope(bool on, const char* function) noexcept : on_(on) {
    if (on_) [[unlikely]]
      enter(function);
  }
  ~CallScope() {
    if (on_) [[unlikely]]
      leave();
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  void enter(const char* function) noexcept;
  void leave() noexcept;

  bool on_;
  CallSite before_;
};

}  // namespace corelane::edge
