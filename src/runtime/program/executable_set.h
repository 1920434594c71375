/// The executables of one program: one per shape set, prepared at their first use.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/device.h"
#include "corelane/program/description.h"

namespace corelane::runtime {

/// A pre-compiled form as a program file holds it: its segment tag is "<driver tag>#<variant>",
/// the variant naming the options and shapes it was made for.
struct PrecompiledForm {
  std::string tag;
  ByteSpan bytes;
};

/// What executables are prepared from.
struct ImageSource {
  std::string kind;
  ByteSpan graph;
  ByteSpan constants;
  std::vector<PrecompiledForm> precompiled;
  std::shared_ptr<const void> keep_alive;
  std::shared_ptr<const void> weights_of;  ///< Owns `constants` where `keep_alive` does not.
  /// False: the device is told no inputs and outputs, what is known of them came from it.
  bool declares = true;
};

/// "f32", "f16+fast", ...: the part of a precompiled form's tag that names the options, and the
/// shapes "[1, 3, 224, 224][?, 4]" it was made for (empty shapes: those of the image).
std::string precompiled_variant(const device::PrepareOptions& options);

/// Any thread. Preparing is done under a lock of its own, so that two contexts that ask for the
/// same shapes prepare once; looking at what is there never waits for it.
class ExecutableSet {
 public:
  struct Entry {
    std::vector<Shape> shapes;  ///< May have open dimensions.
    std::shared_ptr<device::Executable> executable;
    /// One more reference than contexts use the executable.
    std::shared_ptr<const char> users;
  };

  /// `description` must outlive the set.
  ExecutableSet(std::shared_ptr<device::Device> device, ImageSource source,
                device::PrepareOptions base, const ProgramDescription& description);

  /// Prepares the first shape set, or the dynamic executable, so that errors surface at load.
  /// Prepares nothing when dimensions are open and the device wants them fixed.
  Status prepare_first();
  /// The executable for these static shapes (already checked against the description).
  Result<Entry> for_shapes(std::span<const Shape> shapes);
  /// What was prepared first, with its shapes; no executable when nothing was.
  Entry first() const;
  std::vector<std::shared_ptr<device::Executable>> all() const;
  /// A pre-compiled form of every prepared executable that the device can export, tagged as in a
  /// program file. kUnsupported when there is none.
  Result<std::vector<device::Executable::Precompiled>> export_all() const;
  bool from_precompiled() const;
  const ImageSource& source() const noexcept { return source_; }

 private:
  Result<std::shared_ptr<device::Executable>> prepare(const std::vector<Shape>& shapes);
  Status prepare_dynamic();
  /// The attached form for these shapes under this program's options, or null.
  const PrecompiledForm* form_for(const std::vector<Shape>& shapes) const;
  /// No executable inside when none fits.
  Entry find(std::span<const Shape> shapes) const;
  Entry remember(std::vector<Shape> shapes, std::shared_ptr<device::Executable> executable);

  const std::shared_ptr<device::Device> device_;
  const ImageSource source_;
  const device::PrepareOptions base_;
  const ProgramDescription& description_;
  std::mutex prepare_mutex_;
  mutable std::mutex mutex_;  ///< Guards entries_.
  std::vector<Entry> entries_;
};

}  // namespace corelane::runtime
