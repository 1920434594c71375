/// The context of a model: what rknn_init makes.
///
/// Two locks. `order_` lets one function at a time work with the tensors and is held while a run
/// goes on; `state_` guards the few values that queries read, and is never held for long, so that a
/// query may come from a custom operator of the run in progress. Functions that need `order_` and
/// are called from inside such an operator fail on a context that is running instead of waiting for
/// themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "adapters/rknn/model/rknn_attr.h"
#include "adapters/rknn/checks/rknn_check.h"
#include "adapters/rknn/api/rknn_chip.h"
#include "adapters/rknn/api/rknn_edge.h"
#include "adapters/rknn/api/rknn_handle.h"
#include "adapters/rknn/memory/rknn_memory.h"
#include "corelane/device/fence.h"
#include "corelane/device/host_operator.h"
#include "corelane/runtime/program.h"
#include "rknn_custom_op.h"

namespace corelane::rknn {

class CustomOps;

/// Memory that rknn_set_io_mem bound, and how it is read or written.
struct Bound {
  std::shared_ptr<Memory> memory;
  Form form;
  Shape shape{};     ///< The tensor's, when it was bound.
  check::Call call;  ///< That bound it, in the checking mode.
};

/// A run in the background whose inputs are converted when a fence of the caller says so: the
/// runtime converts in the thread that submits.
class DeferredRun {
 public:
  DeferredRun(Context context, RunOptions options, const Clock& clock);
  /// Gives up waiting for the fences.
  ~DeferredRun();
  bool wait(TimePoint until) const { return over_.wait(until); }
  Status status() const { return over_.status(); }
  /// Gives up waiting for the fences and waits for the end. What was started and abandoned, if it
  /// was.
  std::optional<Inference> finish();

 private:
  Status run(Context& context, RunOptions options, TimePoint until);

  std::vector<std::shared_ptr<device::Fence>> in_;
  device::Fence over_;
  std::optional<Inference> abandoned_;  ///< Written before `over_` is signalled.
  std::thread thread_;
};

/// One set of tensors with at most one run in progress. A context has one, with ASYNC_MASK two that
/// take turns.
struct Frame {
  Context context;
  std::optional<Inference> flight;  ///< A run that nobody has waited for.
  std::uint64_t id = 0;             ///< Of its last run; 0: none.
  Status result;
  std::vector<std::shared_ptr<Memory>> checked;  ///< In use by its run, in the checking mode.
  std::vector<std::uint64_t> input_age;     ///< Which rknn_inputs_set each input's content is from.
  std::optional<Inference> abandoned{};     ///< A run that timed out and may hold bound memory yet.
  std::shared_ptr<DeferredRun> deferred{};  ///< Instead of `flight`: a thread of its own runs it.
};

class ModelContext final : public Handle {
 public:
  static Result<std::shared_ptr<ModelContext>> open(const void* model, std::uint32_t size,
                                                    std::uint32_t flags,
                                                    const rknn_init_extend* extend,
                                                    const ModelContext* weights_of);
  Result<std::shared_ptr<ModelContext>> duplicate();
  ~ModelContext() override;
  /// Waits for what is running. Called by rknn_destroy after the handle is gone.
  void close();

  // rknn_query.cpp: needs no order.
  Outcome query(std::uint32_t cmd, void* info, std::uint32_t size);

  // rknn_input.cpp, rknn_output.cpp, rknn_io_mem.cpp
  Outcome set_inputs(std::uint32_t count, const rknn_input* inputs);
  Outcome get_outputs(std::uint32_t count, rknn_output* outputs, rknn_output_extend* extend);
  Outcome release_outputs(std::uint32_t count, rknn_output* outputs);
  Outcome set_io_mem(const rknn_tensor_mem* mem, const rknn_tensor_attr& attr);

  // rknn_run.cpp
  Outcome run(rknn_run_extend* extend);
  Outcome wait(rknn_run_extend* extend);

  // rknn_shapes.cpp
  Outcome set_input_shapes(std::uint32_t count, const rknn_tensor_attr* attrs);

