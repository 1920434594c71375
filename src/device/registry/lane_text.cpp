#include "device/registry/lane_text.h"

#include <optional>
#include <string>

#include "base/text_parts.h"
#include "device/registry/device_wrappers.h"

namespace corelane::device {
namespace {

/// The value of `key`, which is taken out of `spec`; empty where there is none.
std::optional<std::string> take(DeviceSpec& spec, const char* key) {
  auto node = spec.options.extract(key);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

Status refuse(const DeviceSpec& spec, const char* key, const std::string& value,
              const char* allowed) {
  return error(Code::kInvalidArgument, "device '{}': '{}={}' is not {}; leave it out for no limit",
               spec.to_string(), key, value, allowed)
      .with(Detail::kGiven, value)
      .with(Detail::kAllowed, allowed);
}

}  // namespace

Status take_lane_options(DeviceSpec& spec, LaneOptions& options) {
  if (const auto memory = take(spec, "memory")) {
    options.memory_limit = parse_bytes(*memory).value_or(0);
    if (options.memory_limit == 0)
      return refuse(spec, "memory", *memory,
                    "a number of bytes from 1, such as 65536, 512k, 64M or 2G");
  }
  if (const auto depth = take(spec, "depth")) {
    options.depth_limit = parse_number<std::size_t>(*depth).value_or(0);
    if (options.depth_limit == 0)
      return refuse(spec, "depth", *depth, "a whole number of jobs from 1");
  }
  if (const auto lease = take(spec, "lease")) {
    if (*lease != "0" && *lease != "1")
      return error(Code::kInvalidArgument, "device '{}': 'lease={}' is not 0 or 1",
                   spec.to_string(), *lease)
          .with(Detail::kGiven, *lease)
          .with(Detail::kAllowed, "0 or 1");
    options.lease = *lease == "1";
  }
  return {};
}

}  // namespace corelane::device
