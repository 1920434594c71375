/// The buffers that a user gives for inferences, and how they reach a context.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/qaic/api/qaic_edge.h"
#include "adapters/qaic/program/qaic_padding.h"
#include "corelane/runtime/context.h"
#include "corelane/tensor/desc.h"

namespace corelane::device {
class Buffer;
class Device;
}  // namespace corelane::device

namespace corelane::qaic {

class BufferPlan;
struct SlicePart;

/// Some of the buffers, by their index, in full or in part.
struct SomeBuffers {
  std::span<const std::uint32_t> indices;
  const QBuffer* buffers = nullptr;
  /// Null, or one for each: extents of slices; a null one says nothing.
  const QBufferDimensions* dims = nullptr;
  /// Where the slice of each buffer begins; empty: the buffer is given whole.
  std::vector<std::vector<std::int64_t>> starts;
};

/// One caller at a time.
///
/// Memory of the process and descriptors are used as they are. A partial input in memory of the
/// process is copied into the context's own memory just before each inference; one that is left out
/// keeps what it had. State that is left out stays on the device.
class BoundBuffers {
 public:
  BoundBuffers(std::shared_ptr<const BufferPlan> plan, std::shared_ptr<device::Device> device);

  /// Makes buffers of the device for all tensors, and uses them from here on.
  Status make_own();
  /// Checks and takes `count` buffers, and binds them where `context` is one. A failure changes
  /// nothing. `dims`: null, or one for each.
  Outcome set(std::size_t count, const QBuffer* buffers, const QBufferDimensions* dims,
              Context* context);
  /// The same for some buffers; the others stay as they are. Until all required buffers were set,
  /// the buffers are only kept, and an inference cannot begin.
  /// If the earlier dimensions were covered by a specialization, they stay, too.
  /// A slice of an input is written to its place before each inference, into the context's own
  /// memory or the state on the device; what is around it stays. A slice of an output is cut out
  /// of the whole output.
  Outcome set_some(const SomeBuffers& some, Context* context);
  /// The slices of state that an inference with these buffers writes.
  std::vector<StateSlice> state_slices() const;
  /// Whether dimensions that are of no specialization are taken where one covers them: its inputs
  /// are padded with zeros, its results cut. For the buffers that are set from here on.
  void set_covering(bool on) noexcept { covering_ = on; }
  /// The specialization of the buffers as they are set.
  std::size_t specialization() const noexcept { return specialization_; }
  /// What is cut once an inference with these buffers has ended well; may be empty.
  Cuts cuts() const;
  /// The memory that inferences with these buffers use in place of the user's. A caller that may
  /// outlive the buffers keeps it until the inferences have ended.
  Paddings paddings() const;
  /// Whether all buffers that an inference needs are set.
  bool complete() const noexcept { return complete_; }
  /// Says in a message what is missing: "misses buffer 0 ('x')".
  std::string lack() const;
  /// Binds all buffers to another context.
  Status bind_all(Context& context);
  /// Called just before an inference that may start at once.
  Status copy_in(Context& context) { return copies_ ? copy_partial(context) : Status(); }
  /// Called just before an inference that has to wait: gives what copy_in() would copy, to be
  /// copied when the inference's turn comes, into memory of its own.
  Result<Puts> copy_in_later(Context& context);
  /// In the checking mode, called just before an inference that may start at once: fills its
  /// results with bytes of 0xff.
  void mark_outputs() const;
  /// The number of check::outputs_begin() for an inference of `program`.
  std::uint64_t begin_outputs(const void* program) const;
  /// The buffers as they were set, or those of make_own(); empty before either.
  std::span<QBuffer> given() noexcept { return given_; }

