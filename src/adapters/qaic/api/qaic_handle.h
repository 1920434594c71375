/// The objects of the API by their handles: pointers for the caller, numbers that are looked up
/// here and never followed. All functions from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "QAicApi.h"
#include "adapters/qaic/api/qaic_edge.h"
#include "corelane/base/status.h"

namespace corelane::qaic {

enum class ObjectKind : std::uint8_t {
  kContext,
  kQpc,
  kProgram,
  kExecObj,
  kQueue,
  kEvent,
  kSet,
  kProgramGroup,
  kProfiling,
  kStreamProfiling,
  kSlicing
};

/// What a handle stands for. Each kind is one class, with its kind as `kKind` and the API's opaque
/// type as `Handle`.
class Object {
 public:
  explicit Object(ObjectKind kind) noexcept : kind_(kind) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ObjectKind kind() const noexcept { return kind_; }

 private:
  ObjectKind kind_;
};

namespace handles {

/// A new number for `object`.
std::uint64_t add(std::shared_ptr<Object> object);
/// Null for a number that was never given out, was released, or came through fork().
std::shared_ptr<Object> find(std::uint64_t number) noexcept;
/// Takes it out of the table; null as in find(). Of two callers, one gets it.
std::shared_ptr<Object> take(std::uint64_t number) noexcept;
/// Why find() gave null, or an object of another kind, for a function that takes `wanted`: with the
/// next step.
Status refused(std::uint64_t number, ObjectKind wanted);

}  // namespace handles

/// The handle of a new object.
template <class T>
typename T::Handle* publish(std::shared_ptr<T> object) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is a number, never read through.
  return reinterpret_cast<typename T::Handle*>(handles::add(std::move(object)));
}

/// The live object of a handle, or why there is none.
template <class T>
Result<std::shared_ptr<T>> find(const typename T::Handle* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  std::shared_ptr<Object> object = handles::find(number);
  if (object == nullptr || object->kind() != T::kKind)
    return error(handles::refused(number, T::kKind));
  return std::static_pointer_cast<T>(std::move(object));
}

/// guard() for functions that take an object: `body` gets the live one of `handle`.
template <class T, class Body>
QStatus on(const char* function, const typename T::Handle* handle, Body&& body) noexcept {
  return guard(function, [&]() -> Outcome {
    auto object = find<T>(handle);
    if (!object) return {QS_INVAL, object.error()};
    return body(**object);
  });
}

/// Ends a handle. `body` gets the object first, and may refuse.
template <class T, class Body>
QStatus release(const char* function, const typename T::Handle* handle, Body&& body) noexcept {
  return guard(function, [&]() -> Outcome {
    auto object = find<T>(handle);
    if (!object) return {QS_INVAL, object.error()};
    Outcome allowed = body(**object);
    if (allowed.code() != QS_SUCCESS) return allowed;
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (handles::take(number) == nullptr) return {QS_INVAL, handles::refused(number, T::kKind)};
    return {};
  });
}

}  // namespace corelane::qaic
