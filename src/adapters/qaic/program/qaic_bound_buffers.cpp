#include "adapters/qaic/program/qaic_bound_buffers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "adapters/qaic/checks/qaic_check.h"
#include "adapters/qaic/program/qaic_buffer_plan.h"
#include "corelane/device/device.h"

namespace corelane::qaic {
namespace {

/// Whether elements of the form may lie there.
bool aligned(const void* data, const TensorView& form) noexcept {
  const std::size_t bytes = dtype_bits(form.dtype) / 8;
  return bytes <= 1 || reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace

BoundBuffers::BoundBuffers(std::shared_ptr<const BufferPlan> plan,
                           std::shared_ptr<device::Device> device)
    : plan_(std::move(plan)),
      device_(std::move(device)),
      slots_(plan_->count()),
      next_(plan_->count()),
      forms_(plan_->specializations()) {
  form_views();
}

void BoundBuffers::form_views() {
  views_ = &forms_[specialization_];
  if (views_->inputs.size() + views_->outputs.size() == plan_->count()) return;
  for (std::size_t i = 0; i < plan_->count(); ++i) {
    const TensorView& form = plan_->form(i, specialization_);
    if (plan_->is_input(i))
      views_->inputs.push_back(form);
    else
      views_->outputs.push_back({nullptr, form.size, form.dtype, form.shape, {}, {}});
  }
}

Status BoundBuffers::make_own() {
  for (std::size_t i = 0; i < plan_->count(); ++i) {
    Slot slot;
    slot.place = Place::kBuffer;
    slot.size = plan_->mapping(i).bytes;
    CORELANE_ASSIGN(slot.buffer, device_->create_buffer(std::max<std::size_t>(slot.size, 1), {}));
    slot.data = static_cast<std::uint8_t*>(slot.buffer->data());
    QBuffer shown;
    shown.size = slot.size;
    shown.buf = slot.data;
    struct stat facts {};
    if (slot.buffer->fd() >= 0 && fstat(slot.buffer->fd(), &facts) == 0) {
      // Where the device's memory has a descriptor clients get that, besides the address.
      shown.handle = static_cast<std::uint64_t>(slot.buffer->fd());
      shown.offset = static_cast<std::uint32_t>(slot.buffer->offset());
      shown.type = QBUFFER_TYPE_DMABUF;
      slot.identity = {facts.st_dev, facts.st_ino, shown.offset, slot.size};
    }
    own_.push_back(slot);
    given_.push_back(shown);
  }
  slots_ = own_;
  complete_ = true;
  return {};
}

/// A descriptor is imported once: one that was set before, or is one of this object's own buffers,
/// is found again.
Outcome BoundBuffers::take_descriptor(std::size_t index, const QBuffer& given, Slot& slot) {
  struct stat facts {};
  const bool number = given.handle <= static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  const int fd = number ? static_cast<int>(given.handle) : -1;
  if (fstat(fd, &facts) != 0)
    return outcome(QS_BADFD, "buffer {} ('{}') is descriptor {}, which is not open", index,
                   plan_->mapping(index).name, static_cast<std::int64_t>(given.handle));
  slot.identity = {facts.st_dev, facts.st_ino, given.offset, given.size};
  const auto same = [&](const Slot& other) {
    return other.buffer != nullptr && other.identity == slot.identity;
  };
  if (same(slots_[index])) {
    slot.buffer = slots_[index].buffer;
  } else if (!own_.empty() && own_[index].identity.inode == facts.st_ino &&
             own_[index].identity.device == facts.st_dev &&
             own_[index].identity.offset == given.offset && given.size <= own_[index].size) {
    slot.buffer = own_[index].buffer;
  } else {
    auto imported = device_->import_fd(fd, given.size, given.offset);
    if (!imported) {
      const Status why =
          imported.error().wrap(fmt::format("buffer {} ('{}')", index, plan_->mapping(index).name));
      if (why.code() == Code::kInvalidArgument) return {QS_BADFD, why};
      return why;
    }
    slot.buffer = *std::move(imported);
  }
  slot.data = static_cast<std::uint8_t*>(slot.buffer->data());
  // A part of an input is copied; the whole is used as it is.
  const bool whole = given.size == plan_->form(index, specialization_).size;
  if (whole && plan_->is_input(index) && !aligned(slot.data, plan_->form(index, specialization_)))
    return take_unaligned(index, slot);
  slot.place = whole ? Place::kBuffer : Place::kCopied;
  return {};
}

/// The memory that the device sees stays while the dimensions do.
Outcome BoundBuffers::take_padded(std::size_t index, const QBuffer& given,
                                  const QBufferDimensions& dims, Slot& slot) {
  if (static_cast<std::uint32_t>(given.type) == QBUFFER_TYPE_DMABUF)
    return outcome(QS_UNSUPPORTED,
                   "buffer {} ('{}') is a descriptor that a larger specialization covers; give it "
                   "in memory of the process, or with the dimensions of a specialization",
                   index, plan_->mapping(index).name);
  SlicePart corner;
  corner.start.assign(dims.count, 0);
  corner.extent = Shape(std::vector<std::int64_t>(dims.dims, dims.dims + dims.count));
  slot.padding = padding_for(index, plan_->box_of(index, specialization_, corner));
  slot.place = Place::kPadded;
  return {};
}

/// The runtime would convert it when it is submitted, which an inference that waits cannot have.
Outcome BoundBuffers::take_unaligned(std::size_t index, Slot& slot) {
  const Shape& whole = plan_->form(index, specialization_).shape;
  const SlicePart all{std::vector<std::int64_t>(whole.rank(), 0), whole};
  slot.padding = padding_for(index, plan_->box_of(index, specialization_, all));
  slot.place = Place::kPadded;
  return {};
}

std::shared_ptr<Padding> BoundBuffers::padding_for(std::size_t index, Box box) const {
  const auto& before = slots_[index].padding;
  return before != nullptr && before->box == box ? before
                                                 : std::make_shared<Padding>(std::move(box));
}

Outcome BoundBuffers::take_slice(std::size_t index, const QBuffer& given, const SlicePart& part,
                                 Slot& slot) {
  const IoMapping& mapping = plan_->mapping(index);
  const auto type = static_cast<std::uint32_t>(given.type);
  if (type != QBUFFER_TYPE_HEAP && type != QBUFFER_TYPE_INVAL)
    return outcome(
        QS_UNSUPPORTED,
        "a slice of buffer {} ('{}') is of type {}; give slices in memory of the process", index,
        mapping.name, type);
  if (given.buf == nullptr && given.size != 0)
    return outcome(QS_INVAL, "a slice of buffer {} ('{}') of {} bytes is null", index, mapping.name,
                   given.size);
  slot = {};
  slot.data = given.buf;
  slot.size = given.size;
  Box box = plan_->box_of(index, specialization_, part);
  if (plan_->is_input(index)) {
    slot.place = mapping.state ? Place::kOwn : Place::kCopied;
    slot.box = std::make_shared<const Box>(std::move(box));
  } else if (box.is_whole()) {
    slot.place = Place::kHeap;
  } else {
    slot.padding = padding_for(index, std::move(box));
    slot.place = Place::kPadded;
  }
  return {};
}

/// `slot` is what the buffer becomes.
Outcome BoundBuffers::take(std::size_t index, const QBuffer& given, const QBufferDimensions* dims,
                           Slot& slot) {
  const bool left_out = BufferPlan::left_out(given, dims);
  slot.size = given.size;
  slot.data = given.buf;
  slot.buffer.reset();
  slot.padding.reset();
  slot.box.reset();
  slot.left_out = false;
  const auto type = static_cast<std::uint32_t>(given.type);
  if (type == QBUFFER_TYPE_PMEM)
    return outcome(
        QS_UNSUPPORTED,
        "buffer {} ('{}') is QBUFFER_TYPE_PMEM, which is not supported; use memory of the "
        "process or a descriptor (QBUFFER_TYPE_DMABUF)",
        index, plan_->mapping(index).name);
  if (type != QBUFFER_TYPE_HEAP && type != QBUFFER_TYPE_INVAL && type != QBUFFER_TYPE_DMABUF)
    return outcome(QS_INVAL, "buffer {} ('{}') has the type {}, which is none of QBufferType",
                   index, plan_->mapping(index).name, type);
  if (left_out) {
    // What is bound stays so; what was copied lies in the context's own memory. State stays on the
    // device.
    const Slot& before = slots_[index];
    const bool keeps = before.place == Place::kBuffer && plan_->is_input(index) &&
                       !plan_->mapping(index).state &&
                       before.size >= plan_->form(index, specialization_).size;
    if (keeps)
      slot = before;
    else
      slot.place = Place::kOwn;
    slot.left_out = true;
    return {};
  }
  const bool padded = covering_ && dims != nullptr &&
                      !std::ranges::equal(std::span(dims->dims, dims->count),
                                          plan_->mapping(index).shapes[specialization_]);
  if (type == QBUFFER_TYPE_DMABUF && !padded) return take_descriptor(index, given, slot);
  if (given.buf == nullptr && given.size != 0 && type != QBUFFER_TYPE_DMABUF)
    return outcome(QS_INVAL, "buffer {} ('{}') of {} bytes is null", index,
                   plan_->mapping(index).name, given.size);
  if (padded) return take_padded(index, given, *dims, slot);
  const IoMapping& mapping = plan_->mapping(index);
  const bool copied = plan_->is_input(index) && mapping.partial && !mapping.state;
  if (!copied && plan_->is_input(index) && !aligned(given.buf, plan_->form(index, specialization_)))
    return take_unaligned(index, slot);
  slot.place = copied ? Place::kCopied : Place::kHeap;
  return {};
}

Outcome BoundBuffers::set(std::size_t count, const QBuffer* buffers, const QBufferDimensions* dims,
                          Context* context) {
  if (count != plan_->count())
    return outcome(QS_INVAL, "{} buffers are given; the program has {}, inputs first", count,
                   plan_->count());
  if (buffers == nullptr && count != 0) return outcome(QS_INVAL, "buffers is null");
  CORELANE_ASSIGN(const std::size_t chosen,
                  covering_ ? plan_->choose_covering(buffers, dims) : plan_->choose(buffers, dims));
  Outcome taken = exchange(buffers, dims, {}, {}, chosen, context);
  if (taken.code() == QS_SUCCESS) keep_extents(dims);
  return taken;
}

/// Keeps the dimensions for later calls that set some of the buffers: only a covering
/// specialization needs them.
void BoundBuffers::keep_extents(const QBufferDimensions* dims) {
  extents_.clear();
  for (std::size_t i = 0; covering_ && dims != nullptr && i < plan_->count(); ++i)
    extents_.push_back({dims[i].sizeOfElem, {dims[i].dims, dims[i].dims + dims[i].count}});
}

/// Sets all buffers with the earlier dimensions. A buffer that is left out now has none.
Outcome BoundBuffers::cover_some(const std::vector<QBuffer>& all, const SomeBuffers& some,
                                 Context* context) {
  std::vector<Extents> extents = extents_;
  for (const std::uint32_t i : some.indices)
    if (all[i].size == 0) extents[i].dims = {0};
  std::vector<QBufferDimensions> dims(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    dims[i] = {static_cast<std::uint32_t>(extents[i].dims.size()), extents[i].element,
               extents[i].dims.data()};
  return set(all.size(), all.data(), dims.data(), context);
}

Outcome BoundBuffers::set_some(const SomeBuffers& some, Context* context) {
  std::vector<QBuffer> all = given_;
  Parts parts = parts_;
  all.resize(plan_->count());
  parts.resize(plan_->count());
  for (std::size_t i = 0; i < all.size(); ++i) {
    // One that was left out stays so, also where its dimensions said that.
    if (slots_[i].left_out) all[i] = {};
  }
  for (std::size_t at = 0; at < some.indices.size(); ++at) {
    const std::size_t i = some.indices[at];
    if (i >= all.size())
      return outcome(QS_INVAL, "buffer {} of {}; take an index below that", i, all.size());
    const QBufferDimensions* dims = some.dims == nullptr ? nullptr : &some.dims[at];
    if (dims != nullptr && dims->dims == nullptr) dims = nullptr;
    const bool left_out = BufferPlan::left_out(some.buffers[at], dims);
    all[i] = left_out ? QBuffer{} : some.buffers[at];
    parts[i] = nullptr;
    if (left_out || some.starts[at].empty()) continue;
    SlicePart part{some.starts[at], std::nullopt};
    if (dims != nullptr) {
      CORELANE_TRY(plan_->check_dims(all[i], *dims, i));
      part.extent = Shape(std::vector<std::int64_t>(dims->dims, dims->dims + dims->count));
    }
    parts[i] = std::make_shared<const SlicePart>(std::move(part));
  }
  const bool whole = std::ranges::none_of(parts, [](const auto& part) { return part != nullptr; });
  if (covering_ && !extents_.empty() && whole) return cover_some(all, some, context);
  std::vector<bool> missing(all.size());
  if (!complete_) missing = plan_->missing(all.data(), parts);
  // One that is given now is refused where it has no memory.
  for (const std::uint32_t i : some.indices) missing[i] = false;
  CORELANE_ASSIGN(const std::size_t chosen,
                  plan_->choose_parts(all.data(), parts, missing, specialization_));
  Outcome taken = exchange(all.data(), nullptr, std::move(parts), missing, chosen, context);
  if (taken.code() == QS_SUCCESS) extents_.clear();
  return taken;
}

std::string BoundBuffers::lack() const {
  if (given_.empty()) return "has no buffers";
  const Parts none(plan_->count());
  const auto missing = plan_->missing(given_.data(), parts_.empty() ? none : parts_);
  const auto first = static_cast<std::size_t>(std::ranges::find(missing, true) - missing.begin());
  if (first == missing.size()) return "has all buffers";
  return fmt::format("misses buffer {} ('{}')", first, plan_->mapping(first).name);
}

Outcome BoundBuffers::exchange(const QBuffer* buffers, const QBufferDimensions* dims, Parts parts,
                               const std::vector<bool>& missing, std::size_t chosen,
                               Context* context) {
  const std::size_t count = plan_->count();
  const bool all = std::ranges::find(missing, true) == missing.end();
  if (!all) context = nullptr;
  if (context != nullptr) CORELANE_TRY(unstage(*context));
  const std::size_t before = std::exchange(specialization_, chosen);
  Outcome taken;
  for (std::size_t i = 0; i < count && taken.code() == QS_SUCCESS; ++i) {
    if (!missing.empty() && missing[i]) {
      next_[i] = {};
      continue;
    }
    const bool sliced = !parts.empty() && parts[i] != nullptr;
    taken = sliced ? take_slice(i, buffers[i], *parts[i], next_[i])
                   : take(i, buffers[i], dims == nullptr ? nullptr : &dims[i], next_[i]);
  }
  if (taken.code() != QS_SUCCESS) {
    specialization_ = before;
    return taken;
  }
  // From here on `next_` has the earlier ones: bind_slots() compares with them, and where binding
  // fails they come back.
  slots_.swap(next_);
  if (before != chosen) form_views();
  if (context != nullptr) {
    const bool anew = before != chosen || !complete_;
    const Status bound = anew ? bind_all(*context) : bind_slots(*context);
    if (!bound.ok()) {
      slots_.swap(next_);
      specialization_ = before;
      if (before != chosen) form_views();
      // The earlier ones were accepted before; where even they are refused, the context says so at
      // the next inference.
      if (complete_) static_cast<void>(bind_all(*context));
      return bound;
    }
  }
  // Nothing is bound to the earlier memory any more.
  for (Slot& slot : next_) {
    slot.buffer.reset();
    slot.padding.reset();
    slot.box.reset();
  }
  given_.assign(buffers, buffers + count);
  parts_ = std::move(parts);
  copies_ = std::ranges::any_of(
      slots_, [](const Slot& s) { return s.place == Place::kCopied || s.place == Place::kPadded; });
  complete_ = all;
  return {};
}

bool BoundBuffers::point_view(std::size_t index) {
  const Slot& slot = slots_[index];
  const bool padded = slot.place == Place::kPadded;
  if (slot.place != Place::kHeap && !padded) return false;
  std::uint8_t* const data = padded ? slot.padding->memory.data() : slot.data;
  if (plan_->is_input(index))
    views_->inputs[index].data = data;
  else
    views_->outputs[index - plan_->inputs()].data = data;
  return true;
}

Status BoundBuffers::bind(Context& context, std::size_t index) {
  const Slot& slot = slots_[index];
  const bool in_process = point_view(index);
  if (plan_->is_input(index)) {
    if (in_process) return context.bind_input(index, views_->inputs[index]);
    if (slot.place == Place::kBuffer) return context.bind_input(index, slot.buffer);
    return context.unbind_input(index);
  }
  const std::size_t output = index - plan_->inputs();
  if (in_process) return context.bind_output(output, views_->outputs[output]);
  if (slot.place == Place::kBuffer) return context.bind_output(output, slot.buffer);
  return context.unbind_output(output);
}

Status BoundBuffers::bind_slots(Context& context) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    // What is bound already, and own memory that stays so, need nothing.
    const Slot& before = next_[i];
    const Slot& now = slots_[i];
    const bool inside = now.place == Place::kOwn || now.place == Place::kCopied;
    const bool was_inside = before.place == Place::kOwn || before.place == Place::kCopied;
    if (complete_ && inside && was_inside) continue;
    if (complete_ && now.place == before.place && now.buffer == before.buffer &&
        now.padding == before.padding && (now.data == before.data || now.padding != nullptr))
      continue;
    CORELANE_TRY(bind(context, i));
  }
  return {};
}

Status BoundBuffers::bind_all(Context& context) {
  // What is staged belongs to an earlier context, or is replaced by what is bound below.
  staged_.clear();
  if (plan_->specializations() > 1) {
    const auto& shapes = plan_->input_shapes(specialization_);
    bool in_process = true;
    for (std::size_t i = 0; i < slots_.size(); ++i) in_process = point_view(i) && in_process;
    if (in_process) return context.bind_all(shapes, views_->inputs, views_->outputs);
    CORELANE_TRY(context.set_input_shapes(shapes));
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) CORELANE_TRY(bind(context, i));
  return {};
}

bool BoundBuffers::replaces_input(const Slot& output) const noexcept {
  const auto overlap = [](auto one, std::size_t size, auto other, std::size_t other_size) {
    return one < other + other_size && other < one + size;
  };
  return std::any_of(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(plan_->inputs()),
                     [&](const Slot& in) {
                       if (in.place != Place::kHeap && in.place != Place::kBuffer) return false;
                       if (overlap(in.data, in.size, output.data, output.size)) return true;
                       // One file that is mapped at two places.
                       const Identity& a = in.identity;
                       const Identity& b = output.identity;
                       return in.place == Place::kBuffer && output.place == Place::kBuffer &&
                              a.inode != 0 && a.inode == b.inode && a.device == b.device &&
                              overlap(std::size_t{a.offset}, in.size, std::size_t{b.offset},
                                      output.size);
                     });
}

void BoundBuffers::mark(const Slot& output) const {
  // An input in the same memory must not be overwritten before it is read.
  if (output.data == nullptr || replaces_input(output)) return;
  if (output.place != Place::kHeap && output.place != Place::kBuffer) return;
  std::memset(output.data, 0xff, output.size);
  // What a cache still holds would be written over the results.
  if (output.place == Place::kBuffer)
    static_cast<void>(output.buffer->sync(device::SyncDirection::kToDevice, 0, output.size));
}

void BoundBuffers::mark_outputs() const {
  if (!check::enabled()) return;
  for (std::size_t i = plan_->inputs(); i < slots_.size(); ++i) mark(slots_[i]);
}

std::uint64_t BoundBuffers::begin_outputs(const void* program) const {
  if (!check::enabled()) return 0;
  const auto first = given_.begin() + static_cast<std::ptrdiff_t>(plan_->inputs());
  return check::outputs_begin(program, {first, given_.end()});
}

Cuts BoundBuffers::cuts() const {
  Cuts cuts;
  for (std::size_t i = plan_->inputs(); i < slots_.size(); ++i)
    if (slots_[i].place == Place::kPadded) cuts.push_back({slots_[i].padding, slots_[i].data});
  return cuts;
}

Paddings BoundBuffers::paddings() const {
  Paddings paddings;
  for (const Slot& slot : slots_)
    if (slot.place == Place::kPadded) paddings.push_back(slot.padding);
  return paddings;
}

Status BoundBuffers::stage(Context& context, std::size_t index) {
  const Slot& slot = slots_[index];
  CORELANE_ASSIGN(const MutableTensorView own, context.input(index));
  const auto flat = [](std::size_t bytes) {
    return Shape(std::vector<std::int64_t>{static_cast<std::int64_t>(bytes)});
  };
  auto staged = std::make_shared<Padding>(
      slot.box != nullptr ? *slot.box
                          : Box{flat(own.size), {0}, flat(std::min(own.size, slot.size)), 1});
  std::memcpy(staged->memory.data(), own.data, std::min(own.size, staged->memory.size()));
  TensorView view = plan_->form(index, specialization_);
  view.data = staged->memory.data();
  staged_.resize(plan_->inputs());
  CORELANE_TRY(context.bind_input(index, view));
  staged_[index] = std::move(staged);
  return {};
}

Status BoundBuffers::unstage(Context& context) {
  for (std::size_t i = 0; i < staged_.size(); ++i) {
    if (staged_[i] == nullptr) continue;
    CORELANE_TRY(context.unbind_input(i));
    CORELANE_ASSIGN(const MutableTensorView own, context.input(i));
    std::memcpy(own.data, staged_[i]->memory.data(), std::min(own.size, staged_[i]->memory.size()));
    staged_[i].reset();
  }
  staged_.clear();
  return {};
}

Result<Puts> BoundBuffers::copy_in_later(Context& context) {
  Puts puts;
  if (!copies_) return puts;
  CORELANE_TRY(unstage(context));
  for (std::size_t i = 0; i < plan_->inputs(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.place == Place::kCopied) {
      CORELANE_TRY(stage(context, i));
      puts.push_back({staged_[i], slot.data, slot.buffer});
    } else if (slot.place == Place::kPadded) {
      puts.push_back({slot.padding, slot.data, slot.buffer});
    }
  }
  return puts;
}

Status BoundBuffers::copy_partial(Context& context) {
  CORELANE_TRY(unstage(context));
  for (std::size_t i = 0; i < plan_->inputs(); ++i) {
    if (slots_[i].place == Place::kPadded) slots_[i].padding->put(slots_[i].data);
    if (slots_[i].place != Place::kCopied) continue;
    CORELANE_ASSIGN(const MutableTensorView own, context.input(i));
    const Slot& slot = slots_[i];
    if (slot.box == nullptr) {
      std::memcpy(own.data, slot.data, std::min(own.size, slot.size));
      continue;
    }
    auto* const whole = static_cast<std::uint8_t*>(own.data);
    slot.box->each_row([&](std::size_t place, std::size_t inside, std::size_t bytes) {
      std::memcpy(whole + place, slot.data + inside, bytes);
    });
  }
  return {};
}

std::vector<StateSlice> BoundBuffers::state_slices() const {
  std::vector<StateSlice> slices;
  for (std::size_t i = 0; i < plan_->inputs(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.place != Place::kOwn || slot.box == nullptr) continue;
    slices.push_back({i,
                      slot.box->start,
                      slot.box->extent,
                      {reinterpret_cast<const std::byte*>(slot.data), slot.size}});
  }
  return slices;
}

}  // namespace corelane::qaic