 private:
  /// A descriptor's memory, whatever its number.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint32_t offset = 0;
    std::size_t size = 0;
    bool operator==(const Identity&) const = default;
  };
  enum class Place : std::uint8_t {
    kOwn,     ///< The context's own memory.
    kHeap,    ///< Memory of the process, used as it is.
    kCopied,  ///< A partial input, copied before each inference.
    kBuffer,  ///< A buffer of the device.
    /// Memory of the process that is smaller than the specialization's, or an input whose elements
    /// are not aligned.
    kPadded,
  };
  struct Slot {
    Place place = Place::kOwn;
    std::uint8_t* data = nullptr;
    std::size_t size = 0;  ///< Bytes given.
    std::shared_ptr<device::Buffer> buffer;
    Identity identity;
    std::shared_ptr<Padding> padding;
    std::shared_ptr<const Box> box;  ///< The box of an input's slice; null: no slice.
    bool left_out = false;
  };

  /// Dimensions of a buffer.
  struct Extents {
    std::uint32_t element = 0;  ///< Bytes.
    std::vector<std::uint32_t> dims;
  };

  void keep_extents(const QBufferDimensions* dims);
  Outcome cover_some(const std::vector<QBuffer>& all, const SomeBuffers& some, Context* context);
  using Parts = std::vector<std::shared_ptr<const SlicePart>>;
  /// Takes all buffers for the specialization `chosen`, or changes nothing. `parts`: by buffer, or
  /// empty. `missing` (empty: none): these buffers may follow, and nothing is bound before.
  Outcome exchange(const QBuffer* buffers, const QBufferDimensions* dims, Parts parts,
                   const std::vector<bool>& missing, std::size_t chosen, Context* context);
  Outcome take(std::size_t index, const QBuffer& given, const QBufferDimensions* dims, Slot& slot);
  Outcome take_padded(std::size_t index, const QBuffer& given, const QBufferDimensions& dims,
                      Slot& slot);
  Outcome take_unaligned(std::size_t index, Slot& slot);
  Outcome take_slice(std::size_t index, const QBuffer& given, const SlicePart& part, Slot& slot);
  /// Memory for a box of a whole tensor; the earlier memory where that was for the same box.
  std::shared_ptr<Padding> padding_for(std::size_t index, Box box) const;
  Outcome take_descriptor(std::size_t index, const QBuffer& given, Slot& slot);
  Status bind(Context& context, std::size_t index);
  Status bind_slots(Context& context);
  /// Chooses the views of the specialization, and makes them at its first use.
  void form_views();
  /// Points the view of a buffer at its memory; false when that is not memory of the process.
  bool point_view(std::size_t index);
  void mark(const Slot& output) const;
  /// Whether an input is read where the output is written.
  bool replaces_input(const Slot& output) const noexcept;
  Status copy_partial(Context& context);
  /// Memory of its own for an input that is kCopied, with what the context's memory holds.
  Status stage(Context& context, std::size_t index);
  /// Gives what copy_in_later() bound back to the context's own memory.
  Status unstage(Context& context);

  const std::shared_ptr<const BufferPlan> plan_;
  const std::shared_ptr<device::Device> device_;
  std::vector<Slot> slots_;
  std::vector<Slot> next_;  ///< While buffers are taken.
  std::vector<Slot> own_;   ///< Made by make_own(); may be empty.
  std::vector<QBuffer> given_;
  std::vector<Extents> extents_;  ///< Of the set buffers, with covering; empty: none were given.
  Parts parts_;                   ///< From set_some(), by buffer; empty: all are given whole.
  std::size_t specialization_ = 0;
  /// For memory of the process.
  struct Views {
    std::vector<TensorView> inputs;
    std::vector<MutableTensorView> outputs;
  };
  std::vector<Views> forms_;  ///< For each specialization.
  Views* views_ = nullptr;    ///< For the chosen specialization.
  /// By input, the memory that copy_in_later() bound; empty, or null: none.
  std::vector<std::shared_ptr<Padding>> staged_;
  bool complete_ = false;
  bool copies_ = false;  ///< Some input is kCopied or kPadded.
  bool covering_ = false;
};

}  // namespace corelane::qaic
