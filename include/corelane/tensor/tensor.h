/// A tensor that owns its memory, or keeps the owner alive: what sessions return and schedulers
/// carry.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"

namespace corelane {

/// A cheap value: copies share the memory, and the last one frees it. The bytes are not
/// synchronised between threads.
struct CORELANE_API Tensor {
  std::string name;  ///< Of the output it came from; may be empty.
  DType dtype = DType::kUndefined;
  Shape shape;  ///< Static, model order.
  Layout layout;
  Quant quant;                 ///< Of raw quantized outputs; else none.
  std::shared_ptr<void> data;  ///< Aligned to 64 bytes where the library allocated it.
  std::size_t size = 0;        ///< Bytes.
  ValueType value;             ///< Not empty: the bytes are a flat form (corelane/tensor/value.h).

  /// Fresh memory, not zeroed. kInvalidArgument for an open shape or a size that overflows,
  /// kOutOfMemory.
  static Result<Tensor> allocate(std::string name, DType dtype, Shape shape);
  /// Fresh memory with a copy of what `view` shows, as it is.
  static Result<Tensor> copy_of(std::string name, const TensorView& view);

  /// What it holds, to be read; valid as long as the memory.
  TensorView view() const { return {data.get(), size, dtype, shape, layout, quant}; }
  /// The same, to be written.
  MutableTensorView mutable_view() { return {data.get(), size, dtype, shape, layout, quant}; }
};

}  // namespace corelane
