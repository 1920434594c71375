/// The executables of one program: one per shape set, prepared at their first use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sync.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/executable.h"
#include "corelane/program/description.h"
#include "runtime/program/engine_trial.h"
#include "runtime/program/image_source.h"
#include "runtime/program/static_forms.h"

namespace corelane::device {
class Device;
}

namespace corelane::runtime {

/// Any thread. No lock is held while the device prepares: two shapes are prepared at the same time,
/// the same shapes once, for all contexts that ask for them meanwhile.
class ExecutableSet {
 public:
  struct Entry {
    std::vector<Shape> shapes;  ///< May have open dimensions.
    std::shared_ptr<device::Executable> executable;
    /// One more reference than contexts use the executable.
    std::shared_ptr<const char> users;
    /// Bytes that count against the budget for copies; of static forms beside an open one.
    std::size_t copies = 0;
    /// What counts the runs of a static form beside an open one; null for others.
    std::shared_ptr<const FormUse> use;
    /// Larger for what was found later.
    std::uint64_t found = 0;
  };

  /// `description` must outlive the set.
  ExecutableSet(std::shared_ptr<device::Device> device, ImageSource source,
                device::PrepareOptions base, const ProgramDescription& description);

  /// Lets the device's engines change while the program runs, where it has several and the program
  /// leaves the choice to the device. `verdict`: of an earlier trial; the program is prepared on
  /// that engine. Without one it begins on the engine that prepares it soonest. Before
  /// prepare_first().
  void let_engines_change(std::optional<EngineVerdict> verdict);
  /// Prepares the first shape set, or the dynamic executable, so that errors surface at load.
  /// Prepares nothing when dimensions are open and the device wants them fixed.
  Status prepare_first();
  /// The executable for these static shapes (already checked against the description). Waits while
  /// another thread prepares the same shapes; where that fails, prepares them itself. One that was
  /// lost with its device is prepared again.
  Result<Entry> for_shapes(std::span<const Shape> shapes);
  /// What was prepared first, with its shapes; no executable when nothing was.
  Entry first() const;
  std::vector<std::shared_ptr<device::Executable>> all() const;
  /// The first one first.
  std::vector<Entry> entries() const;
  /// A pre-compiled form of every prepared executable that the device can export, tagged as in a
  /// program file. kUnsupported when there is none.
  Result<std::vector<device::Executable::Precompiled>> export_all() const;
  bool from_precompiled() const;
  /// True where it began on another engine than the device's first, which an earlier trial had
  /// found faster: nothing that is kept for the first one was needed.
  bool began_elsewhere() const noexcept { return began_elsewhere_; }
  /// Lets shapes that come back get static forms beside the open one, where the program has open
  /// dimensions, no shape sets and no batch range, and its device prepared it so. `engine`: of the
  /// forms, as device::PrepareOptions::engine. Before others use the set.
  void begin_shape_forms(std::string engine);
  /// Static forms beside an open one: of a batch range, or of shapes that come back. Null where the
  /// program has none. Constant once the program is loaded.
  StaticForms* forms() const noexcept { return forms_.get(); }
  /// True where they are of a batch range.
  bool has_batch_forms() const noexcept { return forms_ != nullptr && !hides_forms(); }
  /// True where users do not see which form runs: outputs are described as open_outputs().
  bool hides_forms() const noexcept { return forms_ != nullptr && forms_->rule().open_ended; }
  const std::vector<TensorDesc>& open_outputs() const noexcept { return open_outputs_; }
  /// Lets the device's engines be timed against each other from here on, where they may change:
  /// after the first runs where no verdict is known, and where runs take other cores than those of
  /// the last trial. `done` may be empty; it is called with a verdict of another engine, or of
  /// another number of cores, than the last one, in a thread of this object. Before others use the
  /// set.
  void time_engines(std::function<void(const EngineVerdict&)> done);
  /// Times them at once, on `run`. Nothing where the program leaves no choice, or they could not be
  /// timed: then the log says why. What was prepared stays. Before others use the set.
  std::optional<EngineVerdict> compare_engines(TimedRun run);
  /// Null where the engines are not timed. Constant once the program is loaded.
  EngineTrial* trial() const noexcept { return trial_.get(); }
  /// True where the program is not on its last engine yet, or session of an engine that nobody has
  /// named: the change gives back what the load took beside the program.
  bool is_to_change() const noexcept {
    return (trial_ != nullptr && !trial_->over()) ||
           (base_.engine.empty() && !source_.unfit.empty());
  }
  /// The engine of what was prepared first; if a trial has decided, its figures say why.
  device::EngineChoice engine_choice() const;
  /// Rises where an executable takes the place of another one, comes or leaves: contexts look for
  /// theirs then.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// True where the executable of a context may change while it runs.
  bool may_change() const noexcept { return forms_ != nullptr || trial_ != nullptr; }
  /// True for the one that serves all shapes, of a program with static forms beside it.
  bool is_open_form(const Entry& entry) const noexcept;
  /// False for one that has left the set; its contexts keep it alive.
  bool holds(const device::Executable* executable) const;
  const ImageSource& source() const noexcept { return source_; }

