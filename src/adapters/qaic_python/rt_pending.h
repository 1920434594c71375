/// Work in flight whose Python object is gone, and the end of the interpreter.
///
/// An inference reads and writes memory of Python objects. Where the object that began it goes
/// first, the object of the runtime and the memory stay here until the inference has ended.
/// Functions need the lock of the interpreter unless they say otherwise.
#pragma once

#include <memory>
#include <vector>

#include "adapters/qaic_python/rt_buffer.h"

namespace corelane::qaic_python {

/// An execution object with the memory that it works with.
struct ExecState {
  qaic::rt::shExecObj object;
  Buffers buffers;

  /// Whether an inference of it may touch the memory.
  bool is_in_flight() const;
};

/// A set with the memory of each of its handles.
struct SetState {
  qaic::rt::shInferenceSet object;
  qaic::rt::BufferMappings mappings;
  std::vector<Buffers> buffers;  ///< By the number of the handle.

  bool is_in_flight() const;
};

/// Lets close_all() know of it.
void enrol(const std::shared_ptr<ExecState>& state);
void enrol(const std::shared_ptr<SetState>& state);

/// Ends with it where nothing is in flight; keeps it until then else. Destroys without the lock.
void part_with(std::shared_ptr<ExecState> state);
void part_with(std::shared_ptr<SetState> state);

/// Ends with what is not in flight any more.
void sweep();

/// When the interpreter ends, without its lock: threads that wait for a set return, and what is in
/// flight ends, for at most ten seconds.
void close_all();

}  // namespace corelane::qaic_python
