/// What of a program a device is given: its network in the form for the device's engine, with
/// constants and pre-compiled forms, or an image that only the device can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

class Program;
class ProgramFile;
class ProgramWriter;
struct ImportedModel;
struct LoadOptions;
struct ProgramDescription;

namespace device {
struct DeviceInfo;
struct Image;
}  // namespace device

namespace runtime {

/// A pre-compiled form as a program file holds it: its segment tag is "<driver tag>#<variant>",
/// the variant naming the options and shapes it was made for.
struct PrecompiledForm {
  std::string tag;
  ByteSpan bytes;
};

struct StageSource;

/// What executables are prepared from.
struct ImageSource {
  std::string kind;
  ByteSpan graph;  ///< Of kind "onnx": as the device's engine takes it.
  ByteSpan constants;
  std::vector<PrecompiledForm> precompiled;
  /// The owners of all these bytes.
  std::vector<std::shared_ptr<const void>> owners;
  /// False: the inputs and outputs are not passed on to the device, which has reported them.
  bool declares = true;
  /// As device::Image::immutable.
  bool immutable = false;
  ByteSpan given;                      ///< As device::Image::given.
  std::string unfit;                   ///< As device::Image::unfit.
  std::optional<std::uint64_t> steps;  ///< As device::Image::steps.
  std::function<Status()> intact;      ///< As device::Image::intact.
  /// The parts of an image of kind kChainImage.
  std::vector<StageSource> stages;
};

/// One part of a chain.
struct StageSource {
  std::string name;
  ImageSource image;
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

/// The network of one part of a program file for a device, with the pre-compiled forms it carries.
/// It is lowered here, and judged, where the device's engine needs that and the file has no form of
/// the current revision. Constants that were left out come from `options.weights_of`: kWrongState
/// without it, kMalformed when they are others. Codes of lower_onnx().
Result<ImageSource> network_source(std::shared_ptr<const ProgramFile> file, std::size_t part,
                                   const LoadOptions& options, const device::DeviceInfo& info);

/// What a device gets of a source, without its stages.
device::Image image_of(const ImageSource& source);
/// The same, with what the program declares.
device::Image image_of(const ImageSource& source, const ProgramDescription& description);

/// The network of a model that was just imported.
ImageSource network_source(std::shared_ptr<const ImportedModel> model,
                           const device::DeviceInfo& info);

/// A file of one part alone, with the constants that it was compiled without, for devices that open
/// files themselves. `file` itself where it has one network and nothing was left out.
Result<std::shared_ptr<const ProgramFile>> whole_file(std::shared_ptr<const ProgramFile> file,
                                                      std::size_t part, const LoadOptions& options);

/// The constants of a file, their CRC unchecked: that is left to the reader of the whole file.
ByteSpan unchecked_constants(const ProgramFile& file);

/// What add_network() adds beside the network.
enum class Weights : std::uint8_t {
  kIncluded,    ///< The model's constants.
  kRemoved,     ///< A tag that says which they were.
  kOfFirstPart  ///< Nothing: they are in the file already.
};
/// Adds the constants of a model, which is borrowed until finish().
void add_constants(ProgramWriter& writer, const ImportedModel& model, Weights weights);
/// Adds the network in all its forms. The model is borrowed until finish().
void add_network(ProgramWriter& writer, const ImportedModel& model,
                 Weights weights = Weights::kIncluded);

/// The tag of a constants segment that was left out of a program.
std::string removed_weights_tag(ByteSpan constants);

}  // namespace runtime
}  // namespace corelane
