#include "adapters/qaic/program/qaic_placement.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "adapters/qaic/context/qaic_context.h"
#include "adapters/qaic/context/qaic_devices.h"
#include "adapters/qaic/qpc/qaic_qpc.h"
#include "corelane/device/device.h"
#include "corelane/program/description.h"
#include "corelane/runtime/chain_devices.h"

namespace corelane::qaic {
namespace {

/// "0:1:2", each number once.
Result<std::vector<QID>> parse_mapping(std::string_view text) {
  std::vector<QID> numbers;
  // Up to the end, so that a text that ends with ':' has an empty last number, which is refused.
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    QID number = 0;
    const auto [at, failed] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (failed != std::errc() || at != item.data() + item.size() || number < 0)
      return error(Code::kInvalidArgument,
                   "devMapping is \"{}\", where '{}' is not a number of a device; give one for "
                   "each part, such as \"0:1\"",
                   text, item);
    if (std::ranges::find(numbers, number) != numbers.end())
      return error(Code::kInvalidArgument,
                   "devMapping is \"{}\", with device {} twice; give each part a device of its "
                   "own, or leave devMapping null to run all parts on one device",
                   text, number);
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

Outcome place_parts(const ContextObject& context, const QpcObject& qpc, std::size_t program,
                    std::string_view mapping, Placement& placed) {
  const std::string& name = qpc.description(program).name;
  const std::size_t parts = qpc.parts_of(program);
  if (parts == 1)
    return Status(error(Code::kUnsupported,
                        "devMapping is \"{}\", but program '{}' was built for one device; leave it "
                        "null, or cut the network (corelane compile --cut)",
                        mapping, name));
  CORELANE_ASSIGN(placed.numbers, parse_mapping(mapping));
  if (placed.numbers.size() != parts)
    return Status(error(Code::kInvalidArgument,
                        "devMapping is \"{}\", with {} devices for the {} parts of program '{}'; "
                        "name one device for each part",
                        mapping, placed.numbers.size(), parts, name));
  for (const QID number : placed.numbers) {
    auto device = context.device(number);
    if (!device)
      return device_outcome(device.error().wrap(fmt::format("devMapping is \"{}\"", mapping)));
    placed.cores = std::min(placed.cores, (*device)->info().cores.size());
    placed.devices.push_back(*std::move(device));
  }
  placed.number = placed.numbers.front();
  CORELANE_ASSIGN(placed.device, chain_devices(placed.devices));
  return {};
}

}  // namespace

bool is_mapped(const QAicProgramProperties* properties) noexcept {
  return properties != nullptr && properties->devMapping != nullptr &&
         *properties->devMapping != '\0';
}

Outcome place(const ContextObject& context, const QpcObject& qpc, std::size_t program, QID device,
              const char* mapping, Placement& placed) {
  placed = {};
  placed.cores = device::CoreSet::kMaxCores;
  if (mapping != nullptr && *mapping != '\0')
    return place_parts(context, qpc, program, mapping, placed);
  auto found = context.device(device);
  if (!found) return device_outcome(found.error());
  placed.number = device;
  placed.numbers = {device};
  placed.device = *std::move(found);
  placed.devices = {placed.device};
  placed.cores = placed.device->info().cores.size();
  return {};
}

}  // namespace corelane::qaic
