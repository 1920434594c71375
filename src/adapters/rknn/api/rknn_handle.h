/// The contexts of the API by their handles. All functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "adapters/rknn/api/rknn_edge.h"
#include "corelane/base/status.h"
#include "rknn_api.h"

namespace corelane::rknn {

enum class HandleKind : unsigned char { kModel, kMatmul };

/// What a handle stands for. Each kind is one class, with the kind as its `kKind`.
class Handle {
 public:
  explicit Handle(HandleKind kind) noexcept : kind_(kind) {}
  virtual ~Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  HandleKind kind() const noexcept { return kind_; }

 private:
  HandleKind kind_;
};

/// A new handle for `object`.
rknn_context add_handle(std::shared_ptr<Handle> object);
/// Null for a number that was never given out, was destroyed, or came through fork().
std::shared_ptr<Handle> find_handle(rknn_context handle) noexcept;
/// Takes it out of the table; null as in find_handle(). Of two callers, one gets it.
std::shared_ptr<Handle> take_handle(rknn_context handle) noexcept;
/// Why find_handle() gave null, with the next step.
Status stale_handle(rknn_context handle);
/// The failure of a function that takes contexts of another kind than `kind`.
Status wrong_kind(rknn_context handle, HandleKind kind);
/// kWrongState in a child of fork() whose parent had used the library.
Status check_process();

/// The live context of a handle, of the kind that a function takes, or the reason why there is
/// none, for RKNN_ERR_CTX_INVALID.
template <class Context>
Result<std::shared_ptr<Context>> find_context(rknn_context handle) {
  const std::shared_ptr<Handle> object = find_handle(handle);
  if (object == nullptr) return error(stale_handle(handle));
  if (object->kind() != Context::kKind) return error(wrong_kind(handle, object->kind()));
  return std::static_pointer_cast<Context>(object);
}

/// guard() for functions that take a context: `body` gets the live one of `handle`.
template <class Context, class Body>
int on_context(const char* function, rknn_context handle, Body&& body) noexcept {
  return guard(function, [&]() -> Outcome {
    const auto context = find_context<Context>(handle);
    if (!context) return {RKNN_ERR_CTX_INVALID, context.error()};
    return body(**context);
  });
}

}  // namespace corelane::rknn
