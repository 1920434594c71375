/// The direct networks of one program: one, or, where inputs have open dimensions, one for each
/// list of shapes that has been run.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <openvino/core/model.hpp>
#include <span>
#include <vector>

#include "base/once_map.h"
#include "corelane/tensor/desc.h"
#include "drivers/virtual/direct/direct_network.h"

namespace corelane::drivers::virtual_npu {

/// The dimensions of all inputs, as a key.
using ShapeKey = std::vector<std::vector<std::int64_t>>;
ShapeKey dims_of(const std::vector<Shape>& shapes);

/// For ov::Model::reshape: the shapes of those of `inputs` that are open, found by their names.
std::map<ov::Output<ov::Node>, ov::PartialShape> wanted_shapes(const ov::Model& network,
                                                               std::span<const TensorDesc> inputs,
                                                               const std::vector<Shape>& shapes);

/// Any thread.
class DirectForms {
 public:
  /// Null where no shapes can give a direct network. `inputs` as the program declares them.
  static std::unique_ptr<DirectForms> make(std::shared_ptr<ov::Model> network,
                                           std::vector<TensorDesc> inputs);

  /// The network for these shapes of the inputs, all static; null: the engine runs them. The first
  /// call for a list of shapes takes about 0.1 ms, without a lock.
  std::shared_ptr<const DirectNetwork> find(const std::vector<Shape>& shapes);

 private:
  static constexpr std::size_t kMostForms = 256;

  DirectForms(std::shared_ptr<ov::Model> network, std::vector<TensorDesc> inputs)
      : network_(std::move(network)),
        inputs_(std::move(inputs)),
        made_(LockRank::kLeaf, kMostForms) {}
  std::shared_ptr<const DirectNetwork> make_for(const std::vector<Shape>& shapes) const;

  const std::shared_ptr<const ov::Model> network_;
  const std::vector<TensorDesc> inputs_;
  OnceMap<ShapeKey, std::shared_ptr<const DirectNetwork>> made_;
};

}  // namespace corelane::drivers::virtual_npu
