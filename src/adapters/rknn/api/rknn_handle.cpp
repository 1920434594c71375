#include "adapters/rknn/api/rknn_handle.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "adapters/rknn/checks/rknn_check.h"
#include "base/fork.h"
#include "base/leaked.h"

namespace corelane::rknn {
namespace {

std::atomic<bool> forked{false};

struct Table {
  Table() {
    call_in_forked_child([] { forked.store(true, std::memory_order_relaxed); });
  }
  std::shared_mutex mutex;
  std::unordered_map<rknn_context, std::shared_ptr<Handle>> objects;
  rknn_context next = 0x1001;
};

// Contexts that are left at exit may still be in use by other threads.
Table& table() {
  static Leaked<Table> table;
  return *table;
}

}  // namespace

rknn_context add_handle(std::shared_ptr<Handle> object) {
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  const rknn_context handle = t.next++;
  t.objects.emplace(handle, std::move(object));
  check::context_made(handle);
  return handle;
}

std::shared_ptr<Handle> find_handle(rknn_context handle) noexcept {
  if (handle == 0 || forked.load(std::memory_order_relaxed)) return nullptr;
  Table& t = table();
  const std::shared_lock lock(t.mutex);
  const auto found = t.objects.find(handle);
  return found == t.objects.end() ? nullptr : found->second;
}

std::shared_ptr<Handle> take_handle(rknn_context handle) noexcept {
  if (handle == 0 || forked.load(std::memory_order_relaxed)) return nullptr;
  Table& t = table();
  const std::unique_lock lock(t.mutex);
  const auto found = t.objects.find(handle);
  if (found == t.objects.end()) return nullptr;
  std::shared_ptr<Handle> object = std::move(found->second);
  t.objects.erase(found);
  check::context_gone(handle);
  return object;
}

Status stale_handle(rknn_context handle) {
  if (forked.load(std::memory_order_relaxed))
    return error(Code::kWrongState,
                 "context {:#x} was made before fork(), and the device's threads did not come "
                 "along; make contexts in the child only, or start it with exec or spawn",
                 handle);
  if (handle == 0)
    return error(Code::kInvalidArgument,
                 "the context is 0; pass the one that rknn_init or rknn_matmul_create gave");
  Table& t = table();
  const std::shared_lock lock(t.mutex);
  return error(Code::kInvalidArgument, "context {:#x} {}", handle,
               handle < t.next && handle > 0x1000
                   ? "was destroyed; do not use it after rknn_destroy or rknn_matmul_destroy"
                   : "is none that rknn_init or rknn_matmul_create gave out");
}

bool after_fork() noexcept { return forked.load(std::memory_order_relaxed); }

std::vector<rknn_context> live_handles() {
  Table& t = table();
  const std::shared_lock lock(t.mutex);
  std::vector<rknn_context> handles;
  for (const auto& [handle, object] : t.objects) handles.push_back(handle);
  return handles;
}

}  // namespace corelane::rknn
