#include "drivers/virtual/ort/ort_value.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "corelane/tensor/value.h"
#include "drivers/virtual/ort/ort_tensor.h"

namespace corelane::drivers::virtual_npu::ort {
namespace {

/// Makes values of the engine. `what` names the input in messages.
class Maker {
 public:
  Maker(const OrtLibrary& library, std::string what) : library_(library), what_(std::move(what)) {}

  Result<OwnedValue> make(const ValueView& value, const ValueType& type) const {
    switch (value.kind()) {
      case ValueKind::kTensor:
        return value.dtype() == DType::kString ? strings(value) : numbers(value);
      case ValueKind::kMap:
        return pair(value);
      case ValueKind::kOptional:
        if (value.size() == 0) return OwnedValue();
        return make(value.items().front(), type.inner());
      case ValueKind::kSequence:
        break;
    }
    return value.size() == 0 ? make_empty_sequence(library_, type.inner())
                             : sequence(value, type.inner());
  }

 private:
  /// The engine only reads what is bound as an input.
  Result<OwnedValue> numbers(const ValueView& value) const {
    const TensorView view = value.tensor();
    return wrap_tensor(library_, what_, view.dtype, const_cast<void*>(view.data), view.shape);
  }

  Result<OwnedValue> strings(const ValueView& value) const {
    const Shape shape = value.shape();
    CORELANE_ASSIGN(auto made,
                    (make_owned<OwnedValue, entry::CreateTensorAsOrtValue>(
                        library_, what_, Code::kOutOfMemory, library_.allocator(),
                        shape.dims().data(), shape.rank(), engine_type(DType::kString))));
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string_view text = value.string(i);
      char* place = nullptr;
      CORELANE_TRY(library_.call<entry::GetResizedStringTensorElementBuffer>(
          what_, Code::kOutOfMemory, made.get(), i, text.size(), &place));
      if (!text.empty()) std::memcpy(place, text.data(), text.size());
    }
    return made;
  }

  Result<OwnedValue> pair(const ValueView& map) const {
    std::vector<OwnedValue> parts;
    for (const ValueView& part : {map.keys(), map.values()}) {
      CORELANE_ASSIGN(OwnedValue made, make(part, {}));
      parts.push_back(std::move(made));
    }
    return together(parts, ONNX_TYPE_MAP);
  }

  Result<OwnedValue> sequence(const ValueView& value, const ValueType& within) const {
    std::vector<OwnedValue> parts;
    parts.reserve(value.size());
    for (const ValueView& item : value.items()) {
      CORELANE_ASSIGN(OwnedValue made, make(item, within));
      parts.push_back(std::move(made));
    }
    return together(parts, ONNX_TYPE_SEQUENCE);
  }

  /// The engine's value shares the parts.
  Result<OwnedValue> together(const std::vector<OwnedValue>& parts, ONNXType type) const {
    std::vector<const OrtValue*> values;
    values.reserve(parts.size());
    for (const OwnedValue& part : parts) values.push_back(part.get());
    return make_owned<OwnedValue, entry::CreateValue>(library_, what_, Code::kTypeMismatch,
                                                      values.data(), values.size(), type);
  }

  const OrtLibrary& library_;
  const std::string what_;
};

/// Writes values of the engine.
class ValueWriter {
 public:
  ValueWriter(const OrtLibrary& library, const std::string& name)
      : library_(library), name_(name) {}

  Status write(OrtValue* value, const ValueType& type) {
    if (type.kind() == ValueKind::kOptional) {
      int there = 0;
      CORELANE_TRY(library_.call<entry::HasValue>(name_, Code::kEngineFailed, value, &there));
      out_.optional(there != 0);
      return there != 0 ? write(value, type.inner()) : Status();
    }
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    CORELANE_TRY(library_.call<entry::GetValueType>(name_, Code::kEngineFailed, value, &kind));
    if (kind == ONNX_TYPE_TENSOR) return tensor(value);
    std::size_t count = 0;
    CORELANE_TRY(library_.call<entry::GetValueCount>(name_, Code::kEngineFailed, value, &count));
    if (kind == ONNX_TYPE_MAP) {
      count = 2;  // Keys and values.
      out_.map(type.layers.empty() ? DType::kUndefined : type.layers[0].key);
    } else if (kind == ONNX_TYPE_SEQUENCE) {
      out_.sequence(count);
    } else {
      return error(Code::kUnsupported, "output '{}' is of the engine's kind {}", name_,
                   static_cast<int>(kind));
    }
    for (std::size_t i = 0; i < count; ++i) {
      CORELANE_ASSIGN(const auto item, (make_owned<OwnedValue, entry::GetValue>(
                                           library_, name_, Code::kEngineFailed, value,
                                           static_cast<int>(i), library_.allocator())));
      CORELANE_TRY(write(item.get(), kind == ONNX_TYPE_MAP ? ValueType() : type.inner()));
    }
    return {};
  }

  Result<ByteVector> finish() { return out_.finish(); }

 private:
  Status tensor(OrtValue* value) {
    CORELANE_ASSIGN(const TensorForm form, form_of(library_, name_, value));
    if (form.dtype == DType::kString) return strings(value, form.shape);
    const std::size_t size = dtype_bytes(form.dtype, form.shape.elements().value_or(0));
    void* data = nullptr;
    if (size > 0)
      CORELANE_TRY(
          library_.call<entry::GetTensorMutableData>(name_, Code::kEngineFailed, value, &data));
    out_.tensor({data, size, form.dtype, form.shape, {}, {}});
    return {};
  }

  Status strings(const OrtValue* value, const Shape& shape) {
    const std::size_t count = shape.elements().value_or(0);
    std::size_t size = 0;
    CORELANE_TRY(
        library_.call<entry::GetStringTensorDataLength>(name_, Code::kEngineFailed, value, &size));
    std::string text(size, '\0');
    std::vector<std::size_t> starts(count);
    CORELANE_TRY(library_.call<entry::GetStringTensorContent>(name_, Code::kEngineFailed, value,
                                                              static_cast<void*>(text.data()), size,
                                                              starts.data(), count));
    std::vector<std::string_view> parts(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = i + 1 < count ? starts[i + 1] : size;
      parts[i] = std::string_view(text).substr(starts[i], end - starts[i]);
    }
    out_.strings(shape, parts);
    return {};
  }

  const OrtLibrary& library_;
  const std::string& name_;
  ValueBuilder out_;
};

}  // namespace

Result<OwnedValue> value_of_flat(const OrtLibrary& library, const TensorDesc& desc, ByteSpan bytes,
                                 ByteVector& aligned) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) != 0) {
    aligned.assign(bytes.begin(), bytes.end());
    bytes = aligned;
  }
  const std::string what = fmt::format("input '{}'", desc.name);
  auto value = corelane::read_value(bytes);
  if (!value)
    return error(value.error().wrap(
        fmt::format("{} is a {}, in its flat form", what, desc.value.to_string())));
  CORELANE_TRY(value->check(desc.value, what));
  return Maker(library, what).make(*value, desc.value);
}

Result<ByteVector> flat_of_value(const OrtLibrary& library, const TensorDesc& desc,
                                 OrtValue* value) {
  ValueWriter writer(library, desc.name);
  CORELANE_TRY(writer.write(value, desc.value));
  return writer.finish();
}

}  // namespace corelane::drivers::virtual_npu::ort
