/// On which devices a program runs.
#pragma once

#include <memory>
#include <vector>

#include "adapters/qaic/api/qaic_edge.h"

namespace corelane::device {
class Device;
}

namespace corelane::qaic {

class ContextObject;
class QpcObject;

/// Where a program is.
struct Placement {
  QID number = 0;                          ///< Of the first device.
  std::shared_ptr<device::Device> device;  ///< Of that number, or the chain of several.
  std::vector<QID> numbers;                ///< All of them; more than one: part k is on the k-th.
  std::vector<std::shared_ptr<device::Device>> devices;  ///< Of these numbers.
  std::size_t cores = 0;                                 ///< Of the device that has the fewest.
};

/// The devices of `mapping` ("0:1"), one for each part of a program that was cut; null or empty:
/// the device of number `device`, where all parts run. Devices of the context alone. QS_UNSUPPORTED
/// (a mapping for a program that was not cut), QS_INVAL (no such text, another number of devices
/// than parts, one twice, different clocks, more than 64 cores), QS_NODEV. Any thread.
Outcome place(const ContextObject& context, const QpcObject& qpc, std::size_t program, QID device,
              const char* mapping, Placement& placed);

/// Whether a mapping is given. Any thread.
bool is_mapped(const QAicProgramProperties* properties) noexcept;

}  // namespace corelane::qaic
