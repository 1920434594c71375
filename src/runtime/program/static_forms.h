/// Which shapes of a program's inputs get a form of their own beside the one that serves all, and
/// the thread that makes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/device/figures.h"
#include "corelane/tensor/shape.h"
#include "runtime/program/engine_trial.h"

namespace corelane::runtime {

/// Runs of some shapes on the open form before their own is made: shapes that occur once or twice,
/// such as the last batch of a data set, are not worth one.
inline constexpr std::uint32_t kRunsBeforeForm = 8;
/// Static forms of a batch range at most, whatever the budget.
inline constexpr std::size_t kMostBatchForms = 16;
/// Static forms of a program with other open dimensions at most.
inline constexpr std::size_t kMostShapeForms = 8;

/// How a program's forms come and go.
struct FormRule {
  std::size_t most = kMostBatchForms;
  /// Any shapes may occur. A form has to win against the open one, timed with the inputs of a run,
  /// and one that is hardly used gives way to another. Off, for the sizes of a batch range: each
  /// is worth a form, and what was made first stays.
  bool open_ended = false;
};

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

/// The runs of some shapes. Contexts count in it; what else it has belongs to StaticForms.
class FormUse {
 public:
  explicit FormUse(std::vector<Shape> of) : shapes(std::move(of)) {}

  /// Runs of these shapes since their form was made; 0 where there is none.
  std::uint64_t served() const noexcept;

  const std::vector<Shape> shapes;

 private:
  friend class StaticForms;
  enum class State : std::uint8_t { kNone, kDue, kMade, kRefused };
  static constexpr auto kNever = std::numeric_limits<std::uint64_t>::max();

  std::atomic<std::uint64_t> runs_{0};
  std::atomic<std::uint64_t> due_at_{kRunsBeforeForm};  ///< Of runs_: when a form is thought of.
  std::atomic<std::uint64_t> made_at_{kNever};          ///< Of runs_.
  // Guarded by the mutex of StaticForms.
  State state_ = State::kNone;
  Status status_;            ///< Of a refused one.
  std::uint64_t older_ = 0;  ///< Runs before `seen_`, of which the old ones count less.
  std::uint64_t seen_ = 0;   ///< Of runs_.
};

/// Counts the runs of shapes on the open form and makes static forms of those that occur, one after
/// the other in a thread that lives while there are some to make. Any thread. Its end waits for the
/// form that is being made and drops those that are due.
class StaticForms {
 public:
  /// Prepares the form of `use->shapes` and makes it known. Called in the thread of this object,
  /// without a lock. False: it is no faster than the open form. kOutOfMemory: there is no room.
  using Make = std::function<Result<bool>(const std::shared_ptr<FormUse>& use, TimedRun run)>;

  /// `name`: of the program, for the log.
  StaticForms(FormRule rule, std::string name, Make make);
  ~StaticForms();
  StaticForms(const StaticForms&) = delete;
  StaticForms& operator=(const StaticForms&) = delete;

  const FormRule& rule() const noexcept;
  /// What counts the runs of these shapes. A context keeps it while it stays at them.
  std::shared_ptr<FormUse> use_of(const std::vector<Shape>& shapes);
  /// A run of these shapes begins, on either form. True where a form for them is to be made: then
  /// begin() follows, with what the run was given where the rule is open-ended. Never waits.
  /// `inputs_are_there`: else no form is begun.
  bool note_run(const std::shared_ptr<FormUse>& use, bool inputs_are_there) noexcept;
  void begin(const std::shared_ptr<FormUse>& use, TimedRun run) noexcept;
  /// In place of begin(), where the inputs could not be copied: it is thought of again later.
  void give_up(const std::shared_ptr<FormUse>& use) noexcept;
  /// Makes the form of these shapes now and waits for it; at once where it is there. What `make`
  /// fails with. kCancelled when this object ends meanwhile.
  Status make_now(const std::vector<Shape>& shapes);
  /// For `make`: the shapes of the form that gives way to one for `use`, because it runs far less;
  /// it is no longer counted as made. Nothing where none is that idle.
  std::optional<std::vector<Shape>> yield_to(const FormUse& use);
  /// True where one more needs another's place.
  bool full() const;
  /// This object ends: what takes long should stop.
  bool stopping() const;
  /// Shapes that were refused a form are counted from the beginning: runs take other cores now, on
  /// which a form may gain more.
  void reconsider();
  /// All forms are gone: runs are counted from the beginning.
  void forget();
  /// True where one is due or in the making.
  bool is_busy() const;
  /// Waits until nothing is due. At once in a forked child, and in the thread that makes forms.
  void wait_idle();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace corelane::runtime
