#include "runtime/program/executable_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/process/heap.h"
#include "corelane/base/log.h"
#include "corelane/device/device.h"
#include "corelane/device/soonest_engine.h"
#include "onnx/shape/onnx_output_shapes.h"
#include "runtime/program/chain_load.h"
#include "runtime/program/shape_choice.h"

namespace corelane::runtime {
namespace {

/// The most static executables kept for shapes that no closed list bounds; contexts keep their own
/// alive.
constexpr std::size_t kKeptExecutables = 32;
/// A further static form must take at most this part of the open form's time: each holds the
/// constants again, in memory and, in turns, in the caches, which comparing two does not show.
constexpr double kWorthAnother = 0.9;

/// False for failures that other shapes would not change.
bool blames_network(Code code) {
  switch (code) {
    case Code::kWrongState:
    case Code::kDeviceLost:
    case Code::kDeviceReset:
    case Code::kOutOfMemory:
    case Code::kOutOfCores:
    case Code::kBusy:
    case Code::kIo:
    case Code::kTimeout:
    case Code::kCancelled:
      return false;
    default:
      return true;
  }
}

/// A form of `size` bytes has no room beside the copies there are.
Failure no_room(std::size_t size, std::size_t budget) {
  return error(Code::kOutOfMemory,
               "its {} bytes, after those that copies take already, go beyond replicate_limit ({} "
               "bytes); raise that for more forms",
               size, budget);
}

std::vector<Shape> shapes_of(const device::Executable& executable) {
  std::vector<Shape> shapes;
  for (const TensorDesc& input : executable.inputs()) shapes.push_back(input.shape);
  return shapes;
}

/// Where a static form describes the program otherwise, users would see the change.
bool takes_place_of(const device::Executable& open, const device::Executable& form) {
  const auto fits = [](const TensorDesc& x, const TensorDesc& y) {
    return x.dtype == y.dtype && (x.shape == y.shape || x.shape.accepts(y.shape));
  };
  return std::ranges::equal(open.inputs(), form.inputs(), fits) &&
         std::ranges::equal(open.outputs(), form.outputs(), fits);
}

bool usable(const ExecutableSet::Entry& entry) {
  return entry.executable != nullptr && !entry.executable->lost();
}

/// Contexts that use it.
std::size_t contexts_of(const ExecutableSet::Entry& entry) {
  return static_cast<std::size_t>(std::max(1L, entry.users.use_count())) - 1;
}

/// Name of the first open dimension, or "INPUT[AXIS]" where it has none: a key of the option dims.
std::string open_dimension(const ProgramDescription& description) {
  for (const IoEntry& input : description.inputs) {
    const std::vector<std::string>& names = input.desc.dim_names;
    for (std::size_t i = 0; i < input.desc.shape.rank(); ++i) {
      if (input.desc.shape[i] != Shape::kOpen) continue;
      return i < names.size() && !names[i].empty() ? names[i]
                                                   : fmt::format("{}[{}]", input.desc.name, i);
    }
  }
  return {};
}

/// Strings, sequences, maps, optionals, or tensors without a rank: their shapes say nothing, and
/// one engine alone takes them.
bool holds_values(const std::vector<IoEntry>& list) {
  return std::ranges::any_of(
      list, [](const IoEntry& io) { return !io.desc.value.empty() || io.desc.any_rank; });
}

/// Image::infer_outputs, of the network as it was given.
std::function<std::vector<std::optional<Shape>>()> inferring(const ImageSource& source,
                                                             std::map<std::string, Shape> inputs) {
  const ByteSpan graph = source.given.empty() ? source.graph : source.given;
  return [graph, constants = source.constants, inputs = std::move(inputs)] {
    auto shapes = onnx::shapes_from_inputs(graph, constants, inputs);
    return shapes ? std::move(*shapes) : std::vector<std::optional<Shape>>();
  };
}

/// "f32", "f16+fast", ...: the part of a precompiled form's tag that names the options, and the
/// shapes "[1, 3, 224, 224][?, 4]" it was made for (empty shapes: those of the image).
std::string precompiled_variant(const device::PrepareOptions& options) {
  std::string text(device::precision_name(options.precision));
  if (options.fast_math) text += "+fast";
  if (options.profile_layers) text += "+profile";
  for (const std::string& value : options.exposed_values) text += "+" + value;
  return text + shapes_text(options.input_shapes);
}

}  // namespace

ExecutableSet::ExecutableSet(std::shared_ptr<device::Device> device, ImageSource source,
                             device::PrepareOptions base, const ProgramDescription& description)
    : device_(std::move(device)),
      source_(std::move(source)),
      base_(std::move(base)),
      description_(description) {}

bool ExecutableSet::is_free_to_choose() const {
  return device_->info().engines.size() > 1 && base_.engine.empty() &&
         base_.precision == device::Precision::kF32 && !base_.fast_math && !base_.profile_layers &&
         base_.custom_operators.empty() && !description_.batch_range && source_.unfit.empty() &&
         source_.stages.empty();
}

void ExecutableSet::let_engines_change(std::optional<EngineVerdict> verdict) {
  if (!is_free_to_choose()) return;
  engines_change_ = true;
  began_elsewhere_ = verdict && verdict->engine != device_->info().engines.front();
  const MutexLock lock(mutex_);
  verdict_ = std::move(verdict);
}

Status ExecutableSet::prepare_first() {
  if (!description_.shape_sets.empty()) return add(description_.shape_sets.front());
  const std::vector<Shape> declared = declared_shapes(description_);
  if (all_static(declared)) return add(declared);
  if (!device_->info().capabilities.dynamic_shapes) return {};
  CORELANE_TRY(prepare_dynamic(declared));
  begin_forms();
  return {};
}

Status ExecutableSet::add(const std::vector<Shape>& shapes) {
  CORELANE_ASSIGN(auto executable, prepare(shapes));
  remember(shapes, std::move(executable));
  return {};
}

Status ExecutableSet::prepare_dynamic(const std::vector<Shape>& declared) {
  const bool flat = holds_values(description_.inputs);
  // The length of a flat form cannot be fixed: each value has its own.
  const auto frozen = flat ? std::nullopt : freeze_batch(declared);
  // A form made with the batch fixed says that open dimensions were refused once already.
  if (frozen && form_for(declared) == nullptr && form_for(*frozen) != nullptr && add(*frozen).ok())
    return {};
  Status reason = add(declared);
  if (reason.ok() || flat || !blames_network(reason.code())) return reason;
  // Nor where an operator is missing.
  if (!reason.detail(Detail::kOperator).empty()) return reason;
  if (frozen) {
    const Status again = add(*frozen);
    if (again.ok()) {
      log::info("runtime",
                "program '{}': the device refused open dimensions, prepared with {} instead ({})",
                description_.name, shapes_text(*frozen), reason.message());
      return {};
    }
    // The same failure without an open dimension is of another kind.
    if (all_static(*frozen) && again.message() == reason.message()) return reason;
  }
  const std::string dimension = open_dimension(description_);
  return reason
      .wrap(fmt::format(
          "program '{}' cannot be prepared with open dimensions ({}); fix them when it is "
          "compiled, with the dims or input_shapes options (compile --dim {}=SIZE, --shape "
          "INPUT=SIZES)",
          description_.name, allowed_shapes(description_), dimension))
      .with(Detail::kDimension, dimension);
}

/// The right to prepare some shapes, held by one thread at a time.
class ExecutableSet::Preparation {
 public:
  /// Waits for another thread's preparation of the same shapes. `found` is set where it came to an
  /// executable; nothing is held then.
  Preparation(ExecutableSet& set, std::vector<Shape> shapes, Entry& found)
      : set_(set), shapes_(std::move(shapes)) {
    MutexLock lock(set_.mutex_);
    while (true) {
      found = set_.find(shapes_);
      if (usable(found)) return;
      if (std::ranges::find(set_.preparing_, shapes_) == set_.preparing_.end()) break;
      set_.prepared_.wait(lock.native());
    }
    set_.preparing_.push_back(shapes_);
    held_ = true;
  }
  /// Waiting threads go on whatever ended the preparation, an exception included.
  ~Preparation() {
    if (!held_) return;
    const MutexLock lock(set_.mutex_);
    std::erase(set_.preparing_, shapes_);
    set_.prepared_.notify_all();
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  const std::vector<Shape>& shapes() const noexcept { return shapes_; }

 private:
  ExecutableSet& set_;
  const std::vector<Shape> shapes_;
  bool held_ = false;
};

Result<ExecutableSet::Entry> ExecutableSet::for_shapes(std::span<const Shape> shapes) {
  Entry found;
  {
    const MutexLock lock(mutex_);
    found = find(shapes);
  }
  if (usable(found)) return found;
  // A lost one is prepared for the shapes that it had, which may have open dimensions.
  std::vector<Shape> wanted(shapes.begin(), shapes.end());
  if (found.executable != nullptr) wanted = found.shapes;
  // What serves all sizes comes back first, and the forms of single ones in their own time.
  if (forms_ != nullptr) wanted = declared_shapes(description_);
  const Preparation preparation(*this, std::move(wanted), found);
  if (usable(found)) return found;
  if (forms_ != nullptr) forms_->forget();
  // Without the lock: other shapes may be prepared at the same time.
  CORELANE_ASSIGN(auto executable, prepare(preparation.shapes()));
  return remember(preparation.shapes(), std::move(executable));
}

const PrecompiledForm* ExecutableSet::form_for(const std::vector<Shape>& shapes) const {
  device::PrepareOptions options = base_;
  options.input_shapes = shapes;
  const std::string ending = "#" + precompiled_variant(options);
  const PrecompiledForm* found = nullptr;
  for (const PrecompiledForm& form : source_.precompiled) {
    if (!form.tag.ends_with(ending)) continue;
    // Where several engines' forms are attached: the one that names this device's instruction set.
    if (found == nullptr || form.tag.find(device_->info().isa) != std::string::npos) found = &form;
  }
  return found;
}

std::string ExecutableSet::engine() const {
  const MutexLock lock(mutex_);
  if (verdict_) return verdict_->engine;
  return engines_change_ ? std::string(device::kSoonestEngine) : base_.engine;
}

device::EngineChoice ExecutableSet::engine_choice() const {
  const Entry used = first();
  if (used.executable == nullptr) return {};
  device::EngineChoice choice = used.executable->engine();
  if (choice.engine.empty()) choice.engine = device_->info().engine;
  const MutexLock lock(mutex_);
  // While engines are timed, another one may be in use than the one of the last verdict.
  if (verdict_ && (trial_ == nullptr || trial_->over())) choice.why = verdict_->reason();
  return choice;
}

/// All but what is done with the verdict.
EngineTrial::Parts ExecutableSet::trial_parts(const std::optional<EngineVerdict>& known) {
  const std::vector<std::string>& engines = device_->info().engines;
  const bool on_first =
      known ? known->engine == engines[0] : first().executable->engine().engine.empty();
  EngineTrial::Parts parts;
  parts.device = device_;
  parts.name = description_.name;
  parts.first_engine = engines[on_first ? 0 : 1];
  parts.other_engine = engines[on_first ? 1 : 0];
  parts.first = [this] { return first().executable; };
  parts.prepare_on = [this](const std::string& engine) {
    return prepare(first().shapes, base_.replicate_limit, engine);
  };
  return parts;
}

bool ExecutableSet::keep(const EngineVerdict& verdict) {
  const MutexLock lock(mutex_);
  const std::optional<EngineVerdict> before = std::exchange(verdict_, verdict);
  return !before || before->engine != verdict.engine || before->timed_on != verdict.timed_on;
}

bool ExecutableSet::can_time_engines() const {
  return first().executable != nullptr && !holds_values(description_.inputs) &&
         !holds_values(description_.outputs);
}

std::optional<EngineVerdict> ExecutableSet::compare_engines(TimedRun run) {
  std::optional<EngineVerdict> found;
  if (!is_free_to_choose() || !can_time_engines()) return found;
  EngineTrial::Parts parts = trial_parts({});
  parts.done = [&found](const EngineVerdict& verdict) { found = verdict; };
  EngineTrial trial(std::move(parts));
  trial.begin(std::move(run));
  trial.wait_idle();
  return found;
}

void ExecutableSet::time_engines(std::function<void(const EngineVerdict&)> done) {
  std::optional<EngineVerdict> known;
  {
    const MutexLock lock(mutex_);
    known = verdict_;
  }
  if (!engines_change_ || !can_time_engines()) return;
  if (known && known->timed_on == TimedOn::kNothing) return;
  EngineTrial::Parts parts = trial_parts(known);
  parts.use = [this](const auto& executable, bool is_tried) { return adopt(executable, is_tried); };
  parts.done = [this, done = std::move(done)](const EngineVerdict& verdict) {
    const bool is_new = keep(verdict);
    if (forms_ != nullptr && is_new) forms_->reconsider();
    if (done && is_new) done(verdict);
  };
  trial_ = std::make_unique<EngineTrial>(std::move(parts), known);
}

/// Executables for other shapes stay as they are: they are right, and were prepared already.
Status ExecutableSet::adopt(const std::shared_ptr<device::Executable>& executable, bool is_tried) {
  if (executable->lost()) return error(Code::kDeviceLost, "what was prepared is lost");
  // Requests take more memory once they run.
  if (is_tried) CORELANE_TRY(check_room_left());
  std::size_t contexts = 0;
  {
    const MutexLock lock(mutex_);
    contexts = contexts_of(entries_[0]);
  }
  const Status copied = make_copies(*executable, contexts);
  // Else contexts without memory for it keep what they have.
  if (is_tried) CORELANE_TRY(copied);
  remember(first().shapes, executable);
  generation_.fetch_add(1, std::memory_order_release);
  return {};
}

/// Bindings reserve copies for their cores: what the contexts need is made in a thread of the
/// background, not in their runs.
Status ExecutableSet::make_copies(device::Executable& executable, std::size_t contexts) const {
  std::vector<std::shared_ptr<device::Bindings>> bindings(
      std::min(contexts, device_->info().cores.size()));
  for (auto& each : bindings) {
    // The macro is two statements.
    CORELANE_ASSIGN(each, executable.new_bindings());
  }
  return {};
}

Result<std::shared_ptr<device::Executable>> ExecutableSet::prepare(const std::vector<Shape>& shapes,
                                                                   std::size_t copies,
                                                                   const std::string& engine) {
  device::PrepareOptions options = base_;
  options.engine = engine;
  // What nobody asked for.
  if (base_.engine.empty() && !engine.empty() && engine != device::kSoonestEngine)
    options.engine = device::faster_engine(engine);
  options.input_shapes = shapes;
  options.replicate_limit = copies;
  if (!source_.stages.empty()) return prepare_parts(device_, source_, description_, options);
  device::Image image = image_of(source_, description_);
  if (source_.kind == "onnx")
    image.infer_outputs = inferring(source_, shapes_by_name(description_, shapes));
  const std::size_t ending = precompiled_variant(options).size() + 1;
  // One form at most: the driver ignores a tag that is not its own.
  if (const PrecompiledForm* form = form_for(shapes)) {
    image.precompiled = form->bytes;
    // The driver's part of the tag; the variant is this floor's.
    image.precompiled_tag = form->tag.substr(0, form->tag.size() - ending);
  }
  CORELANE_ASSIGN(auto executable, device_->prepare(image, options));
  const std::size_t outputs = description_.outputs.size() + base_.exposed_values.size();
  if (executable->inputs().size() != description_.inputs.size() ||
      executable->outputs().size() != outputs) {
    return error(
        Code::kMalformed,
        "program '{}' declares {} inputs and {} outputs, its image of kind '{}' has {} and "
        "{} on device '{}'; compile or attach it again",
        description_.name, description_.inputs.size(), outputs, source_.kind,
        executable->inputs().size(), executable->outputs().size(), device_->info().instance);
  }
  return executable;
}

ExecutableSet::Entry ExecutableSet::find(std::span<const Shape> shapes) {
  Entry* best = nullptr;
  // One made for these shapes goes before one with open dimensions that accepts them too.
  const auto rank = [](const Entry& entry) {
    return (usable(entry) ? 2 : 0) + (all_static(entry.shapes) ? 1 : 0);
  };
  for (Entry& entry : entries_) {
    if (!std::ranges::equal(entry.shapes, shapes) && !accepts_all(entry.shapes, shapes)) continue;
    if (best == nullptr || rank(entry) >= rank(*best)) best = &entry;
  }
  if (best == nullptr) return {};
  best->found = ++finds_;
  return *best;
}

std::size_t ExecutableSet::most_kept() const noexcept {
  const std::size_t constants = std::max<std::size_t>(1, description_.constant_bytes);
  return 1 + std::min(kKeptExecutables - 1, base_.replicate_limit / constants);
}

ExecutableSet::Entry ExecutableSet::remember(std::vector<Shape> shapes,
                                             std::shared_ptr<device::Executable> executable,
                                             std::size_t copies,
                                             std::shared_ptr<const FormUse> use) {
  std::vector<Entry> dropped;  // Executables may end here, which takes locks of the device.
  Entry made{std::move(shapes), std::move(executable), std::make_shared<const char>(), copies,
             std::move(use)};
  const MutexLock lock(mutex_);
  dropped.reserve(entries_.size() + 1);
  made.found = ++finds_;
  const auto drop = [&](std::size_t i) CORELANE_REQUIRES(mutex_) {
    dropped.push_back(std::move(entries_[i]));
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  };
  // The first one stays: it stands for the program where contexts begin, and in trials. Of a chain
  // with open dimensions nothing does: its first one is that of the first run.
  const std::size_t staying = source_.stages.empty() ? 1 : 0;
  for (std::size_t i = entries_.size(); i-- > 1;)
    if (entries_[i].executable->lost()) drop(i);
  if (!entries_.empty() && entries_[0].shapes == made.shapes) {
    dropped.push_back(made);
    std::swap(entries_[0], dropped.back());
    return made;
  }
  // Forms beside an open one have a budget of their own.
  const bool bounded = description_.shape_sets.empty() && forms_ == nullptr;
  while (bounded && entries_.size() >= most_kept() && entries_.size() > staying) {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(staying);
    const auto last = std::ranges::min_element(begin, entries_.end(), {}, &Entry::found);
    drop(static_cast<std::size_t>(last - entries_.begin()));
  }
  entries_.push_back(made);
  return made;
}

bool ExecutableSet::is_open_form(const Entry& entry) const noexcept {
  return forms_ != nullptr && entry.executable != nullptr && !all_static(entry.shapes);
}

void ExecutableSet::begin_forms() {
  // A device that refused open dimensions prepares each size when it is asked for.
  if (!description_.batch_range || all_static(first().shapes)) return;
  form_engine_ = base_.engine;
  forms_ = std::make_unique<StaticForms>(FormRule{}, description_.name,
                                         [this](const std::shared_ptr<FormUse>& use, TimedRun run) {
                                           return add_form(use, std::move(run));
                                         });
}

void ExecutableSet::begin_shape_forms(std::string engine) {
  const Entry used = first();
  // Host operators are the user's, and see the runs that the user makes and no others.
  const bool plain =
      !base_.profile_layers && base_.custom_operators.empty() && !holds_values(description_.inputs);
  if (forms_ != nullptr || !description_.shape_sets.empty() || !plain) return;
  // A device that refused them prepares each shape when it is asked for.
  const bool open = used.executable != nullptr && used.shapes == declared_shapes(description_);
  if (!open || all_static(used.shapes)) return;
  form_engine_ = std::move(engine);
  open_outputs_ = used.executable->outputs();
  forms_ = std::make_unique<StaticForms>(FormRule{kMostShapeForms, true}, description_.name,
                                         [this](const std::shared_ptr<FormUse>& use, TimedRun run) {
                                           return add_form(use, std::move(run));
                                         });
}

std::size_t ExecutableSet::copies_taken() {
  const std::size_t cores = device_->info().cores.size();
  const std::size_t constants = description_.constant_bytes;
  // The first copy of all is not counted.
  std::size_t taken = form_copies(entries_[0].executable->placement(), cores, constants);
  taken -= std::min(taken, constants);
  for (const Entry& entry : entries_) taken += entry.copies;
  std::erase_if(leaving_, [](const Leaving& form) { return form.executable.expired(); });
  for (const Leaving& form : leaving_) taken += form.copies;
  return taken;
}

void ExecutableSet::drop_form(const std::vector<Shape>& shapes) {
  Entry dropped;  // Its executable may end here, which takes locks of the device.
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(entries_.begin() + 1, entries_.end(),
                                    [&](const Entry& entry) { return entry.shapes == shapes; });
    if (found == entries_.end()) return;
    dropped = std::move(*found);
    entries_.erase(found);
    leaving_.push_back({dropped.executable, dropped.copies});
  }
  generation_.fetch_add(1, std::memory_order_release);
  log::debug("runtime", "program '{}': the form of {} gives way to another", description_.name,
             shapes_text(shapes));
}

/// One form at most gives way: contexts that stand on it may hold it for a while. Where forms were
/// measured, the next one takes what the least of them took or more.
Result<std::size_t> ExecutableSet::room_for_form(const FormUse& use) {
  const std::size_t constants = description_.constant_bytes;
  const std::size_t cores = device_->info().cores.size();
  const auto room = [&]() -> std::optional<std::size_t> {
    const MutexLock lock(mutex_);
    const std::size_t budget = base_.replicate_limit;
    const std::size_t taken = copies_taken();
    if (least_form_ > budget - std::min(budget, taken)) return std::nullopt;
    return form_replicate_limit(constants, cores, taken, budget);
  };
  std::optional<std::size_t> copies = room();
  if (forms_->rule().open_ended && (!copies || forms_->full())) {
    if (const auto idle = forms_->yield_to(use)) {
      drop_form(*idle);
      copies = room();
    } else if (copies) {
      return error(Code::kOutOfMemory, "its other forms are in use");
    }
  }
  if (copies) return *copies;
  const MutexLock lock(mutex_);
  return no_room(std::max(constants, least_form_), base_.replicate_limit);
}

/// A static form of open dimensions is a second compiled network, and nobody has asked for it: it
/// counts with all that it takes beside the image. Its code is measured by the heap, on which
/// others may allocate meanwhile: that alone refuses no form for good.
Result<std::size_t> ExecutableSet::size_of_form(const device::Executable& form) {
  const std::size_t constants = description_.constant_bytes;
  const std::size_t copies = form_copies(form.placement(), device_->info().cores.size(), constants);
  if (!forms_->rule().open_ended) return copies;
  const device::MemoryFigures figures = form.memory();
  const auto beside_image = [&](std::size_t bytes) {
    return std::max(copies, bytes - std::min(bytes, constants));
  };
  const std::size_t least = beside_image(figures.weights + figures.internal);
  const std::size_t held = beside_image(figures.total());
  const std::size_t budget = base_.replicate_limit;
  const MutexLock lock(mutex_);
  least_form_ = least_form_ == 0 ? least : std::min(least_form_, least);
  if (least > budget)
    return error(Code::kUnsupported,
                 "it takes {} bytes, more than replicate_limit ({} bytes) allows; raise that, or "
                 "leave the form for all shapes alone with static_forms=0",
                 least, budget);
  if (held > budget - std::min(budget, copies_taken())) return no_room(held, budget);
  return held;
}

/// The rest of the device's memory is for what users ask for.
Status ExecutableSet::check_room_left() const {
  const std::size_t limit = device_->info().memory_limit;
  if (limit == 0 || device_->memory().total() <= limit / 4 * 3) return {};
  return error(Code::kOutOfMemory,
               "the device's objects take more than three quarters of its {} "
               "bytes",
               limit);
}

Result<bool> ExecutableSet::is_worth_it(const std::shared_ptr<device::Executable>& form,
                                        TimedRun run) const {
  const std::shared_ptr<device::Executable> open = first().executable;
  if (run.inputs.size() != description_.inputs.size() || !takes_place_of(*open, *form))
    return false;
  Comparison of{*device_, description_.name, open,
                form,     std::move(run),    [this] { return forms_->stopping(); }};
  CORELANE_ASSIGN(const TimedPairs timed, time_in_turns(of));
  const double ratio = median_ratio(timed.pairs);
  log::debug("runtime", "program '{}': a form of {} takes {:.2f} of the time of the open one",
             description_.name, shapes_text(shapes_of(*form)), ratio);
  const double another = entries().size() == 1 ? 1.0 : kWorthAnother;
  return ratio < std::min(another, worth_a_change(timed.pairs));
}

/// In the thread of the forms.
Result<bool> ExecutableSet::add_form(const std::shared_ptr<FormUse>& use, TimedRun run) {
  auto added = make_form(use, std::move(run));
  if (first().executable->memory().total() >= kWorthATrim) trim_heap();
  return added;
}

/// One at a time, so the budget does not change meanwhile.
Result<bool> ExecutableSet::make_form(const std::shared_ptr<FormUse>& use, TimedRun run) {
  std::size_t contexts = 0;
  {
    const MutexLock lock(mutex_);
    const Entry there = find(use->shapes);
    if (usable(there) && all_static(there.shapes)) return true;
    contexts = std::max<std::size_t>(1, contexts_of(entries_[0]));
  }
  CORELANE_ASSIGN(const std::size_t copies, room_for_form(*use));
  CORELANE_ASSIGN(auto executable, prepare(use->shapes, copies, form_engine_));
  if (forms_->rule().open_ended) {
    CORELANE_TRY(check_room_left());
    CORELANE_ASSIGN(const bool worth_it, is_worth_it(executable, std::move(run)));
    if (!worth_it) return false;
  }
  CORELANE_ASSIGN(const std::size_t held, size_of_form(*executable));
  CORELANE_TRY(make_copies(*executable, contexts));
  log::debug("runtime", "program '{}': {} has a form of its own", description_.name,
             shapes_text(use->shapes));
  remember(use->shapes, std::move(executable), held, use);
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

ExecutableSet::Entry ExecutableSet::first() const {
  const MutexLock lock(mutex_);
  return entries_.empty() ? Entry{} : entries_.front();
}

bool ExecutableSet::holds(const device::Executable* executable) const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.executable.get() == executable; });
}

