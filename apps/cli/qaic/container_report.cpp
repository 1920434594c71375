#include "cli/qaic/container_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/command.h"
#include "corelane/base/printable.h"

namespace corelane::cli {
namespace {

/// Bytes of the largest specialization; none where a dimension stays open.
std::optional<std::size_t> buffer_bytes(const ProgramDescription& d, const IoEntry& entry,
                                        std::size_t index, bool input) {
  const auto bytes = [&](const Shape& shape) -> std::optional<std::size_t> {
    if (!shape.is_static()) return std::nullopt;
    return dtype_bytes(entry.desc.dtype, shape.elements().value_or(0));
  };
  if (!entry.desc.value.empty()) return std::nullopt;
  if (!input || d.shape_sets.empty()) return bytes(entry.desc.shape);
  std::optional<std::size_t> most;
  for (const auto& set : d.shape_sets) {
    const auto one = bytes(set[index]);
    if (one) most = std::max(most.value_or(0), *one);
  }
  return most;
}

/// As the object runtime lists it: either tensor of a state may be left out.
bool partial_allowed(const ProgramDescription& d, const IoEntry& entry) {
  const std::string& name = entry.desc.name;
  return entry.partial_allowed || std::ranges::any_of(d.states, [&](const StateDecl& state) {
           return state.input == name || state.output == name;
         });
}

/// Why the object runtime refuses such an input or output, in its words; empty where it does not.
std::string refusal(const ProgramDescription& d, const IoEntry& entry, std::size_t index,
                    bool input) {
  // The same types as in qaic_mapping.cpp, which has names that only the adapter may use.
  static constexpr std::array kTypes{DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
                                     DType::kU8,  DType::kI32, DType::kI64,  DType::kBool};
  const std::string name = printable(entry.desc.name);
  if (!entry.desc.value.empty())
    return fmt::format("'{}' is a {}, for which the API has no buffer", name,
                       entry.desc.value.to_string());
  if (std::ranges::find(kTypes, entry.desc.dtype) == kTypes.end())
    return fmt::format("'{}' is of {}, for which the API has no number: add a Cast to the model",
                       name, dtype_name(entry.desc.dtype));
  if (input && !buffer_bytes(d, entry, index, input))
    return fmt::format("input '{}' has no fixed size: compile with --shape-set", name);
  return {};
}

/// The reason for the first refused input or output; empty: none is refused.
std::string refusal(const ProgramDescription& d) {
  for (const bool input : {true, false}) {
    const auto& entries = input ? d.inputs : d.outputs;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (std::string why = refusal(d, entries[i], i, input); !why.empty()) return why;
  }
  return {};
}

Json buffers_json(const ProgramDescription& d) {
  Json list = Json::array();
  for (const bool input : {true, false}) {
    const auto& entries = input ? d.inputs : d.outputs;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const IoEntry& entry = entries[i];
      Json j{{"index", list.size()},
             {"name", entry.desc.name},
             {"direction", input ? "input" : "output"},
             {"dtype", dtype_name(entry.desc.dtype)},
             {"shape", entry.desc.shape.dims()}};
      if (const auto bytes = buffer_bytes(d, entry, i, input)) j["bytes"] = *bytes;
      j["partial_allowed"] = partial_allowed(d, entry);
      list.push_back(std::move(j));
    }
  }
  return list;
}

std::string buffer_text(const Json& b) {
  return fmt::format("  buffer {:<3} {:<6} {}: {} {}{}{}\n", b["index"].get<std::size_t>(),
                     b["direction"].get<std::string>(), shown(b["name"]),
                     b["dtype"].get<std::string>(), b["shape"].dump(),
                     b.contains("bytes") ? fmt::format(", {} bytes", b["bytes"].get<std::size_t>())
                                         : ", no fixed size",
                     b.value("partial_allowed", false) ? ", partial allowed" : "");
}

Json specializations_json(const ProgramDescription& d) {
  Json sets = Json::array();
  for (const auto& set : d.shape_sets) {
    Json shapes = Json::array();
    for (const Shape& shape : set) shapes.push_back(shape.dims());
    sets.push_back(std::move(shapes));
  }
  return sets;
}

/// Its own segments, without the constants.
std::uint64_t own_bytes(const ProgramFile& file, std::size_t part) {
  std::uint64_t sum = 0;
  for (const SegmentInfo& s : file.segments())
    if (s.part == part && s.kind != SegmentKind::kConstants) sum += s.size;
  return sum;
}

Json program_json(const ProgramFile& file, std::size_t index, std::string& text) {
  const ProgramDescription& d = file.description(index);
  Json j{{"index", index},
         {"name", d.part.empty() ? d.name : d.part},
         {"cores", std::max<std::uint32_t>(d.cores, 1)},
         {"batch", d.batch},
         {"bytes", own_bytes(file, index)},
         {"constant_bytes", d.constant_bytes},
         {"buffers", buffers_json(d)},
         {"specializations", specializations_json(d)},
         {"states", states_json(d)}};
  text += fmt::format("Program {} '{}': {} core{}, batch {}, {} of its own, constants {}\n", index,
                      shown(j["name"]), std::max<std::uint32_t>(d.cores, 1), d.cores > 1 ? "s" : "",
                      d.batch, human_bytes(own_bytes(file, index)), human_bytes(d.constant_bytes));
  for (const Json& b : j["buffers"]) text += buffer_text(b);
  for (std::size_t k = 0; k < j["specializations"].size(); ++k)
    text += fmt::format("  specialization {}: {}\n", k, j["specializations"][k].dump());
  for (const StateDecl& state : d.states) text += "  " + state_text(state);
  const std::string refused = refusal(d);
  if (refused.empty()) return j;
  text += fmt::format("  refused by the object runtime: {}\n", refused);
  j["refused"] = refused;
  return j;
}

}  // namespace

Json container_json(const ProgramFile& file, std::string& text) {
  Json out{{"programs", Json::array()}};
  std::uint32_t cores = 1;
  for (std::size_t i = 0; i < file.part_count(); ++i) {
    out["programs"].push_back(program_json(file, i, text));
    cores = std::max(cores, out["programs"].back()["cores"].get<std::uint32_t>());
  }
  std::uint64_t constants = 0;
  for (const SegmentInfo& s : file.segments())
    if (s.kind == SegmentKind::kConstants) constants += s.size;
  out["constant_bytes"] = constants;
  out["cores_needed"] = cores;
  text += fmt::format("Constants {}, each once for all programs\nCores needed: {}\n",
                      human_bytes(constants), cores);
  return out;
}

Json vendor_json(const VendorContainer& c, std::string& text) {
  Json segments = Json::array();
  text += fmt::format("Version {}.{}, compression {}, {} segments in {} bytes\n", c.major, c.minor,
                      c.compression, c.segments.size(), c.size);
  for (const VendorSegment& s : c.segments) {
    segments.push_back({{"name", s.name}, {"at", s.at}, {"bytes", s.size}});
    std::string more;
    if (s.split > 0) {
      segments.back()["static_bytes"] = s.split;
      more = fmt::format(", static {} bytes", s.split);
    }
    text += fmt::format("Segment {:<24} at {:>9}  {:>10}{}{}{}\n", printable(s.name), s.at,
                        human_bytes(s.size), more, s.meaning.empty() ? "" : "  ", s.meaning);
  }
  return {{"version", fmt::format("{}.{}", c.major, c.minor)},
          {"compression", c.compression},
          {"bytes", c.size},
          {"segments", segments}};
}

}  // namespace corelane::cli
