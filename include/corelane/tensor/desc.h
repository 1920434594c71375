/// The description of one input or output, tensor or other value, and views of tensors in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/layout.h"
#include "corelane/tensor/quant.h"
#include "corelane/tensor/shape.h"

namespace corelane {

enum class ValueKind : std::uint8_t { kTensor = 1, kSequence = 2, kMap = 3, kOptional = 4 };

/// One layer around a tensor.
struct ValueLayer {
  ValueKind kind = ValueKind::kSequence;
  DType key = DType::kUndefined;  ///< Of a map; else undefined.
  bool operator==(const ValueLayer&) const = default;
};

/// What a value is: layers, the outermost first, around a tensor. A default-made one stands for an
/// ordinary tensor, of which TensorDesc says everything. A value; any thread.
struct CORELANE_API ValueType {
  std::vector<ValueLayer> layers;
  DType element = DType::kUndefined;   ///< Of the tensor within; kString is one.
  std::optional<Shape> shape;          ///< Declared of that tensor; nullopt: of any rank.
  std::vector<std::string> dim_names;  ///< As TensorDesc::dim_names.

  /// True for an ordinary tensor.
  bool empty() const noexcept { return element == DType::kUndefined; }
  /// True for a tensor, of strings or of numbers.
  bool is_tensor() const noexcept { return !empty() && layers.empty(); }
  /// The outermost kind.
  ValueKind kind() const noexcept { return layers.empty() ? ValueKind::kTensor : layers[0].kind; }
  /// The type within the outermost layer; of a tensor, an empty one.
  ValueType inner() const;
  /// In ONNX's words: "seq(map(int64,tensor(float)))"; "" for an ordinary tensor.
  std::string to_string() const;
  bool operator==(const ValueType&) const = default;
};

/// What one input or output is: shape in model order, element type, layout in memory, quantization.
struct CORELANE_API TensorDesc {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;  ///< Open dimensions are Shape::kOpen.
  Layout layout;
  Quant quant;
  std::vector<std::string> dim_names;  ///< Symbol of each dimension, "" where fixed; may be empty.
  /// What the memory holds if it is not a plain tensor of numbers: then dtype is u8, the shape is
  /// [?], and the bytes are the value's flat form (corelane/tensor/value.h), never converted.
  ValueType value;
  /// An output whose rank the engine knows after a run only; the shape is [?], or as declared.
  bool any_rank = false;

  /// Bytes of a static shape in this layout; see storage_bytes().
  Result<std::size_t> bytes() const { return storage_bytes(shape, dtype, layout); }
  /// "x: f32 [1, 3, 224, 224] plain", "x: tensor(string) [?, 3]".
  std::string to_string() const;
  bool operator==(const TensorDesc&) const = default;
};

/// Read-only memory that holds a tensor. Borrowed: the memory must outlive the view.
struct TensorView {
  const void* data = nullptr;
  std::size_t size = 0;  ///< Bytes that may be read.
  DType dtype = DType::kUndefined;
  Shape shape;
  Layout layout;
  Quant quant;
};

/// The same for memory that is written.
struct MutableTensorView {
  void* data = nullptr;
  std::size_t size = 0;
  DType dtype = DType::kUndefined;
  Shape shape;
  Layout layout;
  Quant quant;
  /// The same memory, to be read only.
  operator TensorView() const {  // NOLINT(google-explicit-constructor)
    return {data, size, dtype, shape, layout, quant};
  }
};

}  // namespace corelane
