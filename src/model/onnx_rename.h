/// Renaming of what nodes read.
#pragma once

#include <map>
#include <string>

#include "model/onnx_proto.h"

namespace corelane::onnx_import {

/// Old name -> new name.
using Renames = std::map<std::string, std::string>;

/// Renames the inputs of a node, and what its subgraphs read or give out.
inline void rename_reads(onnx::NodeProto& node, const Renames& renames) {
  for (auto& in : *node.mutable_input()) {
    if (const auto it = renames.find(in); it != renames.end()) in = it->second;
  }
  const auto below = [&](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) rename_reads(n, renames);
    for (auto& out : *g.mutable_output()) {
      if (const auto it = renames.find(out.name()); it != renames.end()) out.set_name(it->second);
    }
  };
  for (auto& a : *node.mutable_attribute()) {
    if (a.has_g()) below(*a.mutable_g());
    for (auto& g : *a.mutable_graphs()) below(g);
  }
}

}  // namespace corelane::onnx_import
