#include "edge/call_site.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unwind.h>

#include <atomic>
#include <filesystem>

namespace corelane::edge {
namespace {

thread_local CallSite innermost;
std::atomic<std::uint64_t> calls{0};

/// The base of the door that this file is linked into.
const void* own_library() {
  static const void* const kBase = [] {
    Dl_info info{};
    return dladdr(reinterpret_cast<const void*>(&current_call), &info) != 0 ? info.dli_fbase
                                                                            : nullptr;
  }();
  return kBase;
}

/// The first frame outside of this library is the program's.
_Unwind_Reason_Code find_caller(_Unwind_Context* frame, void* found) {
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
  if (address == 0) return _URC_END_OF_STACK;
  Dl_info info{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the unwinder gives numbers.
  const void* const place = reinterpret_cast<const void*>(address);
  if (dladdr(place, &info) == 0 || info.dli_fbase == own_library()) return _URC_NO_REASON;
  // The address is the one after the call: tools shall show the line of the call itself.
  *static_cast<const void**>(found) = static_cast<const char*>(place) - 1;
  return _URC_END_OF_STACK;
}

}  // namespace

CallSite current_call() noexcept { return innermost; }

void CallScope::enter(const char* function) noexcept {
  before_ = innermost;
  const void* caller = nullptr;
  _Unwind_Backtrace(find_caller, static_cast<void*>(&caller));
  innermost = {function, caller, calls.fetch_add(1, std::memory_order_relaxed) + 1};
}

void CallScope::leave() noexcept { innermost = before_; }

std::string text(const CallSite& call) {
  if (call.function == nullptr) return "an unknown call";
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

}  // namespace corelane::edge
