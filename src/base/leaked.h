/// Objects that are never destroyed.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

namespace corelane {

/// Holds a T whose destructor never runs, since threads may still use it while the process ends:
/// `static Leaked<const Table> table({...}); return *table;`. Leak checkers find what it owns.
template <class T>
class Leaked {
 public:
  template <class... Args>
  explicit Leaked(Args&&... args) {
    ::new (static_cast<void*>(storage_)) T(std::forward<Args>(args)...);
  }
  /// A container from its list in braces.
  template <class C = std::remove_const_t<T>, class V = typename C::value_type>
  explicit Leaked(std::initializer_list<std::type_identity_t<V>> values) {
    ::new (static_cast<void*>(storage_)) T(values);
  }
  Leaked(const Leaked&) = delete;
  Leaked& operator=(const Leaked&) = delete;

  T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(storage_)); }
  T* operator->() noexcept { return &**this; }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
};

}  // namespace corelane
