/// Objects of Python that are looked up once.
#pragma once

#include <atomic>

namespace corelane::python {

/// What `make` gave, from the first call that came to its end. Instead of a static of a function:
/// Python code that runs while one is made lets other threads in, and one of them would wait for it
/// while it has the interpreter's lock. Whoever comes second leaves what it made.
template <class T, class Make>
const T& made_once(std::atomic<const T*>& known, Make&& make) {
  if (const T* found = known.load(std::memory_order_acquire); found != nullptr) return *found;
  const T* const made = make();
  const T* first = nullptr;
  return known.compare_exchange_strong(first, made) ? *made : *first;
}

}  // namespace corelane::python
