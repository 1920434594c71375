/// Python objects that are looked up once.
#pragma once

#include <atomic>

namespace corelane::python {

/// What `make` gave in the first call that ended. A static of a function would deadlock: while
/// `make` runs Python code another thread may get the interpreter's lock, and would wait for the
/// static with the lock held. Here both make one, and the loser of the race leaks its object.
template <class T, class Make>
const T& made_once(std::atomic<const T*>& known, Make&& make) {
  if (const T* found = known.load(std::memory_order_acquire); found != nullptr) return *found;
  const T* const made = make();
  const T* first = nullptr;
  return known.compare_exchange_strong(first, made) ? *made : *first;
}

}  // namespace corelane::python
