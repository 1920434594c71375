/// Memory for what must not fail: the end of work that was taken on.
///
/// Where the heap has nothing left, a small reserve of the library's own serves what a completion
/// adds to a list, and the functions that it hands on. It is given back within moments, when the
/// lists are empty again. Any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/api.h"

namespace corelane {

namespace detail {
/// `size` bytes of the heap, else of the reserve; where both have none, waits until one of them
/// has.
CORELANE_API void* take_reserved(std::size_t size) noexcept;
CORELANE_API void give_reserved(void* memory) noexcept;
}  // namespace detail

/// For the containers of completions: does not fail.
template <class T>
struct ReserveAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;
  ReserveAllocator() noexcept = default;
  template <class U>
  ReserveAllocator(const ReserveAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) noexcept {
    // T may be a pointer.  NOLINTNEXTLINE(bugprone-sizeof-expression)
    return static_cast<T*>(detail::take_reserved(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t) noexcept { detail::give_reserved(memory); }
  bool operator==(const ReserveAllocator&) const noexcept { return true; }
};

/// Containers that grow while work ends.
template <class T>
using SureVector = std::vector<T, ReserveAllocator<T>>;
template <class T>
using SureDeque = std::deque<T, ReserveAllocator<T>>;
template <class Key, class T>
using SureMap = std::map<Key, T, std::less<Key>, ReserveAllocator<std::pair<const Key, T>>>;

/// A list that mostly has one element, which lies in the list itself.
template <class T>
class SureShortList {
 public:
  SureShortList() noexcept = default;
  SureShortList(SureShortList&& other) noexcept
      : first_(std::exchange(other.first_, std::nullopt)), more_(std::move(other.more_)) {}

  bool empty() const noexcept { return !first_.has_value(); }
  void push_back(T value) noexcept {
    if (first_.has_value())
      more_.push_back(std::move(value));
    else
      first_.emplace(std::move(value));
  }
  void clear() noexcept {
    first_.reset();
    more_.clear();
  }
  /// Calls `f` with each element, in the order in which they were added.
  template <class F>
  void for_each(F&& f) const {
    if (first_.has_value()) f(*first_);
    for (const T& element : more_) f(element);
  }

 private:
  std::optional<T> first_;
  SureVector<T> more_;
};

namespace detail {
/// Ends what sure_once() made, after its call.
template <class F>
struct ReserveHolder {
  F* held;
  ~ReserveHolder() {
    std::destroy_at(held);
    ReserveAllocator<F>().deallocate(held, 1);
  }
};
}  // namespace detail

/// `f` as a std::function that is made without failing. For a function that is called exactly
/// once, as that of a completion: the call releases what `f` holds, and no call would leak it.
template <class Signature, class F>
std::function<Signature> sure_once(F f) noexcept {
  static_assert(std::is_nothrow_move_constructible_v<F>);
  F* const held = std::construct_at(ReserveAllocator<F>().allocate(1), std::move(f));
  // A pointer is kept in the std::function itself.
  return [held](auto&&... arguments) {
    const detail::ReserveHolder<F> release{held};
    (*held)(std::forward<decltype(arguments)>(arguments)...);
  };
}

/// `make()`, a text for people; empty where there is no memory for it.
template <class F>
std::string text_or_none(F&& make) noexcept {
  try {
    return make();
  } catch (...) {
    return {};
  }
}

}  // namespace corelane