  // rknn_cores.cpp
  Outcome set_core_mask(rknn_core_mask mask);
  Outcome set_batch_cores(int cores);

  // rknn_register.cpp
  Outcome register_custom_ops(const rknn_custom_op* ops, std::uint32_t count);

  // rknn_outside.cpp: memory of the caller for weights and activations.
  Outcome set_weight_mem(const rknn_tensor_mem* mem);
  Outcome set_internal_mem(const rknn_tensor_mem* mem);

  const std::shared_ptr<device::Device>& device() const noexcept { return device_; }
  const ProgramDescription& description() const noexcept { return *description_; }
  const std::shared_ptr<device::HostOperatorTable>& operators() const noexcept {
    return operators_;
  }
  std::uint32_t flags() const noexcept { return flags_; }
  void set_number(rknn_context number) noexcept { number_ = number; }
  rknn_context number() const noexcept { return number_; }

  /// Not null while this thread is inside a callback of a custom operator, of whichever context.
  static thread_local const void* inside_operator;

 private:
  friend class Order;
  ModelContext() : Handle(HandleKind::kModel) {}

  // rknn_open.cpp
  Status load(ByteSpan bytes, std::shared_ptr<const void> keep_alive);
  Status load_file(const std::string& path);
  Status adopt(Program program);
  /// What the context computes now; takes `state_`.
  Program program() const;
  LoadOptions load_options() const;
  Result<std::vector<Frame>> make_frames(const Program& program,
                                         const ProgramDescription& description) const;
  bool binds_memory() const noexcept;
  bool binds_outputs() const noexcept;
  /// kWrongState with what is missing, while memory of the caller is.
  Status ready() const;

  // rknn_register.cpp
  Status join_custom_ops();
  Status add_custom_ops(const rknn_custom_op* ops, std::uint32_t count);

  IoTensor input_tensor(std::size_t index, const Shape& shape) const;
  IoTensor output_tensor(std::size_t index, const Shape& shape) const;
  /// By their shapes now; takes `state_`.
  IoTensor current_input(std::size_t index) const;
  IoTensor current_output(std::size_t index) const;
  void note_shapes();

  // rknn_query.cpp
  Outcome query_attr(std::uint32_t cmd, void* info, std::uint32_t size);
  Outcome query_mem_size(void* info, std::uint32_t size);
  Outcome query_memory_info(void* info, std::uint32_t size);
  Outcome query_range(void* info, std::uint32_t size);
  Outcome query_text(std::uint32_t cmd, void* info, std::uint32_t size);
  Outcome query_perf(std::uint32_t cmd, void* info, std::uint32_t size);
  std::string layer_table() const;  ///< Needs `state_`.

  // rknn_run.cpp: need the order.
  bool asynchronous() const noexcept { return (flags_ & RKNN_FLAG_ASYNC_MASK) != 0; }
  Frame& next_frame() noexcept { return frames_[asynchronous() ? (runs_ % frames_.size()) : 0]; }
  Status settle(Frame& frame, TimePoint until = kNever);
  Status settle_all();
  bool open(const Frame& frame) const noexcept { return frame.flight || frame.deferred != nullptr; }
  void finish(Frame& frame, const Status& status);
  void note_run(Frame& frame, const device::JobRecord& record);
  Status bring_inputs(Frame& frame);
  Status start(Frame& frame, RunOptions options, bool background);
  /// kWrongState when memory that is bound was the caller's and he destroyed it.
  Status check_bound() const;
  /// How a run ended that is in no frame any more.
  Status past_result(std::uint64_t id) const;
  RunOptions run_options(const rknn_run_extend* extend) const;

  // rknn_dump.cpp
  using Loader = std::function<Result<Program>(const LoadOptions&)>;
  Result<Program> load_program(const LoadOptions& options, const Loader& load) const;
  void tell_run(Frame& frame);
  void dump(Frame& frame);

