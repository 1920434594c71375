#include "adapters/qaic/program/qaic_slicing_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "corelane/base/printable.h"

namespace corelane::qaic {
namespace {

using nlohmann::json;

constexpr std::size_t kMostQuoted = 200;

template <class... Args>
Failure wrong(fmt::format_string<Args...> form, Args&&... args) {
  return error(Code::kMalformed, "the slicing specification: {}",
               fmt::format(form, std::forward<Args>(args)...));
}

/// How deeply arrays and objects lie in each other, before anything is made of them.
std::size_t depth_of(std::string_view text) {
  std::size_t level = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{'))
      deepest = std::max(deepest, ++level);
    else if (!quoted && (c == ']' || c == '}') && level > 0)
      --level;
  }
  return deepest;
}

/// An object with exactly these keys.
Status check_keys(const json& value, std::initializer_list<std::string_view> keys,
                  const std::string& where) {
  std::string all;
  for (const std::string_view key : keys) all += fmt::format("{}{}", all.empty() ? "" : ", ", key);
  if (!value.is_object()) return wrong("{} is not an object with {}", where, all);
  for (const std::string_view key : keys)
    if (!value.contains(key)) return wrong("{} has no '{}'; it takes {}", where, key, all);
  for (const auto& item : value.items())
    if (std::ranges::find(keys, item.key()) == keys.end())
      return wrong("{} has '{}', which is not known; it takes {}", where, printable(item.key()),
                   all);
  return {};
}

Result<std::int64_t> read_number(const json& value, std::int64_t least, const std::string& where) {
  // An unsigned one beyond the range reads as one below 0.
  const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= least;
  if (fits) return value.get<std::int64_t>();
  return wrong("{} is not a whole number of at least {}", where, least);
}

Result<SliceStart> read_start(const json& value, const std::string& where) {
  CORELANE_TRY(check_keys(value, {"start"}, where));
  const json& start = value["start"];
  SliceStart made;
  if (!start.is_string()) {
    CORELANE_ASSIGN(made.constant, read_number(start, 0, where + ".start (or a parameter)"));
    return made;
  }
  made.parameter = start.get<std::string>();
  if (made.parameter.empty() || made.parameter.size() > SlicingLimits::kParameter)
    return wrong("{}.start is a name of {} characters; 1 to {} are allowed", where,
                 made.parameter.size(), SlicingLimits::kParameter);
  return made;
}

Result<SliceRule> read_rule(const json& value, const std::string& where) {
  CORELANE_TRY(check_keys(value, {"Name", "ElemSize", "DimSpecs"}, where));
  SliceRule rule;
  if (!value["Name"].is_string()) return wrong("{}.Name is not a text", where);
  rule.name = value["Name"].get<std::string>();
  CORELANE_ASSIGN(const std::int64_t size, read_number(value["ElemSize"], 1, where + ".ElemSize"));
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  // Cut to 32 bits: no buffer has such elements, so that it is refused either way.
  rule.element_size = static_cast<std::uint32_t>(std::min(size, kMost));
  const json& dims = value["DimSpecs"];
  if (!dims.is_array() || dims.size() > SlicingLimits::kDims)
    return wrong("{}.DimSpecs is not a list of at most {} dimensions", where, SlicingLimits::kDims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    CORELANE_ASSIGN(SliceStart start,
                    read_start(dims[d], fmt::format("{}.DimSpecs[{}]", where, d)));
    rule.starts.push_back(std::move(start));
  }
  return rule;
}

}  // namespace

Result<std::vector<SliceRule>> read_slicing(std::string_view text) {
  if (text.size() > SlicingLimits::kBytes)
    return wrong("it has {} bytes; at most {} are allowed", text.size(), SlicingLimits::kBytes);
  if (const std::size_t depth = depth_of(text); depth > SlicingLimits::kDepth)
    return wrong("lists and objects lie {} deep; at most {} are allowed", depth,
                 SlicingLimits::kDepth);
  json whole;
  try {
    whole = json::parse(text);
  } catch (const json::exception& e) {
    // It quotes what it has read, however long that is.
    return wrong("it is not JSON: {}", printable(std::string(e.what()).substr(0, kMostQuoted)));
  }
  CORELANE_TRY(check_keys(whole, {"BufferSpecs"}, "it"));
  const json& list = whole["BufferSpecs"];
  if (!list.is_array() || list.empty() || list.size() > SlicingLimits::kRules)
    return wrong("BufferSpecs is not a list of 1 to {} entries", SlicingLimits::kRules);
  std::vector<SliceRule> rules;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CORELANE_ASSIGN(SliceRule rule, read_rule(list[i], fmt::format("BufferSpecs[{}]", i)));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace corelane::qaic
