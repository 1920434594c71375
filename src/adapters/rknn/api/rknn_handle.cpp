#include "adapters/rknn/api/rknn_handle.h"

#include "adapters/rknn/checks/rknn_check.h"
#include "base/leaked.h"
#include "edge/handle_table.h"

namespace corelane::rknn {
namespace {

// Never destroyed: contexts that are left at exit may still be in use by other threads.
edge::HandleTable<Handle>& table() {
  static Leaked<edge::HandleTable<Handle>> table(0x1001);
  return *table;
}

}  // namespace

rknn_context add_handle(std::shared_ptr<Handle> object) {
  const rknn_context handle = table().add(std::move(object));
  check::context_made(handle);
  return handle;
}

std::shared_ptr<Handle> find_handle(rknn_context handle) noexcept { return table().find(handle); }

std::shared_ptr<Handle> take_handle(rknn_context handle) noexcept {
  std::shared_ptr<Handle> object = table().take(handle);
  if (object != nullptr) check::context_gone(handle);
  return object;
}

/// Handles are numbers that are looked up, so that a wrong one is told from an old one.
Status stale_handle(rknn_context handle) {
  if (table().after_fork())
    return error(Code::kWrongState,
                 "context {:#x} was made before fork(), and the device's threads did not come "
                 "along; make contexts in the child only, or start it with exec or spawn",
                 handle);
  if (handle == 0)
    return error(Code::kInvalidArgument,
                 "the context is 0; pass the one that rknn_init or rknn_matmul_create gave");
  return error(Code::kInvalidArgument, "context {:#x} {}", handle,
               table().state(handle) == edge::HandleState::kUnknown
                   ? "was not given out by rknn_init or rknn_matmul_create"
                   : "was destroyed; do not use it after rknn_destroy or rknn_matmul_destroy");
}

Status wrong_kind(rknn_context handle, HandleKind kind) {
  const bool model = kind == HandleKind::kModel;
  return error(
      Code::kInvalidArgument, "context {:#x} is one of {}; this function takes those of {}", handle,
      model ? "rknn_init" : "rknn_matmul_create", model ? "rknn_matmul_create" : "rknn_init");
}

Status check_process() {
  if (!table().after_fork()) return {};
  return error(Code::kWrongState,
               "the parent of this process had used the library before fork(), and the device's "
               "threads did not come along; start workers with exec or spawn, or fork before the "
               "first call");
}

}  // namespace corelane::rknn