  // rknn_check_model.cpp: in the checking mode.
  void check_attr(const IoTensor& io, const rknn_tensor_attr& attr) const;
  void check_binding(Bound& bound, const std::string& what) const;
  void check_before_run(Frame& frame);
  void check_after_run(Frame& frame);
  void check_close();

  // rknn_io_mem.cpp
  Result<IoTensor> resolve(const rknn_tensor_attr& attr) const;
  Status bind(const IoTensor& io, const Bound& bound);
  Status rebind_all(std::string_view function);

  // rknn_output.cpp
  Status copy_output(Frame& frame, rknn_output& output);
  Result<std::size_t> outside_size(bool internal);

  std::uint32_t flags_ = 0;
  rknn_context number_ = 0;
  std::shared_ptr<device::Device> device_;
  Chip chip_;
  std::optional<Program> program_;             ///< By `state_`; see program().
  std::shared_ptr<const Program> weights_of_;  ///< By RKNN_FLAG_SHARE_WEIGHT_MEM.
  std::shared_ptr<const ProgramDescription> description_;
  std::shared_ptr<device::HostOperatorTable> operators_ =
      std::make_shared<device::HostOperatorTable>();
  std::shared_ptr<CustomOps> custom_ops_;     ///< Shared by the contexts that share the weights.
  std::shared_ptr<const void> custom_share_;  ///< This context's part of them, until close().
  std::vector<Shape> first_inputs_, first_outputs_;  ///< At rknn_init: what *_ATTR tells.
  std::size_t file_bytes_ = 0;  ///< Of the program: what set_weight_mem must hold.

  // While weights come from outside: the program until rknn_set_weight_mem.
  std::shared_ptr<const ByteVector> pending_;
  std::shared_ptr<Memory> weight_memory_, internal_memory_;

  mutable std::mutex order_;
  mutable std::atomic<std::thread::id> holder_{};  ///< The thread that has `order_`.
  bool closed_ = false;                            ///< By `order_`.
  std::vector<Frame> frames_;
  std::uint64_t runs_ = 0;
  std::uint64_t last_run_ = 0;  ///< Frame id of the last run; ids begin with 1.
  std::deque<std::pair<std::uint64_t, Status>> failed_;  ///< The last runs that failed, by id.
  std::vector<std::uint64_t> input_age_;
  std::uint64_t age_ = 0;
  std::vector<std::optional<Bound>> bound_inputs_, bound_outputs_;
  device::CoreSet cores_;
  check::Call shapes_call_;              ///< The last that set shapes, in the checking mode.
  std::unordered_set<void*> given_out_;  ///< Buffers of rknn_outputs_get.

  mutable std::mutex state_;
  std::vector<Shape> input_shapes_, output_shapes_;
  device::JobRecord last_record_;
  std::vector<device::LayerTime> layers_;
  std::uint64_t internal_bytes_ = 0;
  std::deque<std::string> perf_texts_;  ///< The last ones: another thread may be reading one.
  bool closing_ = false;                ///< No run may begin to wait for a fence.
  std::vector<std::shared_ptr<device::Fence>> in_fences_;  ///< Of runs that may wait for them.
};

/// Holds a context's order for the length of one function.
class Order {
 public:
  explicit Order(const ModelContext& context);
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  bool ok() const noexcept { return refused_.code() == RKNN_SUCC; }
  /// Inside a custom operator while the context is running; or the context was destroyed while this
  /// waited.
  const Outcome& refused() const noexcept { return refused_; }

 private:
  const ModelContext& context_;
  std::unique_lock<std::mutex> lock_;
  Outcome refused_;
};

/// The live model context of a handle, or the outcome to return.
class Found {
 public:
  explicit Found(rknn_context handle);
  explicit operator bool() const noexcept { return context_ != nullptr; }
  ModelContext* operator->() const noexcept { return context_.get(); }
  const std::shared_ptr<ModelContext>& shared() const noexcept { return context_; }
  Outcome failure() const { return {RKNN_ERR_CTX_INVALID, status_}; }

 private:
  std::shared_ptr<ModelContext> context_;
  Status status_;
};

}  // namespace corelane::rknn
