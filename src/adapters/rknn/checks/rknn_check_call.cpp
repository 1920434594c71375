/// Which call of the program it was: function, number, and where in the program it came from.
#include <dlfcn.h>
#include <unwind.h>

#include <atomic>
#include <filesystem>

#include "adapters/rknn/checks/rknn_check.h"

namespace corelane::rknn::check {
namespace {

thread_local Call innermost;
std::atomic<std::uint64_t> calls{0};

const void* own_library() {
  static const void* const kBase = [] {
    Dl_info info{};
    return dladdr(reinterpret_cast<const void*>(&read_enabled), &info) != 0 ? info.dli_fbase
                                                                            : nullptr;
  }();
  return kBase;
}

/// The first frame outside of this library is the program's.
_Unwind_Reason_Code find_caller(_Unwind_Context* frame, void* found) {
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
  if (address == 0) return _URC_END_OF_STACK;
  Dl_info info{};
  const void* const place = reinterpret_cast<const void*>(address);
  if (dladdr(place, &info) == 0 || info.dli_fbase == own_library()) return _URC_NO_REASON;
  // Inside of the call, not behind it: there is the line that tools should show.
  *static_cast<const void**>(found) = static_cast<const char*>(place) - 1;
  return _URC_END_OF_STACK;
}

}  // namespace

Call current() noexcept { return innermost; }

void Scope::enter(const char* function) noexcept {
  before_ = innermost;
  const void* caller = nullptr;
  _Unwind_Backtrace(find_caller, static_cast<void*>(&caller));
  innermost = {function, caller, calls.fetch_add(1, std::memory_order_relaxed) + 1};
}

void Scope::leave() noexcept { innermost = before_; }

std::string text(const Call& call) {
  if (call.function == nullptr) return "no call that is known";
  std::string text = fmt::format("{} (call {}", call.function, call.number);
  Dl_info info{};
  if (call.caller != nullptr && dladdr(call.caller, &info) != 0 && info.dli_fname != nullptr) {
    const auto offset = reinterpret_cast<std::uintptr_t>(call.caller) -
                        reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    text += fmt::format(", from {}+{:#x}",
                        std::filesystem::path(info.dli_fname).filename().string(), offset);
    if (info.dli_sname != nullptr) text += fmt::format(" in {}", info.dli_sname);
  }
  return text + ")";
}

}  // namespace corelane::rknn::check
