/// rknn_set_input_shapes and rknn_set_io_mem. Inputs and outputs: rknn_input.cpp, rknn_output.cpp.
#include "adapters/rknn/model/rknn_tensors.h"

#include <algorithm>
#include <cstring>

#include "adapters/rknn/model/rknn_model_facts.h"
#include "adapters/rknn/model/rknn_query.h"
#include "adapters/rknn/model/rknn_run.h"

namespace corelane::rknn {
namespace {

/// What the dimensions of an attr mean in the order of the model.
struct Reading {
  Shape said;   ///< By its fmt. Where that names no order it is that of INPUT_ATTR.
  Shape other;  ///< With the dimensions of a picture in the other order.
};

Result<Reading> read_shape(const rknn_tensor_attr& attr, const IoTensor& io, const Chip& chip) {
  const IoEntry& entry = *io.entry;
  if (attr.n_dims > RKNN_MAX_DIMS)
    return error(Code::kInvalidArgument, "input '{}': n_dims {} is more than {}", entry.desc.name,
                 attr.n_dims, RKNN_MAX_DIMS);
  if (static_cast<std::uint32_t>(attr.fmt) > RKNN_TENSOR_UNDEFINED)
    return error(Code::kInvalidArgument,
                 "input '{}': fmt {} does not exist; use RKNN_TENSOR_NCHW (0), NHWC (1) or "
                 "UNDEFINED (3)",
                 entry.desc.name, static_cast<std::uint32_t>(attr.fmt));
  std::vector<std::int64_t> dims(attr.dims, attr.dims + attr.n_dims);
  std::vector<std::int64_t> other = dims;
  const rknn_tensor_format fmt =
      attr.fmt == RKNN_TENSOR_UNDEFINED ? normal_attr(io, chip).fmt : attr.fmt;
  if (dims.size() == 4)
    (fmt == RKNN_TENSOR_NHWC ? dims : other) = {dims[0], dims[3], dims[1], dims[2]};
  if (entry.desc.shape.rank() == 0 && dims == std::vector<std::int64_t>{1}) dims.clear();
  return Reading{Shape(std::move(dims)), Shape(std::move(other))};
}

/// Clients say NHWC and give the dimensions of NCHW, or the reverse. Where what they say is not
/// listed, the one set that they can mean; null where there is none, or several.
const std::vector<Shape>* meant_set(const std::vector<Reading>& given,
                                    const std::vector<std::vector<Shape>>& sets) {
  const auto said = [](const Reading& r, const Shape& s) { return r.said == s; };
  const auto either = [](const Reading& r, const Shape& s) { return r.said == s || r.other == s; };
  const std::vector<Shape>* found = nullptr;
  for (const std::vector<Shape>& set : sets) {
    if (std::ranges::equal(given, set, said)) return &set;
    if (!std::ranges::equal(given, set, either)) continue;
    if (found != nullptr) return nullptr;
    found = &set;
  }
  return found;
}

/// One list of shapes for each choice, in the order of the inputs.
std::string allowed_shapes(const ProgramDescription& description) {
  std::string text;
  for (const std::vector<Shape>& set : description.shape_sets) {
    text += text.empty() ? " " : " or ";
    for (const Shape& shape : set) text += shape.to_string();
  }
  return text;
}

/// The shapes of all frames.
std::vector<Shape> shapes_now(Runs& runs) CORELANE_REQUIRES(runs.mutex()) {
  std::vector<Shape> shapes;
  for (const TensorDesc& desc : runs.frames().front().context.inputs())
    shapes.push_back(desc.shape);
  return shapes;
}

/// In all frames, after one of them has refused others: it may have lost its own, and what was
/// bound to it.
Status restore_shapes(Runs& runs, const std::vector<Shape>& before)
    CORELANE_REQUIRES(runs.mutex()) {
  for (Frame& frame : runs.frames()) {
    const Status status = frame.context.set_input_shapes(before);
    if (!status.ok() && std::ranges::all_of(before, &Shape::is_static))
      return status.wrap("the earlier shapes cannot be set again; set shapes before the next run");
  }
  return runs.io_memory().rebind_all(runs.frames(), "rknn_set_input_shapes");
}

}  // namespace

/// A name counts more than an index.
Outcome Tensors::shapes_of(std::uint32_t count, const rknn_tensor_attr* attrs,
                           std::vector<Shape>& shapes) const {
  std::vector<bool> chosen(count);
  std::vector<Reading> given(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name(attrs[i].name, strnlen(attrs[i].name, sizeof attrs[i].name));
    std::size_t place = name.empty() ? attrs[i].index : count;
    for (std::size_t k = 0; k < count && !name.empty(); ++k)
      if (facts_.description->inputs[k].desc.name.compare(0, sizeof attrs[i].name - 1, name) == 0)
        place = k;
    if (place >= count || chosen[place])
      return outcome(RKNN_ERR_INPUT_INVALID,
                     "attr[{}] with name '{}' and index {} names {}; set index and name of each "
                     "input once",
                     i, name, attrs[i].index,
                     place >= count ? "no input" : "an input that another attr names");
    CORELANE_ASSIGN(given[place], read_shape(attrs[i], queries_.input(place), facts_.chip));
    chosen[place] = true;
  }
  if (const auto* set = meant_set(given, facts_.description->shape_sets))
    shapes = *set;
  else
    for (Reading& reading : given) shapes.push_back(std::move(reading.said));
  return {};
}

/// All frames get the shapes, since they take turns. Where one of them refuses, none keeps them.
Outcome Tensors::set_input_shapes(std::uint32_t count, const rknn_tensor_attr* attrs) {
  if (attrs == nullptr)
    return outcome(RKNN_ERR_PARAM_INVALID,
                   "attr is null; pass one rknn_tensor_attr for each input");
  if (count != facts_.description->inputs.size())
    return outcome(RKNN_ERR_PARAM_INVALID, "{} inputs given; the shapes of all {} are set together",
                   count, facts_.description->inputs.size());
  std::vector<Shape> shapes;
  if (Outcome bad = shapes_of(count, attrs, shapes); bad.code() != RKNN_SUCC) return bad;
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  CORELANE_TRY(OutsideMemory::check_use(facts_.flags));
  (void)runs_.complete_all();
  const std::vector<Shape> before = shapes_now(runs_);
  // With a list of shapes those of the outputs are known before the run, and what does not fit goes
  // by itself.
  if (shapes != before && facts_.description->shape_sets.empty())
    CORELANE_TRY(runs_.io_memory().release_outputs(runs_.frames()));
  for (Frame& frame : runs_.frames()) {
    const Status status = frame.context.set_input_shapes(shapes);
    if (status.ok()) continue;
    CORELANE_TRY(restore_shapes(runs_, before));
    if (status.code() == Code::kOutOfMemory) return status;
    if (facts_.description->shape_sets.empty() || status.code() != Code::kShapeMismatch)
      return Outcome(RKNN_ERR_FAIL, status);
    std::string given;
    for (const Shape& shape : shapes) given += shape.to_string();
    return outcome(RKNN_ERR_FAIL,
                   "the model was not compiled for the shapes {}; in the model's order it was "
                   "compiled for{}",
                   given, allowed_shapes(*facts_.description));
  }
  runs_.note_shapes();
  if (check::enabled()) runs_.io_memory().note_shapes_call();
  return runs_.io_memory().rebind_all(runs_.frames(), "rknn_set_input_shapes");
}

/// Runs are completed first: they use the memory that is bound.
Outcome Tensors::set_io_mem(const rknn_tensor_mem* mem, const rknn_tensor_attr& attr) {
  CORELANE_ASSIGN(std::shared_ptr<Memory> memory, find_memory(mem));
  const ContextLock lock(runs_.mutex());
  if (!lock.ok()) return lock.refused();
  if (runs_.outside().pending != nullptr) CORELANE_TRY(OutsideMemory::check_use(facts_.flags));
  (void)runs_.complete_all();
  return runs_.io_memory().set(runs_.frames(), std::move(memory), attr);
}

}  // namespace corelane::rknn
