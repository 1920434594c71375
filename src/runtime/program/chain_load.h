/// A program file whose network was cut into parts, on a device.
#pragma once

#include <memory>

#include "corelane/base/status.h"
#include "runtime/program/image_source.h"

namespace corelane {

class ProgramFile;
struct ProgramDescription;

namespace device {
class Device;
class Executable;
struct PrepareOptions;
}  // namespace device

namespace runtime {

/// The device that runs a chain, and what it is given.
struct ChainOnDevice {
  std::shared_ptr<device::Device> device;
  ImageSource source;
};

/// `file` is one of a chain. On a device of chain_devices() each part is for its device; on any
/// other one all parts are for it, and the device returned is a chain of it alone.
/// kInvalidArgument (not as many devices as parts), kForeignImage (a device that takes no
/// networks), and the codes of network_source().
Result<ChainOnDevice> chain_on(const std::shared_ptr<const ProgramFile>& file,
                               std::shared_ptr<device::Device> device, const LoadOptions& options);

/// The executable of a chain's parts, on the device of chain_on().
Result<std::shared_ptr<device::Executable>> prepare_parts(
    const std::shared_ptr<device::Device>& device, const ImageSource& source,
    const ProgramDescription& description, const device::PrepareOptions& options);

}  // namespace runtime
}  // namespace corelane
