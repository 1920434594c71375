#include "adapters/ggml/plugin/ggml_filter.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace corelane::ggml {
namespace {

std::int64_t number_in(const nlohmann::json& pair, const char* matrix, const char* side) {
  return pair.contains(matrix) ? pair.at(matrix).value(side, std::int64_t{0}) : 0;
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
    const nlohmann::json list = nlohmann::json::parse(text);
    for (const auto& pair : list.at("pairs")) {
      Row row;
      row.sizes[0] = number_in(pair, "src0", "row");
      row.sizes[1] = number_in(pair, "src0", "col");
      row.sizes[2] = number_in(pair, "src1", "row");
      row.sizes[3] = number_in(pair, "src1", "col");
      row.name = pair.value("name", "");
      filter.rows_.push_back(std::move(row));
    }
    return true;
  } catch (const nlohmann::json::exception& failure) {
    why = std::string(R"(expected {"pairs": [...]}, sizes as numbers and names as texts ()") +
          failure.what() + ")";
    return false;
  }
}

bool Filter::read(const std::string& path, Filter& filter, std::string& why) {
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
  const std::int64_t sizes[4] = {node.src[0]->ne[1], node.src[0]->ne[0], node.src[1]->ne[1],
                                 node.src[1]->ne[0]};
  for (const Row& row : rows_) {
    bool same = names(row.name, node.name);
    for (int i = 0; i < 4; ++i) same = same && (row.sizes[i] == 0 || row.sizes[i] == sizes[i]);
    if (same) return true;
  }
  return false;
}

}  // namespace corelane::ggml
