/// Objects that are never destroyed.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace corelane {

/// Holds a T whose destructor never runs, since threads may still use it while the process ends:
/// `static Leaked<Table> table; return *table;`. Leak checkers find what it owns.
template <class T>
class Leaked {
 public:
  template <class... Args>
  explicit Leaked(Args&&... args) {
    ::new (static_cast<void*>(storage_)) T(std::forward<Args>(args)...);
  }
  Leaked(const Leaked&) = delete;
  Leaked& operator=(const Leaked&) = delete;

  T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(storage_)); }
  T* operator->() noexcept { return &**this; }

 private:
  alignas(T) std::byte storage_[sizeof(T)];
};

}  // namespace corelane
