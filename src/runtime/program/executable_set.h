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
#include "runtime/program/batch_forms.h"
#include "runtime/program/engine_trial.h"
#include "runtime/program/image_source.h"

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
    /// Bytes that count against the budget for copies; of forms of single batch sizes.
    std::size_t copies = 0;
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
  /// Null where the program has no batch range, or its device wants dimensions fixed. Constant once
  /// prepare_first() is done.
  BatchForms* batch_forms() const noexcept { return forms_.get(); }
  /// Lets the device's engines be timed against each other from here on, where they may change and
  /// no verdict is known. `done` may be empty; it is called with the verdict, in a thread of this
  /// object. Before others use the set.
  void time_engines(std::function<void(const EngineVerdict&)> done);
  /// Null where the engines are not timed. Constant once the program is loaded.
  EngineTrial* trial() const noexcept { return trial_.get(); }
  /// Of what was prepared first; a trial's figures say why where one has decided.
  device::EngineChoice engine_choice() const;
  /// Rises where another executable takes the place of one: contexts look for theirs then.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// True where the executable of a context may change while it runs.
  bool may_change() const noexcept { return forms_ != nullptr || trial_ != nullptr; }
  /// True for the one that serves all sizes of a batch range.
  bool serves_all_sizes(const Entry& entry) const noexcept;
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
  /// What a trial has found faster takes the place of the first executable.
  void adopt(const EngineVerdict& verdict, std::shared_ptr<device::Executable> faster);
  /// Sizes of a batch range get forms of their own from here on.
  void begin_forms();
  /// Prepares one, as far as the budget allows, for the contexts that there are.
  Status add_form(std::uint32_t batch);
  /// Bytes of constants that copies beyond the first take.
  std::size_t copies_taken() const CORELANE_REQUIRES(mutex_);
  /// Prepares for these shapes, and remembers.
  Status add(const std::vector<Shape>& shapes);
  Status prepare_dynamic(const std::vector<Shape>& declared);
  /// The attached form for these shapes under this program's options, or null.
  const PrecompiledForm* form_for(const std::vector<Shape>& shapes) const;
  /// No executable inside when none fits; one that is lost only where no other fits.
  Entry find(std::span<const Shape> shapes) const CORELANE_REQUIRES(mutex_);
  /// Takes the place of one for the same shapes.
  Entry remember(std::vector<Shape> shapes, std::shared_ptr<device::Executable> executable,
                 std::size_t copies = 0);

  const std::shared_ptr<device::Device> device_;
  const ImageSource source_;
  const device::PrepareOptions base_;
  const ProgramDescription& description_;
  mutable Mutex mutex_{LockRank::kProgramExecutables};
  std::condition_variable prepared_;  ///< An element of preparing_ has gone.
  std::vector<Entry> entries_ CORELANE_GUARDED_BY(mutex_);
  /// Shapes that a thread is preparing; each at most once.
  std::vector<std::vector<Shape>> preparing_ CORELANE_GUARDED_BY(mutex_);
  bool engines_change_ = false;  ///< Constant once prepare_first() has begun.
  std::optional<EngineVerdict> verdict_ CORELANE_GUARDED_BY(mutex_);  ///< Of the last trial.
  std::atomic<std::uint64_t> generation_{0};
  /// Last: their ends wait for add_form() and adopt().
  std::unique_ptr<BatchForms> forms_;
  std::unique_ptr<EngineTrial> trial_;
};

}  // namespace corelane::runtime