 private:
  class Preparation;

  /// `copies`: PrepareOptions::replicate_limit.
  /// `engine`: as device::PrepareOptions::engine.
  Result<std::shared_ptr<device::Executable>> prepare(const std::vector<Shape>& shapes,
                                                      std::size_t copies,
                                                      const std::string& engine);
  Result<std::shared_ptr<device::Executable>> prepare(const std::vector<Shape>& shapes) {
    return prepare(shapes, base_.replicate_limit, engine());
  }
  /// The engine of what is prepared from now on.
  std::string engine() const;
  /// True where nothing but time decides which engine computes the program.
  bool is_free_to_choose() const;
  /// True where something is prepared, of tensors of numbers alone.
  bool can_time_engines() const;
  /// The verdict from now on. True where it says another thing than the one before.
  bool keep(const EngineVerdict& verdict);
  EngineTrial::Parts trial_parts(const std::optional<EngineVerdict>& known);
  /// The executable of another engine takes the place of the first one. kDeviceLost where it is
  /// lost; kOutOfMemory where it is only tried and the contexts find no memory for it. After a
  /// failure the first one is what it was.
  Status adopt(const std::shared_ptr<device::Executable>& executable, bool is_tried);
  Status make_copies(device::Executable& executable, std::size_t contexts) const;
  /// Sizes of a batch range get forms of their own from here on.
  void begin_forms();
  /// Prepares one, as far as the budget allows, for the contexts that there are. False: it is no
  /// faster than the open form.
  Result<bool> add_form(const std::shared_ptr<FormUse>& use, TimedRun run);
  Result<bool> make_form(const std::shared_ptr<FormUse>& use, TimedRun run);
  /// What it counts with against the budget; kOutOfMemory or kUnsupported where that is too much.
  Result<std::size_t> size_of_form(const device::Executable& form);
  /// PrepareOptions::replicate_limit of one more form; kOutOfMemory.
  Result<std::size_t> room_for_form(const FormUse& use);
  Status check_room_left() const;
  Result<bool> is_worth_it(const std::shared_ptr<device::Executable>& form, TimedRun run) const;
  void drop_form(const std::vector<Shape>& shapes);
  /// Bytes that copies beyond the first take, and forms.
  std::size_t copies_taken() CORELANE_REQUIRES(mutex_);
  /// Prepares for these shapes, and remembers.
  Status add(const std::vector<Shape>& shapes);
  Status prepare_dynamic(const std::vector<Shape>& declared);
  /// The attached form for these shapes under this program's options, or null.
  const PrecompiledForm* form_for(const std::vector<Shape>& shapes) const;
  /// No executable inside when none fits; one that is lost only where no other fits.
  Entry find(std::span<const Shape> shapes) CORELANE_REQUIRES(mutex_);
  /// How many executables for single shapes are kept where no closed list bounds them: the
  /// constants of all but the first count against the budget for copies.
  std::size_t most_kept() const noexcept;
  /// Takes the place of one for the same shapes.
  Entry remember(std::vector<Shape> shapes, std::shared_ptr<device::Executable> executable,
                 std::size_t copies = 0, std::shared_ptr<const FormUse> use = nullptr);

  const std::shared_ptr<device::Device> device_;
  const ImageSource source_;
  const device::PrepareOptions base_;
  const ProgramDescription& description_;
  mutable Mutex mutex_{LockRank::kProgramExecutables};
  std::condition_variable prepared_;  ///< An element of preparing_ has gone.
  std::vector<Entry> entries_ CORELANE_GUARDED_BY(mutex_);
  std::uint64_t finds_ CORELANE_GUARDED_BY(mutex_) = 0;
  /// Shapes that a thread is preparing; each at most once.
  std::vector<std::vector<Shape>> preparing_ CORELANE_GUARDED_BY(mutex_);
  /// A form that has left, and what it takes while contexts keep it alive.
  struct Leaving {
    std::weak_ptr<device::Executable> executable;
    std::size_t copies = 0;
  };
  std::vector<Leaving> leaving_ CORELANE_GUARDED_BY(mutex_);
  bool engines_change_ = false;   ///< Constant once prepare_first() has begun.
  bool began_elsewhere_ = false;  ///< Likewise.
  std::optional<EngineVerdict> verdict_ CORELANE_GUARDED_BY(mutex_);  ///< Of the last trial.
  std::atomic<std::uint64_t> generation_{0};
  /// Bytes that the smallest static form takes at least, of those that were made; 0 before.
  std::size_t least_form_ CORELANE_GUARDED_BY(mutex_) = 0;
  std::string form_engine_;               ///< As device::PrepareOptions::engine.
  std::vector<TensorDesc> open_outputs_;  ///< Of a program with shape forms.
  /// Last: their ends wait for add_form() and adopt().
  std::unique_ptr<StaticForms> forms_;
  std::unique_ptr<EngineTrial> trial_;
};

}  // namespace corelane::runtime
