/// What rknn_query answers from.
///
/// Guarded by a lock of its own, which is held for a few lines: a query works while another thread
/// runs the context, and inside a custom operator of that run.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "adapters/rknn/api/rknn_edge.h"
#include "base/sync.h"
#include "corelane/device/completion.h"
#include "corelane/runtime/program.h"

namespace corelane::rknn {

struct AttrQuery;
struct IoTensor;
struct ModelFacts;

/// All functions from any thread.
class Queries {
 public:
  explicit Queries(const ModelFacts& facts) noexcept : facts_(facts) {}

  /// rknn_query of command `cmd`. Short structs of old headers are filled as far as they go.
  Outcome query(std::uint32_t cmd, void* info, std::uint32_t size);

  /// What the context computes now. The program must have been set.
  Program program() const;
  void set_program(Program program);
  /// The shapes now. The first ones are those that *_ATTR reports for good.
  void set_shapes(std::vector<Shape> inputs, std::vector<Shape> outputs);
  /// Takes the record of the last run and, if that succeeded, the shape of each output with open
  /// dimensions (by index) and the times of its layers, if they were measured.
  void set_run(const device::JobRecord& record,
               const std::vector<std::pair<std::size_t, Shape>>& outputs,
               std::optional<std::vector<device::LayerTime>> layers);

  /// An input or output with its shape now.
  IoTensor input(std::size_t index) const;
  IoTensor output(std::size_t index) const;
  /// Bytes that memory of the caller must have, for activations (`internal`) or weights; whole
  /// pages. Fails as Program::new_context() does.
  Result<std::size_t> outside_size(bool internal);
  /// The text of RKNN_QUERY_PERF_DETAIL.
  std::string layer_table() const;

 private:
  Outcome query_attr(const AttrQuery& query, void* info, std::uint32_t size);
  Outcome query_mem_size(void* info, std::uint32_t size);
  Outcome query_memory_info(void* info, std::uint32_t size);
  Outcome query_range(void* info, std::uint32_t size);
  Outcome query_text(std::uint32_t cmd, void* info, std::uint32_t size);
  std::vector<device::LayerTime> untimed_layers() const;
  Outcome query_perf(std::uint32_t cmd, void* info, std::uint32_t size);

  const ModelFacts& facts_;
  std::atomic<bool> probed_{false};  ///< Whether a static model has shapes to choose from.
  mutable Mutex mutex_{LockRank::kLeaf};
  std::optional<Program> program_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Shape> first_inputs_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Shape> first_outputs_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Shape> input_shapes_ CORELANE_GUARDED_BY(mutex_);
  std::vector<Shape> output_shapes_ CORELANE_GUARDED_BY(mutex_);
  device::JobRecord last_record_ CORELANE_GUARDED_BY(mutex_);
  std::vector<device::LayerTime> layers_ CORELANE_GUARDED_BY(mutex_);
  /// The last texts of PERF_DETAIL: another thread may be reading one.
  std::deque<std::string> perf_texts_ CORELANE_GUARDED_BY(mutex_);
};

}  // namespace corelane::rknn
