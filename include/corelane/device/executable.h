/// An image prepared for a device, and the tensors of one inference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/bytes.h"
#include "corelane/base/clock.h"
#include "corelane/base/status.h"
#include "corelane/device/core_set.h"
#include "corelane/device/figures.h"
#include "corelane/device/residence.h"
#include "corelane/tensor/desc.h"

namespace corelane::device {

class HostOperatorTable;

/// What a device prepares. Opaque to everything but the driver: `kind` names the driver-side
/// reader that takes it ("onnx": an ONNX model whose large initialisers are external data with the
/// location "corelane:constants", offset and length pointing into `constants`; "program": a whole
/// program file; "rknn": a vendor-compiled file, handed over unparsed).
struct Image {
  std::string kind;
  ByteSpan bytes;
  ByteSpan constants;
  /// A pre-compiled form of the same image; a driver ignores it when `precompiled_tag` does not
  /// name its own engine version and instruction set. The caller has checked its checksum.
  ByteSpan precompiled;
  std::string precompiled_tag;
  /// Keeps all the spans valid; held by the executable as long as it needs them.
  std::shared_ptr<const void> keep_alive;
  /// What the program declares, for devices that do not read the image themselves; may be empty.
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  /// For people, such as the program's name; may be empty.
  std::string name;
  /// The bytes stay as they are for as long as keep_alive lives: the device may read constants in
  /// place, and images at one place may share what is prepared of them.
  bool immutable = false;
  /// The network as it was given, where `bytes` is a form that was written for the device's own
  /// engine; empty: `bytes` is that. A device with several engines gives this one to the others.
  ByteSpan given;
  /// Why the engine that `bytes` was written for would compute this network wrongly, in one line
  /// that names the node; empty: no reason is known.
  std::string unfit;
  /// Fails where the bytes are not those that were given any more, such as those of a file that
  /// was cut. Called by the device before it reads them, in prepare() and later; empty: they do
  /// not change. Any thread.
  std::function<Status()> intact;
  /// The shapes of the outputs as they follow from the network's inputs, in the shapes that it is
  /// prepared with; nothing for one of which a dimension does not follow. It reads the network
  /// anew, some 3 ms for 1000 nodes; empty: nobody knows. Any thread, while keep_alive lives.
  std::function<std::vector<std::optional<Shape>>()> infer_outputs;
  /// What a run computes (Program::work()), open dimensions counted as sizes of everyday use;
  /// empty: not known.
  std::optional<std::uint64_t> steps;
};

struct PrepareOptions {
  /// One shape per input, in order; may have open dimensions. Empty: as declared in the image.
  std::vector<Shape> input_shapes;
  Precision precision = Precision::kF32;
  /// Lets the engine quantise activations of int8-weight models and the like. Off: ONNX arithmetic.
  bool fast_math = false;
  /// One of DeviceInfo::engines, or kSoonestEngine; empty: the device chooses. kUnsupported where
  /// the device does not have it, kUnsupportedModel where that engine does not take the network, or
  /// is known to compute it wrongly.
  std::string engine;
  /// Measure each layer; costs speed. Executable::layer_times is an error without it.
  bool profile_layers = false;
  /// Names of inner values to add as outputs after the declared ones; kNotFound when unknown.
  std::vector<std::string> exposed_values;
  /// Custom operators that the image declares, with their output descriptions.
  struct CustomOperator {
    std::string type;
    std::string domain;
  };
  std::vector<CustomOperator> custom_operators;
  std::shared_ptr<HostOperatorTable> host_operators;
  /// Each core gets constants of its own (Placement::kReplicated) while the copies beyond the first
  /// take at most this many bytes together, (cores - 1) x constants; larger programs share one.
  std::size_t replicate_limit = kReplicateLimit;
};

/// Memory of one tensor as bound or produced. `keep_alive` may hold its owner.
struct TensorRef {
  void* data = nullptr;
  std::size_t size = 0;  ///< Bytes.
  Shape shape;           ///< Static.
  std::shared_ptr<const void> keep_alive;
};

/// The tensors of one inference, resolved once and kept. In use by at most one job at a time: the
/// setters fail with kBusy while a job with it is not released. One caller at a time.
class CORELANE_API Bindings {
 public:
  virtual ~Bindings() = default;
  /// Memory the device reads, plain layout and the executable's dtype, not copied. An empty ref
  /// (null data) returns to an internal buffer. kOutOfRange (index), kShapeMismatch (not accepted
  /// by the declared shape), kInvalidArgument (size below the shape's bytes).
  virtual Status set_input(std::size_t index, const TensorRef& tensor) = 0;
  /// Memory the device writes. For an output with open dimensions the memory must hold the result;
  /// when it is smaller the job fails with kShapeMismatch naming both sizes and nothing is written
  /// outside. An empty ref returns to an internal buffer.
  virtual Status set_output(std::size_t index, const TensorRef& tensor) = 0;
  /// What is bound, or the internal buffer (allocated at the first call) of a static shape.
  virtual Result<TensorRef> input(std::size_t index) = 0;
  /// The result of the last successful job, with its actual shape; before one, what is bound.
  virtual Result<TensorRef> output(std::size_t index) = 0;
  /// Per-layer times of the last job; kUnsupported when not prepared with profile_layers.
  virtual Result<std::vector<LayerTime>> layer_times() const = 0;
};

/// An image ready to run. Immutable; any thread; shared by shared_ptr, and kept
/// alive by its bindings and jobs.
class CORELANE_API Executable {
 public:
  virtual ~Executable() = default;
  /// In the order of the image. The same objects at each call.
  virtual const std::vector<TensorDesc>& inputs() const noexcept = 0;
  /// Declared outputs, then the exposed values. The same objects at each call.
  virtual const std::vector<TensorDesc>& outputs() const noexcept = 0;
  /// Whether each core has constants of its own; kOpaque where the device does not report it.
  virtual Placement placement() const noexcept = 0;
  /// True when it was made from Image::precompiled (the tag fitted and the form was taken).
  virtual bool from_precompiled() const noexcept { return false; }
  /// The engine that computes it, where the device has several.
  virtual EngineChoice engine() const { return {}; }
  /// True, for good, once its device was lost after it was prepared: jobs fail with kDeviceLost and
  /// the image has to be prepared again. Costs no lock.
  virtual bool lost() const noexcept { return false; }
  /// Weights once, copies for other core sets when made, activations of live bindings. What
  /// executables share is divided among them.
  virtual MemoryFigures memory() const = 0;
  /// New tensors; weights are shared with all others of this executable. kOutOfMemory.
  virtual Result<std::shared_ptr<Bindings>> new_bindings() = 0;
  /// Holds cores for this executable until the residence goes, and prepares it for them. "Any N"
  /// takes cores on which few residences lie, the platform's choice all that can be had. An
  /// exclusive residence needs cores without another exclusive one and without a shared one of
  /// another executable; a shared one needs cores that no other executable has exclusively. Jobs of
  /// this executable run on cores that it has exclusively, which "any" prefers, and on those that
  /// nobody has; jobs of others that wait for its exclusive cores alone fail with kOutOfCores, and
  /// what runs there ends as usual. kOutOfCores says which cores are free; with the option lease,
  /// which processes have the others. kInvalidArgument (the core set), kOutOfMemory,
  /// kEngineFailed, kIo (the folder of leases).
  virtual Result<std::shared_ptr<Residence>> make_resident(const CoreSet& cores,
                                                           Residency residency) = 0;
  /// What export_precompiled() gives.
  struct Precompiled {
    ByteVector bytes;
    std::string tag;
  };
  /// A form that prepares faster, for Image::precompiled, and its tag; kUnsupported when there is
  /// none (custom operators, opaque images).
  virtual Result<Precompiled> export_precompiled() const = 0;
};

}  // namespace corelane::device
