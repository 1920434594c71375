/// The tensors of a model's context, as the API's calls set, read, bind and reshape them.
#pragma once

#include <cstdint>
#include <vector>

#include "adapters/rknn/api/rknn_edge.h"

namespace corelane {
class Shape;
}  // namespace corelane

namespace corelane::rknn {

struct ModelFacts;
class Queries;
class Runs;

/// All functions from any thread: each takes the context's lock.
class Tensors {
 public:
  Tensors(const ModelFacts& facts, Queries& queries, Runs& runs) noexcept
      : facts_(facts), queries_(queries), runs_(runs) {}

  /// rknn_inputs_set: copies data of the caller into the context's own input memory. Nothing is
  /// written before everything was checked.
  Outcome set_inputs(std::uint32_t count, const rknn_input* inputs);
  /// rknn_outputs_get and rknn_outputs_release.
  Outcome get_outputs(std::uint32_t count, rknn_output* outputs, rknn_output_extend* extend);
  Outcome release_outputs(std::uint32_t count, rknn_output* outputs);
  /// rknn_set_input_shapes: one attr for each input, in any order.
  Outcome set_input_shapes(std::uint32_t count, const rknn_tensor_attr* attrs);
  /// rknn_set_io_mem.
  Outcome set_io_mem(const rknn_tensor_mem* mem, const rknn_tensor_attr& attr);

 private:
  /// The shapes that `attrs` ask for, in the order of the inputs.
  Outcome shapes_of(std::uint32_t count, const rknn_tensor_attr* attrs,
                    std::vector<Shape>& shapes) const;

  const ModelFacts& facts_;
  const Queries& queries_;
  Runs& runs_;
};

}  // namespace corelane::rknn
