/// The rival's network of a real model, with the shapes that all sides are given.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <openvino/openvino.hpp>

#include "model_list.h"

namespace corelane::bench {

inline std::shared_ptr<ov::Model> read_static(ov::Core& core, const RealModel& model) {
  auto network = core.read_model(model.path.string());
  std::map<std::size_t, ov::PartialShape> shapes;
  for (std::size_t i = 0; i < model.shapes.size(); ++i) {
    ov::PartialShape s;
    for (const auto d : model.shapes[i].dims()) s.push_back(ov::Dimension(d));
    shapes[i] = s;
  }
  network->reshape(shapes);
  return network;
}

}  // namespace corelane::bench
