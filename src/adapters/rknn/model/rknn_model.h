/// The context of a model: what rknn_init makes. Its functions are those of its parts:
///
/// - Queries answers rknn_query, under a lock of its own;
/// - Runs owns the frames and what the context's lock orders (rknn_context_lock.h);
/// - Tensors moves data in and out, and sets shapes and memory.
///
/// Opening, duplicating and destroying, weights from outside and custom operators are here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "adapters/rknn/model/rknn_run.h"
#include "adapters/rknn/model/rknn_tensors.h"
#include "corelane/runtime/program.h"
#include "rknn_custom_op.h"

namespace corelane::rknn {

class CustomOps;

/// All functions from any thread.
class ModelContext final : public Handle {
 public:
  static constexpr HandleKind kKind = HandleKind::kModel;

  /// rknn_init: `model` is a path when `size` is 0. `weights_of` may be null. `made` is the context
  /// where it succeeds.
  static Outcome open(const void* model, std::uint32_t size, std::uint32_t flags,
                      const rknn_init_extend* extend, const ModelContext* weights_of,
                      std::shared_ptr<ModelContext>& made);
  /// rknn_dup_context.
  Outcome duplicate(std::shared_ptr<ModelContext>& made);
  /// Gives the context a handle. Called once, before anything else.
  static rknn_context publish(std::shared_ptr<ModelContext> context);
  /// Waits for what is running. Called by rknn_destroy once the handle is gone.
  void close();

  const ProgramDescription& description() const noexcept { return *facts_.description; }
  Queries& queries() noexcept { return queries_; }
  Runs& runs() noexcept { return runs_; }
  Tensors& tensors() noexcept { return tensors_; }

  // rknn_register.cpp
  Outcome register_custom_ops(const rknn_custom_op* ops, std::uint32_t count);

  // rknn_outside.cpp: memory of the caller for weights and activations.
  Outcome set_weight_mem(const rknn_tensor_mem* mem);
  Outcome set_internal_mem(const rknn_tensor_mem* mem);

 private:
  ModelContext() : Handle(kKind) {}

  Status open_model(const void* model, std::uint32_t size, const rknn_init_extend* extend);
  Status load(ByteSpan bytes, std::shared_ptr<const void> keep_alive);
  Status load_file(const std::string& path);
  /// Makes the frames of `program`, and reports its shapes. All or nothing.
  Status adopt(Program program) CORELANE_REQUIRES(runs_.mutex());
  LoadOptions load_options() const;

  // rknn_register.cpp
  Status join_custom_ops();
  Status add_custom_ops(const rknn_custom_op* ops, std::uint32_t count);

  ModelFacts facts_;
  Queries queries_{facts_};
  Runs runs_{facts_, queries_};
  Tensors tensors_{facts_, queries_, runs_};
  std::shared_ptr<const Program> weights_of_;  ///< By RKNN_FLAG_SHARE_WEIGHT_MEM.
  std::shared_ptr<CustomOps> custom_ops_;      ///< Shared by the contexts that share the weights.
  std::shared_ptr<const void> custom_share_;   ///< This context's part of them, until close().
};

}  // namespace corelane::rknn
