/// Which sizes of a batch get a form of their own beside the one that serves all, and the thread
/// that makes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "corelane/base/status.h"
#include "corelane/device/figures.h"
#include "corelane/program/batch_range.h"

namespace corelane::runtime {

/// Runs of a size on the open form before its own is made: a size that occurs once or twice, such
/// as the last batch of a data set, is not worth one.
inline constexpr std::uint32_t kRunsBeforeForm = 8;
/// Static forms of one program at most, whatever the budget.
inline constexpr std::size_t kMostBatchForms = 16;

/// The rule of docs/decisions/0003 for one more form of a program: the copies of its constants
/// beyond the first take `budget` bytes at most. `taken`: by the copies there are. Returns
/// PrepareOptions::replicate_limit for the form: `budget` where each core may have a copy, 0 where
/// one for all fits. Nothing where not even that does. Two values only, so that programs of one
/// file share the form, whatever order their sizes came in.
std::optional<std::size_t> form_replicate_limit(std::size_t constants, std::size_t cores,
                                                std::size_t taken, std::size_t budget) noexcept;

/// Bytes of constants that one prepared form holds, where its cores may have copies of their own.
std::size_t form_copies(device::Placement placement, std::size_t cores,
                        std::size_t constants) noexcept;

/// Counts the runs of each size on the open form and makes static forms of those that occur, one
/// after the other in a thread that lives while there are some to make. Any thread. Its end waits
/// for the form that is being made and drops those that are due.
class BatchForms {
 public:
  /// Prepares the form of a size and makes it known. Called in the thread of this object, without a
  /// lock. kOutOfMemory: the budget does not allow it.
  using Make = std::function<Status(std::uint32_t batch)>;

  /// `name`: of the program, for the log.
  BatchForms(BatchRange range, std::string name, Make make);
  ~BatchForms();
  BatchForms(const BatchForms&) = delete;
  BatchForms& operator=(const BatchForms&) = delete;

  const BatchRange& range() const noexcept;
  /// A run of this size begins on the open form. Never waits.
  void note_run(std::uint32_t batch) noexcept;
  /// Makes the form of this size now and waits for it; at once where it is there. kOutOfRange, or
  /// what `make` fails with. kCancelled when this object ends meanwhile.
  Status make_now(std::uint32_t batch);
  /// Rises with each form that is made: contexts look for theirs when it has.
  std::uint64_t generation() const noexcept;
  /// All forms are gone: sizes are counted from the beginning.
  void forget();
  /// Waits until nothing is due.
  void wait_idle();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace corelane::runtime
