#include "corelane/runtime/program.h"

#include <algorithm>
#include <iterator>

#include "base/guard.h"
#include "base/leaked.h"
#include "base/trust/environment_switch.h"
#include "corelane/base/file.h"
#include "onnx/shape/onnx_estimate.h"
#include "runtime/context/context_state.h"
#include "runtime/program/program_load.h"
#include "runtime/program/program_state.h"
#include "runtime/program/shape_choice.h"

namespace corelane {
namespace {

/// After its engines were chosen. The forms are of the engine that the user names: the one that the
/// open form has ended up on may gain nothing from fixed shapes.
void begin_forms(ProgramState& state, const LoadOptions& options) {
  static constinit EnvironmentSwitch enabled{"CORELANE_STATIC_FORMS", true};
  if (options.static_forms && enabled.on()) state.executables->begin_shape_forms(options.engine);
}

}  // namespace

/// What the system or a library throws on the way, std::bad_alloc first, is a failure of the load.
template <class F>
Result<Program> Program::load_by(const LoadOptions& options, const F& load) {
  return no_throw("loading a program", [&]() -> Result<Program> {
    Program program;
    CORELANE_ASSIGN(program.state_, load());
    begin_forms(*program.state_, options);
    return program;
  });
}

Result<Program> Program::load(const std::filesystem::path& path, const LoadOptions& options) {
  return load_by(options, [&]() -> Result<std::shared_ptr<ProgramState>> {
    CORELANE_ASSIGN(auto mapped, MappedFile::open(path));
    // Shared with executables that go on reading the constants from it.
    const auto file = std::make_shared<const MappedFile>(std::move(mapped));
    return runtime::load_program({file->bytes(), file, path, file}, options);
  });
}

Result<Program> Program::load(std::shared_ptr<const ProgramFile> file, const LoadOptions& options) {
  return load_by(options, [&] { return runtime::load_program(std::move(file), options); });
}

Result<Program> Program::load(ByteSpan bytes, const LoadOptions& options,
                              std::shared_ptr<const void> keep_alive) {
  return load_by(options, [&] {
    return runtime::load_program({bytes, std::move(keep_alive), {}, {}}, options);
  });
}

namespace {

/// What a program that was never loaded shows.
const ProgramState& nothing() {
  static Leaked<const ProgramState> state;
  return *state;
}

}  // namespace

const ProgramDescription& Program::description() const noexcept {
  return state_ == nullptr ? nothing().description : state_->description;
}

const std::vector<std::string>& Program::parts() const noexcept {
  return state_ == nullptr ? nothing().parts : state_->parts;
}

const std::shared_ptr<device::Device>& Program::device() const noexcept {
  return state_ == nullptr ? nothing().device : state_->device;
}

device::Placement Program::placement() const noexcept {
  if (state_ == nullptr) return device::Placement::kOpaque;
  const auto first = state_->executables->first();
  return first.executable == nullptr ? device::Placement::kOpaque : first.executable->placement();
}

device::MemoryFigures Program::memory() const {
  device::MemoryFigures sum;
  if (state_ == nullptr) return sum;
  for (const auto& executable : state_->executables->all()) sum += executable->memory();
  // What contexts allocated beyond the device's own memory.
  sum.buffers += state_->context_bytes->load(std::memory_order_relaxed);
  return sum;
}

device::EngineChoice Program::engine() const {
  return state_ == nullptr ? device::EngineChoice() : state_->executables->engine_choice();
}

void Program::wait_engines() const {
  if (state_ == nullptr) return;
  if (runtime::EngineTrial* const trial = state_->executables->trial()) trial->wait_idle();
}

void Program::wait_forms() const {
  if (state_ == nullptr) return;
  if (runtime::StaticForms* const forms = state_->executables->forms()) forms->wait_idle();
}

std::vector<ProgramForm> Program::forms() const {
  std::vector<ProgramForm> forms;
  if (state_ == nullptr) return forms;
  const std::string own_engine = state_->device->info().engine;
  for (const auto& entry : state_->executables->entries()) {
    const device::EngineChoice choice = entry.executable->engine();
    forms.push_back({entry.shapes, entry.executable->placement(), entry.executable->memory(),
                     choice.engine.empty() ? own_engine : choice.engine,
                     entry.use == nullptr ? 0 : entry.use->served()});
  }
  return forms;
}

Status Program::make_batch_form(std::uint32_t batch) const {
  if (state_ == nullptr) return error(Code::kWrongState, "this program was never loaded");
  if (!state_->executables->has_batch_forms()) {
    return error(Code::kUnsupported,
                 "program '{}' has no form for all sizes of a batch beside which single ones could "
                 "be made; compile it with --batch-range, or load it with a batch_range",
                 state_->description.name);
  }
  const BatchRange& range = *state_->description.batch_range;
  if (!range.holds(batch)) {
    return error(Code::kOutOfRange, "batch {} of program '{}'; {} to {} is allowed", batch,
                 state_->description.name, range.low, range.high);
  }
  return state_->executables->forms()->make_now(runtime::batch_shapes(state_->description, batch));
}

std::shared_ptr<device::HostOperatorTable> Program::host_operators() const {
  return state_ == nullptr ? nullptr : state_->host_operators;
}

Result<std::vector<NetworkNode>> Program::nodes() const {
  if (state_ == nullptr) return error(Code::kWrongState, "this program was never loaded");
  const runtime::ImageSource& source = state_->executables->source();
  if (source.intact) CORELANE_TRY(source.intact());
  if (!source.stages.empty()) {
    std::vector<NetworkNode> all;
    for (const runtime::StageSource& stage : source.stages) {
      if (stage.image.intact) CORELANE_TRY(stage.image.intact());
      CORELANE_ASSIGN(auto own, network_nodes(stage.image.graph));
      std::ranges::move(own, std::back_inserter(all));
    }
    return all;
  }
  if (source.kind != "onnx")
    return error(Code::kUnsupported,
                 "program '{}' is an image of kind '{}', which only its device can read",
                 state_->description.name, source.kind);
  return network_nodes(source.graph);
}

std::optional<std::uint64_t> Program::work(std::span<const Shape> shapes) const {
  if (state_ == nullptr) return std::nullopt;
  const runtime::KnownWork& known = state_->work;
  if (shapes.empty()) return known.of_all ? known.steps : std::nullopt;
  if (!runtime::check_shapes(state_->description, shapes).ok()) return std::nullopt;
  if (std::ranges::equal(shapes, known.shapes, runtime::fits_in)) return known.steps;
  const runtime::ImageSource& source = state_->executables->source();
  if (source.kind != "onnx") return std::nullopt;
  const auto found = no_throw("telling the work of a run", [&]() -> Result<onnx::RunEstimate> {
    if (source.intact) CORELANE_TRY(source.intact());
    return onnx::estimate_run(source.graph, source.constants,
                              runtime::shapes_by_name(state_->description, shapes));
  });
  return found ? found->steps : std::nullopt;
}

bool Program::precompiled() const noexcept {
  return state_ != nullptr &&
         (state_->executables->from_precompiled() || state_->executables->began_elsewhere());
}

ByteSpan Program::constants() const noexcept {
  return state_ == nullptr ? ByteSpan() : state_->executables->source().constants;
}

Result<Context> Program::new_context(const ContextOptions& options) const {
  if (state_ == nullptr) return error(Code::kWrongState, "this program was never loaded");
  return no_throw("making a context", [&]() -> Result<Context> {
    Context context;
    CORELANE_ASSIGN(context.state_, ContextState::create(state_, nullptr, options));
    return context;
  });
}

}  // namespace corelane
