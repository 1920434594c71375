#include "drivers/rknn/vendor_program.h"

#include "corelane/base/log.h"

namespace corelane::drivers::rknn {
namespace {

/// The declared tensors, or nothing where the image declares none.
const TensorDesc* declared(const std::vector<TensorDesc>& list, std::size_t index) {
  return list.empty() ? nullptr : &list[index];
}

/// Images may declare their tensors, or leave them to the library.
Status check_count(const std::vector<TensorDesc>& list, std::size_t reported, const char* what) {
  if (list.empty() || list.size() == reported) return {};
  return error(Code::kMalformed,
               "{} {} are declared, but the library reports {}; compile or attach the image "
               "again",
               list.size(), what, reported);
}

/// The next duplicate may succeed: this failure was one of its time, not of the image or library.
bool may_pass(Code why) {
  return why == Code::kOutOfMemory || why == Code::kTimeout || why == Code::kEngineFailed;
}

}  // namespace

Result<std::shared_ptr<VendorProgram>> VendorProgram::create(std::shared_ptr<const Library> library,
                                                             const device::Image& image,
                                                             const device::PrepareOptions& options,
                                                             std::size_t cores) {
  std::shared_ptr<VendorProgram> program(new VendorProgram(
      std::move(library), image, options.profile_layers ? RKNN_FLAG_COLLECT_PERF_MASK : 0, cores));
  CORELANE_TRY(program->build(image, options));
  return program;
}

/// With other shapes than the image has at first, the library reports its tensors anew.
Status VendorProgram::build(const device::Image& image, const device::PrepareOptions& options) {
  CORELANE_ASSIGN(first_, load());
  library_->note_version(first_->version());
  CORELANE_ASSIGN(Attributes reported, first_->attributes());
  CORELANE_TRY(check_count(image.inputs, reported.inputs.size(), "inputs"));
  CORELANE_TRY(check_count(image.outputs, reported.outputs.size(), "outputs"));
  CORELANE_TRY(choose_shapes(reported, options.input_shapes));
  if (!shapes_.empty()) {
    CORELANE_TRY(first_->set_input_shapes(shapes_));
    CORELANE_ASSIGN(reported, first_->attributes());
  }
  figures_ = first_->memory();
  return describe(reported, image);
}

/// Fills shapes_ where the wanted ones are not those the image has at first.
Status VendorProgram::choose_shapes(const Attributes& reported, const std::vector<Shape>& shapes) {
  if (shapes.empty()) return {};
  if (shapes.size() != reported.inputs.size())
    return error(Code::kInvalidArgument, "{} input shapes were given; the image has {} inputs",
                 shapes.size(), reported.inputs.size());
  bool others = false;
  std::vector<rknn_tensor_attr> wanted;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    CORELANE_ASSIGN(const Shape now, shape_of(reported.inputs[i]));
    if (now == shapes[i] || (shapes[i].rank() != now.rank() && shapes[i].is_static() &&
                             shapes[i].elements() == now.elements())) {
      wanted.push_back(reported.inputs[i]);
      continue;
    }
    others = true;
    CORELANE_ASSIGN(const rknn_tensor_attr attr, reshaped(reported.inputs[i], shapes[i]));
    wanted.push_back(attr);
  }
  if (others) shapes_ = std::move(wanted);
  return {};
}

/// Ports first, then what callers see of them, in the order of the image.
Status VendorProgram::describe(const Attributes& reported, const device::Image& image) {
  for (std::size_t i = 0; i < reported.inputs.size(); ++i) {
    CORELANE_ASSIGN(Port port, input_port(reported.inputs[i], declared(image.inputs, i)));
    inputs_.push_back(port.desc);
    input_ports_.push_back(std::move(port));
  }
  for (std::size_t i = 0; i < reported.outputs.size(); ++i) {
    CORELANE_ASSIGN(Port port, output_port(reported.outputs[i], declared(image.outputs, i)));
    outputs_.push_back(port.desc);
    output_ports_.push_back(std::move(port));
  }
  return {};
}

/// A file that was cut since it was mapped would end the process when the library reads it.
Result<std::unique_ptr<VendorContext>> VendorProgram::load() const {
  if (intact_) CORELANE_TRY(intact_());
  return VendorContext::open(library_, bytes_, flags_);
}

/// A duplicate of the first context, or another load of the image where that is refused. What may
/// pass is the job's failure: another load needs more memory than the duplicate that had none.
Result<std::unique_ptr<VendorContext>> VendorProgram::another_context() {
  Status refused;
  {
    const MutexLock lock(mutex_);
    if (duplicates_) {
      auto made = first_->duplicate();
      if (made || may_pass(made.error().code())) return made;
      duplicates_ = false;
      refused = std::move(made).error();
    }
  }
  // Without the lock: a log callback may use the program.
  if (!refused.ok())
    log::info("rknn", "every context loads the image again, with weights of its own: {}",
              refused.message());
  return load();
}

Result<std::unique_ptr<VendorContext>> VendorProgram::new_context() {
  CORELANE_ASSIGN(auto made, another_context());
  if (!shapes_.empty()) {
    std::vector<rknn_tensor_attr> shapes = shapes_;
    CORELANE_TRY(made->set_input_shapes(shapes));
  }
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (made->owns_weights()) loads_.fetch_add(1, std::memory_order_relaxed);
  return made;
}

/// The library reports one context; duplicates share its weights, and each has activations.
device::MemoryFigures VendorProgram::memory() const {
  device::MemoryFigures figures;
  figures.weights = figures_.total_weight_size * loads_.load(std::memory_order_relaxed);
  figures.internal = figures_.total_internal_size * (1 + requests_.load(std::memory_order_relaxed));
  return figures;
}

Result<device::Executable::Precompiled> VendorProgram::export_precompiled() const {
  return error(Code::kUnsupported,
               "an image in the RKNN runtime is compiled already and cannot be exported");
}

}  // namespace corelane::drivers::rknn
