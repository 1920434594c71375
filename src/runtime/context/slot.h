/// Where one tensor of a context lies, and how it gets there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "corelane/device/device.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/desc.h"

namespace corelane::runtime {

enum class SlotMode : std::uint8_t {
  kOwn,        ///< The context's own memory.
  kDirect,     ///< User memory the device uses as it is.
  kBuffer,     ///< A device buffer, used as it is.
  kConverted,  ///< User memory, converted from or to own memory at each run.
  kKept,       ///< State: memory of the context or its activation, another one at each run.
};

/// The caller's request (mode, view, convert, buffer) and the context's own memory (own).
struct Slot {
  SlotMode mode = SlotMode::kOwn;
  MutableTensorView view;  ///< Of user memory or buffer. Inputs are read only.
  ConvertOptions convert;  ///< Inputs in mode kConverted.
  std::shared_ptr<device::Buffer> buffer;
  device::TensorRef own;     ///< Own memory once it is known; null data before.
  bool foreign_own = false;  ///< `own` was allocated here, not by the device's bindings.

  /// True when its user has given the memory.
  bool given() const noexcept { return mode != SlotMode::kOwn && mode != SlotMode::kKept; }
  /// True when the device uses what was bound, without a copy in between.
  bool in_place() const noexcept { return mode == SlotMode::kDirect || mode == SlotMode::kBuffer; }
};

/// True for elements at their natural alignment.
bool is_aligned(const void* data, DType dtype) noexcept;

/// True when the device can compute with `view` as it is: dtype of `desc`, plain layout without
/// gaps, no quantization, elements at their natural alignment. The shape is not checked.
bool is_program_form(const TensorDesc& desc, const TensorView& view) noexcept;

/// kTypeMismatch, kInvalidArgument (null, size, layout) naming the tensor ("input 'x'"), unless the
/// static `view` can be converted from or to `desc`'s type and holds its shape. `side`:
/// Detail::kInput or kOutput.
Status check_view(const TensorDesc& desc, const TensorView& view, Detail side);

/// The part of a buffer from `offset` on, in the form of `desc`; whether it is large enough is for
/// check_view(). kInvalidArgument (null) or kOutOfRange (offset), naming the tensor.
Result<MutableTensorView> buffer_view(const TensorDesc& desc,
                                      const std::shared_ptr<device::Buffer>& buffer,
                                      std::size_t offset, Detail side);

}  // namespace corelane::runtime
