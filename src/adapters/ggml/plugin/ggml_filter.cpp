#include "adapters/ggml/plugin/ggml_filter.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace corelane::ggml {
namespace {

using nlohmann::json;

/// Throws where `object` is not an object, or has a key that is not in `known`.
void check_keys(const json& object, const char* what, std::initializer_list<const char*> known) {
  if (!object.is_object()) throw std::invalid_argument(std::string(what) + " is not an object");
  for (const auto& item : object.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      throw std::invalid_argument(std::string(what) + " has an unknown key '" + item.key() + "'");
}

/// Short: dump() of what holds others calls itself for each, however deep.
std::string shown(const json& value) {
  return value.is_structured() ? std::string("an ") + value.type_name()
                               : value.dump().substr(0, 40);
}

/// 0 where the side is left out.
std::int64_t size_of(const json& matrix, const char* name, const char* side) {
  if (!matrix.contains(side)) return 0;
  const json& size = matrix.at(side);
  if (size.is_number_unsigned() && size.get<std::uint64_t>() <= INT64_MAX)
    return size.get<std::int64_t>();
  throw std::invalid_argument(std::string(name) + "." + side + " is " + shown(size) +
                              ", and no whole number from 0 on");
}

void read_sizes(const json& pair, const char* name, std::int64_t* sizes) {
  if (!pair.contains(name)) return;
  const json& matrix = pair.at(name);
  check_keys(matrix, name, {"row", "col"});
  sizes[0] = size_of(matrix, name, "row");
  sizes[1] = size_of(matrix, name, "col");
}

/// `sizes`: rows and columns; 0 stands for any.
bool takes(const std::int64_t* sizes, const abi::Tensor& matrix) {
  return (sizes[0] == 0 || sizes[0] == matrix.ne[1]) && (sizes[1] == 0 || sizes[1] == matrix.ne[0]);
}

bool names(const std::string& name, const char* node) {
  return name.empty() || (std::strncmp(node, name.c_str(), name.size()) == 0 &&
                          (node[name.size()] == '\0' || node[name.size()] == '-'));
}

}  // namespace

bool Filter::parse(const std::string& text, Filter& filter, std::string& why) {
  try {
    filter.all_ = false;
    filter.rows_.clear();
    const json list = json::parse(text);
    check_keys(list, "the text", {"pairs"});
    if (!list.at("pairs").is_array()) throw std::invalid_argument("'pairs' is not a list");
    for (const auto& pair : list.at("pairs")) {
      check_keys(pair, "a pair", {"src0", "src1", "name"});
      Row row;
      read_sizes(pair, "src0", row.sizes);
      read_sizes(pair, "src1", row.sizes + 2);
      row.name = pair.value("name", "");
      filter.rows_.push_back(std::move(row));
    }
    return true;
  } catch (const std::exception& failure) {
    why = std::string(R"(expected {"pairs": [...]}, sizes as numbers and names as texts ()") +
          failure.what() + ")";
    return false;
  }
}

bool Filter::read(const std::string& path, Filter& filter, std::string& why) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 &&
      !S_ISREG(found.st_mode)) {  // A pipe would block the host.
    why = "GGML_RKNN_FILTER=" + path + " cannot be read (it is not a regular file)";
    return false;
  }
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    why = "GGML_RKNN_FILTER=" + path + " cannot be read";
    return false;
  }
  if (parse(text.str(), filter, why)) return true;
  why = "GGML_RKNN_FILTER=" + path + ": " + why;
  return false;
}

bool Filter::passes(const abi::Tensor& node) const {
  if (all_) return true;
  const abi::Tensor& a = *node.src[1];
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return takes(row.sizes, *node.src[0]) && takes(row.sizes + 2, a) && names(row.name, node.name);
  });
}

bool Filter::passes_weight(const abi::Tensor& weight) const {
  if (all_) return true;
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return takes(row.sizes, weight) && (row.sizes[3] == 0 || row.sizes[3] == weight.ne[0]);
  });
}

}  // namespace corelane::ggml
