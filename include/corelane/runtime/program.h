/// A program loaded on a device: weights once, any number of contexts.
///
///     auto program = corelane::Program::load("model.rknn").value();
///     auto context = program.new_context().value();
///     context.bind_input(0, view_of_my_pixels);
///     context.run();
///     auto scores = context.output(0).value();
///
/// Program, Context and Inference are cheap handles over shared state; children keep parents alive,
/// in any order of destruction. Program: any thread. Context: one caller at a time (a second one is
/// refused with kBusy, not undefined). Inference: any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/device/figures.h"
#include "corelane/onnx/import_options.h"
#include "corelane/onnx/network_nodes.h"
#include "corelane/program/description.h"
#include "corelane/runtime/context.h"
#include "corelane/runtime/load_options.h"

namespace corelane {

namespace device {
class Device;
class HostOperatorTable;
}  // namespace device

struct ProgramState;
class ProgramFile;

/// One prepared form of a program: the executable for some shapes of its inputs.
struct ProgramForm {
  std::vector<Shape> input_shapes;  ///< By position; open dimensions where it takes any size.
  device::Placement placement = device::Placement::kOpaque;
  /// Constants that forms share count for each of them with its part.
  device::MemoryFigures memory;
  /// Which of the device's engines computes it.
  std::string engine;
  /// Runs of its shapes since a static form beside an open one was made; 0 for other forms.
  std::uint64_t runs = 0;
};

/// A cheap handle; a default-made one stands for no program (kWrongState). Any thread. A load, or a
/// context, for which memory runs out fails with kOutOfMemory and holds nothing.
class CORELANE_API Program {
 public:
  /// From a program file, an ONNX file, or (where the device takes it) a vendor-compiled file.
  static Result<Program> load(const std::filesystem::path& path, const LoadOptions& options = {});
  /// From memory; the bytes are copied unless `keep_alive` holds them.
  static Result<Program> load(ByteSpan bytes, const LoadOptions& options = {},
                              std::shared_ptr<const void> keep_alive = nullptr);
  /// From a program file that is open, which the program keeps. Programs that are loaded on one
  /// device from one open file, or from one path whose file has not changed, share their constants.
  static Result<Program> load(std::shared_ptr<const ProgramFile> file,
                              const LoadOptions& options = {});

  /// What the program says of itself; an empty one where it stands for none.
  const ProgramDescription& description() const noexcept;
  /// The names of the networks in the file that it was loaded from, in their order; none where that
  /// holds one without a name. Its own is description().part.
  const std::vector<std::string>& parts() const noexcept;
  /// The device that it is loaded on; null where it stands for none.
  const std::shared_ptr<device::Device>& device() const noexcept;
  /// How the constants lie on the device, after the first executable was prepared.
  device::Placement placement() const noexcept;
  /// Weights and code of all prepared executables, activations of live contexts, buffers of the
  /// library. What programs share counts for each of them with its part, as the kernel's
  /// proportional set size does: the sum over programs is what lies in memory.
  device::MemoryFigures memory() const;
  /// Which of the device's engines computes it by now, and why it is not the device's own. It may
  /// change while the program runs: see LoadOptions::time_engines. Empty texts where nothing is
  /// prepared yet.
  device::EngineChoice engine() const;
  /// Waits until a comparison of engines that is under way has ended; for tests and tools that want
  /// to say which engine a program uses.
  void wait_engines() const;
  /// Waits until the static forms that are due are made or given up; for tests and tools.
  void wait_forms() const;
  /// What each prepared form of the program costs; the sum is memory() without what contexts
  /// allocated. Of a program with a batch range the first form serves all sizes, and each other one
  /// a single size; likewise the shapes of other open dimensions (LoadOptions::static_forms).
  std::vector<ProgramForm> forms() const;
  /// Makes the form of one size of the program's batch range now, and waits for it. Without this
  /// call a thread of the program makes it once the size has occurred, while the form for all
  /// sizes goes on serving. kUnsupported (no range, or a device that prepares each
  /// size at its first use anyway), kOutOfRange (the size), kOutOfMemory (replicate_limit leaves no
  /// room, or there are 16 forms), or what the device refuses it with.
  Status make_batch_form(std::uint32_t batch) const;
  /// LoadOptions::host_operators, or the table made in its place; null where it stands for none.
  std::shared_ptr<device::HostOperatorTable> host_operators() const;
  /// What it computes, in order, as its device was given it. kUnsupported for images that only
  /// their device can read.
  Result<std::vector<NetworkNode>> nodes() const;
  /// What one run computes, told from the network before it: multiply-accumulates, and 8 for each
  /// element that other operators read or make. `shapes`: of the inputs, by position; empty: as
  /// declared. Nothing where the network does not say it (loops, sizes that come with a run,
  /// operators without a known cost, images that only their device can read), where dimensions are
  /// open and no `shapes` are given, and where these do not fit. Where dimensions are open all
  /// nodes are looked at.
  std::optional<std::uint64_t> work(std::span<const Shape> shapes = {}) const;
  /// True when the program came from a pre-compiled form (file or cache), or began on an engine
  /// that has none and of which the file or the cache says that it is the faster.
  bool precompiled() const noexcept;
  /// The constants as the device was given them; empty for images that only it can read. Valid as
  /// long as the program.
  ByteSpan constants() const noexcept;
  /// A context of its own, for one caller at a time; weights are shared with the others.
  Result<Context> new_context(const ContextOptions& options = {}) const;

 private:
  friend class Context;
  friend class Activation;
  template <class F>
  static Result<Program> load_by(const LoadOptions& options, const F& load);
  std::shared_ptr<ProgramState> state_;
};

/// What `corelane compile` does: import, optionally pre-compile on `device`, attach foreign images.
struct CompileOptions {
  ImportOptions import;
  bool precompile = false;
  std::string device;  ///< For precompile.
  /// With precompile: times the device's engines against each other, on one core and made inputs,
  /// where it has several, what it prepares first (the network, or its first shape set) has fixed
  /// dimensions and nothing else decides. The file keeps the result, and programs on a device of
  /// the same engines and instruction set begin with it. Off too where CORELANE_TIME_ENGINES is 0.
  bool time_engines = true;
  /// Leaves the constants out: the program is loaded with LoadOptions::weights_of. Not together
  /// with precompile (kInvalidArgument).
  bool remove_weights = false;
  /// Device kind -> file handed over unparsed.
  std::vector<std::pair<std::string, std::filesystem::path>> attach;
};
/// The bytes of a program file from an ONNX file.
CORELANE_API Result<ByteVector> compile_file(const std::filesystem::path& onnx,
                                             const CompileOptions& options = {});
/// The same from bytes in memory.
CORELANE_API Result<ByteVector> compile_bytes(ByteSpan onnx, const CompileOptions& options = {});

/// One network of a file of several.
struct PartSource {
  std::filesystem::path onnx;
  std::string name;  ///< Of the part; empty: the file's name without its ending.
  /// Instead of CompileOptions::import.
  std::optional<ImportOptions> import;
};
/// The bytes of a program file that holds these networks, each with a name, and their equal
/// constants once. LoadOptions::part says which is loaded; the first is the one that is loaded
/// without. kInvalidArgument where there is none, where two have one name, and for `attach` with
/// more than one. Fails like compile_file(), with the part in front.
CORELANE_API Result<ByteVector> compile_parts(std::span<const PartSource> parts,
                                              const CompileOptions& options = {});

}  // namespace corelane