std::vector<ExecutableSet::Entry> ExecutableSet::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

std::vector<std::shared_ptr<device::Executable>> ExecutableSet::all() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<device::Executable>> executables;
  for (const Entry& entry : entries_) executables.push_back(entry.executable);
  for (const Leaving& form : leaving_)
    if (auto executable = form.executable.lock()) executables.push_back(std::move(executable));
  return executables;
}

Result<std::vector<device::Executable::Precompiled>> ExecutableSet::export_all() const {
  // A copy: exporting takes long, and is done without the lock.
  const std::vector<Entry> entries = this->entries();
  std::vector<device::Executable::Precompiled> forms;
  std::optional<Status> refused;
  for (const Entry& entry : entries) {
    auto form = entry.executable->export_precompiled();
    if (!form && form.error().code() != Code::kUnsupported) return error(form.error());
    if (!form) {
      // Of a device with several engines, one may have no such forms.
      refused = form.error();
      continue;
    }
    device::PrepareOptions options = base_;
    options.input_shapes = entry.shapes;
    form->tag += "#" + precompiled_variant(options);
    forms.push_back(std::move(*form));
  }
  if (forms.empty() && refused) return error(*refused);
  if (forms.empty()) {
    return error(
        Code::kUnsupported,
        "program '{}': nothing is prepared that could be exported, its dimensions are open "
        "and device '{}' wants them fixed; give shape sets",
        description_.name, device_->info().instance);
  }
  return forms;
}

bool ExecutableSet::from_precompiled() const {
  const Entry entry = first();
  return entry.executable != nullptr && entry.executable->from_precompiled();
}

}  // namespace corelane::runtime
