/// Memory that rknn_set_io_mem bound: runs read and write it in place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "adapters/rknn/model/rknn_attr.h"

namespace corelane::rknn {

struct Frame;
struct ModelFacts;
class Queries;

/// The rows of bound memory after a change of shape.
enum class Pitch : std::uint8_t {
  kOwn,       ///< As the caller said.
  kReported,  ///< As INPUT_ATTR reports it.
  kWidth,     ///< Without padding.
};

/// The bound memory of one context. Ordered by the context's lock.
class IoMemory {
 public:
  IoMemory(const ModelFacts& facts, const Queries& queries) : facts_(facts), queries_(queries) {}

  /// Binds `memory` in all frames to the tensor that `attr` means, in the form that it says.
  Outcome set(std::vector<Frame>& frames, std::shared_ptr<Memory> memory,
              const rknn_tensor_attr& attr);
  /// Before the shapes change: outputs have memory of their own until rebind_all(). All stay bound
  /// where there is no memory for that.
  Status release_outputs(std::vector<Frame>& frames);
  /// After the shapes or the program have changed: memory that still fits stays bound. Other memory
  /// is let go, with a warning of `function`; check_usable() fails until the tensor has memory that
  /// fits, by set(), by shapes for which it fits, or by forget_input().
  Status rebind_all(std::vector<Frame>& frames, std::string_view function);
  /// The input has memory of its own again.
  void forget_input(std::size_t index) noexcept {
    if (input_bound(index)) inputs_[index].reset();
  }

  bool input_bound(std::size_t index) const noexcept {
    return index < inputs_.size() && inputs_[index].has_value();
  }
  bool binds_output() const noexcept;
  bool binds() const noexcept;
  /// kWrongState when memory that is bound was the caller's and rknn_destroy_mem ended it, or when
  /// it became too small.
  Status check_usable() const;
  Status check_outputs_usable() const { return check_usable(Side::kOutput); }
  /// How the memory of an input is read; nothing where none is bound.
  Result<std::optional<ViewPlan>> input_plan(std::size_t index) const;

  // rknn_check_model.cpp: while the checking mode is on.
  void check_before_run(Frame& frame);
  void check_close();
  /// The shapes were set by this thread's current call.
  void note_shapes_call() { shapes_call_ = edge::current_call(); }

 private:
  struct Bound {
    std::shared_ptr<Memory> memory;
    Form form;
    Pitch pitch = Pitch::kOwn;  ///< Of an input.
    std::string misfit{};       ///< Why it is not bound for the shapes of now; empty: it is.
    edge::CallSite call{};      ///< The call that bound it, in the checking mode.
  };
  using Bounds = std::vector<std::optional<Bound>>;

  Status check_usable(Side side) const;
  Result<IoTensor> resolve(const rknn_tensor_attr& attr) const;
  Status bind(std::vector<Frame>& frames, const IoTensor& io, const Bound& bound) const;
  Status rebind(std::vector<Frame>& frames, Side side, std::string_view function);
  void check_attr(const IoTensor& io, const rknn_tensor_attr& attr) const;
  void check_binding(Bound& bound, const std::string& what) const;

  const ModelFacts& facts_;
  const Queries& queries_;
  Bounds inputs_, outputs_;     ///< As long as the highest index that was bound asks.
  edge::CallSite shapes_call_;  ///< The last that set shapes, in the checking mode.
};

/// The frame's run is over: its memory may be touched, in the checking mode.
void check_after_run(Frame& frame);

}  // namespace corelane::rknn
