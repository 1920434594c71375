/// Handles: numbers that stand for contexts. They are looked up, never followed, and never used
/// twice, so a stale one is always told from a live one. All functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "rknn_api.h"

namespace corelane::rknn {

enum class HandleKind : unsigned char { kModel, kMatmul };

/// What a handle stands for.
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

/// A new number for `object`.
rknn_context add_handle(std::shared_ptr<Handle> object);
/// Null for a number that was never given out, was destroyed, or came through fork().
std::shared_ptr<Handle> find_handle(rknn_context handle) noexcept;
/// Takes it out of the table; null as in find_handle().
std::shared_ptr<Handle> take_handle(rknn_context handle) noexcept;
/// Why find_handle() gave null, with the next step.
Status stale_handle(rknn_context handle);
/// True in a child of fork() whose parent had used the library.
bool after_fork() noexcept;
/// The handles that live now.
std::vector<rknn_context> live_handles();

}  // namespace corelane::rknn
