/// The checking mode's view of a model's context. Called only while the mode is on, with the
/// context's lock held.
#include <algorithm>
#include <array>
#include <tuple>

#include "adapters/rknn/checks/rknn_check.h"
#include "adapters/rknn/memory/rknn_io_mem.h"
#include "adapters/rknn/model/rknn_frame.h"
#include "adapters/rknn/model/rknn_model_facts.h"

namespace corelane::rknn {
namespace {

std::string dims_text(const rknn_tensor_attr& attr) {
  std::string text = "(";
  for (std::uint32_t i = 0; i < attr.n_dims && i < RKNN_MAX_DIMS; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", attr.dims[i]);
  return text + ")";
}

std::string label(const char* side, std::size_t index, const IoEntry& entry) {
  return fmt::format("{} {} '{}'", side, index, entry.desc.name);
}

}  // namespace

void IoMemory::check_attr(const IoTensor& io, const rknn_tensor_attr& attr) const {
  const std::string what = label(side_name(io.side), io.index, *io.entry);
  if (attr.n_dims == 0 || attr.n_dims > RKNN_MAX_DIMS) return;
  const std::array<rknn_tensor_attr, 3> now = {normal_attr(io, facts_.chip),
                                               native_attr(io, facts_.chip),
                                               native_nhwc_attr(io, facts_.chip)};
  const auto fits = [&](const rknn_tensor_attr& own) { return same_dims(attr, own); };
  if (std::none_of(now.begin(), now.end(), fits)) {
    check::report(edge::current_call(),
                  "attr.dims {} of {} are stale: it has {} now; query the attr again "
                  "(RKNN_QUERY_CURRENT_INPUT_ATTR, ..._OUTPUT_ATTR)",
                  dims_text(attr), what, dims_text(now[0]));
    return;
  }
  const auto dtype = dtype_of(attr.type);
  if (!dtype || attr.size == 0) return;
  std::size_t elements = 1;
  for (std::uint32_t i = 0; i < attr.n_dims; ++i) elements *= attr.dims[i];
  const std::size_t bytes = dtype_bytes(*dtype, elements);
  if (attr.size != bytes)
    check::report(edge::current_call(),
                  "attr.size {} of {} is stale: dims {} of {} are {} bytes; set it when `type` "
                  "changes",
                  attr.size, what, dims_text(attr), type_name(attr.type), bytes);
}

/// The vendor's runtime wants memory bound again after the shapes have changed.
void IoMemory::check_binding(Bound& bound, const std::string& what) const {
  if (bound.call.number == 0 || bound.call.number > shapes_call_.number) return;
  check::report(shapes_call_,
                "the memory of {} is stale: it was bound by {}, before the shapes were set; bind "
                "it again with the current attr",
                what, edge::text(bound.call));
  bound.call.number = 0;  // Reported once.
}

void IoMemory::check_before_run(Frame& frame) {
  const ProgramDescription& model = *facts_.description;
  for (const auto& [side, bounds, entries] : {std::tuple{Side::kInput, &inputs_, &model.inputs},
                                              std::tuple{Side::kOutput, &outputs_, &model.outputs}})
    for (std::size_t i = 0; i < bounds->size(); ++i) {
      if (!(*bounds)[i]) continue;
      const bool input = side == Side::kInput;
      const bool flushes = !facts_.has(input ? RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE
                                             : RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE);
      Bound& bound = *(*bounds)[i];
      const Memory& memory = *bound.memory;
      const std::string what = label(side_name(side), i, (*entries)[i]);
      check_binding(bound, what);
      if (!input) check::output_given_up(memory, "the next run");
      if (input && !flushes && !memory.uncached) check::input_read(memory, memory.size, what);
      check::run_begins(memory, what, !input);
      frame.checked.push_back(bound.memory);
      // This call is the cause, even where another one waits for the end.
      if (!input && !flushes && !memory.uncached) check::output_written(memory, what);
    }
}

void check_after_run(Frame& frame) {
  for (const auto& memory : frame.checked) check::run_ends(*memory);
  frame.checked.clear();
}

void IoMemory::check_close() {
  for (const std::optional<Bound>& bound : outputs_)
    if (bound) check::output_given_up(*bound->memory, "the context was destroyed");
}

}  // namespace corelane::rknn
