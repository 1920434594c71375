/// What stays on the device between runs: the values that a program declares as state.
///
/// Each lies in two buffers in turn. A run reads one and writes the other, and they change places
/// only when it has ended well: after a failure it can be run again from the state before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/device/executable.h"
#include "tensor/box.h"

namespace corelane::device {
class Completion;
}

namespace corelane::runtime {

class OutputConversion;

/// The state of an activation, for all its contexts, or of one context. Any thread; one run or call
/// at a time, and a second caller gets kBusy at once.
class StateStore {
 public:
  /// `program` and `inputs`, one for each state, are names for messages; `counter` is raised by the
  /// bytes that it holds.
  StateStore(std::string program, std::vector<std::string> inputs,
             std::shared_ptr<std::atomic<std::size_t>> counter);

  /// What a run does with a state, and the form that it has there.
  struct Use {
    bool reads = false;
    bool writes = false;
    Shape shape;  ///< Static.
    std::size_t bytes = 0;
  };
  /// A part that a run writes before it reads: of a state that it reads, and inside of it.
  struct Slice {
    std::size_t index = 0;
    Box box;
    ByteSpan bytes;
  };
  /// Where a run finds it; null data where it does not use it.
  struct Memory {
    device::TensorRef from;
    device::TensorRef to;
  };

  /// Sets a state, which is given whole, in any shape. kBusy while a run is in flight,
  /// kOutOfMemory.
  Status write(std::size_t index, const Shape& shape, ByteSpan bytes);
  /// Copies a state, as the last run that ended well left it: zeros before one. kBusy,
  /// kShapeMismatch (it is kept in another shape).
  Status read(std::size_t index, const Shape& shape, MutableByteSpan to);
  /// Makes it zeros, of any shape. kBusy.
  Status reset(std::size_t index);
  Status reset_all();
  /// The bytes that it holds now.
  std::size_t bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  friend class StateTurn;
  /// What a slice has replaced.
  struct Replaced {
    Box box;
    std::vector<std::byte> bytes;
  };
  struct Value {
    Shape shape;
    std::size_t bytes = 0;
    std::shared_ptr<void> front;     ///< What the next run reads; null: zeros, of any shape.
    std::shared_ptr<void> back;      ///< Null until a run writes it.
    bool written = false;            ///< By the run that has begun.
    std::vector<Replaced> replaced;  ///< For that run, in the order of its slices.
  };
  class Call;

  Status busy() const;
  /// Takes the right to it. kBusy.
  Status enter();
  void leave() noexcept { in_use_.store(false, std::memory_order_release); }
  /// Takes over how a submitted run ended.
  Status settle();
  Status prepare(std::span<const Use> uses);
  Status prepare(std::size_t index, const Use& use);
  Status check_shape(std::size_t index, const Shape& shape) const;
  /// In what the run reads.
  void write(const Slice& slice);
  /// An abandoned job goes on with the memory it has.
  Status leave_memory();
  Result<std::shared_ptr<void>> allocate(std::size_t bytes);
  void clear(std::size_t index) noexcept;
  void exchange(bool ok) noexcept;

  const std::string program_;
  const std::vector<std::string> inputs_;
  const std::shared_ptr<std::atomic<std::size_t>> counter_;
  std::atomic<std::size_t> held_{0};
  std::atomic<bool> in_use_{false};

  // Of who has the right to it.
  std::vector<Value> values_;
  std::shared_ptr<device::Completion> pending_;           ///< Of a run that was submitted.
  std::shared_ptr<OutputConversion> pending_conversion_;  ///< May be null.
};

/// A run's right to the state, from its beginning until it has ended or is submitted. Without end()
/// or submitted() it ends as one that failed.
class StateTurn {
 public:
  /// A turn without state: all functions do nothing.
  StateTurn() = default;
  /// kBusy (a run or call of another), kShapeMismatch (it is kept in another shape), kOutOfMemory.
  static Result<StateTurn> begin(std::shared_ptr<StateStore> store,
                                 std::span<const StateStore::Use> uses,
                                 std::span<const StateStore::Slice> slices = {});
  StateTurn(StateTurn&& other) noexcept = default;
  StateTurn& operator=(StateTurn&& other) noexcept {
    std::swap(store_, other.store_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~StateTurn() { end(false); }

  /// One for each state; none of no state.
  std::span<const StateStore::Memory> memory() const noexcept { return memory_; }
  /// Where it ended well, what it wrote is what the next run reads.
  void end(bool ok) noexcept {
    if (store_ != nullptr) end_store(ok);
  }
  /// Whether it ended well is seen when the state is needed next. `conversion` may be null.
  void submitted(std::shared_ptr<device::Completion> completion,
                 std::shared_ptr<OutputConversion> conversion) noexcept;

 private:
  void end_store(bool ok) noexcept;

  std::shared_ptr<StateStore> store_;
  std::vector<StateStore::Memory> memory_;
};

}  // namespace corelane::runtime
