#include "adapters/python/py_flat.h"

#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_package.h"
#include "adapters/python/py_values.h"
#include "corelane/tensor/value.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

/// Calls `use` with a value of the C++ type of a number; false for types that Python has no
/// numbers for.
template <class F>
bool with_number(DType type, F use) {
  switch (type) {
    case DType::kF32:
      use(float{});
      return true;
    case DType::kF64:
      use(double{});
      return true;
    case DType::kI8:
      use(std::int8_t{});
      return true;
    case DType::kU8:
      use(std::uint8_t{});
      return true;
    case DType::kI16:
      use(std::int16_t{});
      return true;
    case DType::kU16:
      use(std::uint16_t{});
      return true;
    case DType::kI32:
      use(std::int32_t{});
      return true;
    case DType::kU32:
      use(std::uint32_t{});
      return true;
    case DType::kI64:
      use(std::int64_t{});
      return true;
    case DType::kU64:
      use(std::uint64_t{});
      return true;
    default:
      return false;
  }
}

/// The text of a str or bytes, which the object keeps.
std::string_view text_of(nb::handle value) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(value.ptr())) {
    char* bytes = nullptr;
    PyBytes_AsStringAndSize(value.ptr(), &bytes, &size);
    return {bytes, static_cast<std::size_t>(size)};
  }
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return {text, static_cast<std::size_t>(size)};
}

class Encoder {
 public:
  explicit Encoder(const std::string& name) : name_(name) {}

  void add(nb::handle value, const ValueType& type) {
    switch (type.kind()) {
      case ValueKind::kTensor:
        return type.element == DType::kString ? strings(value, type) : numbers(value, type);
      case ValueKind::kSequence:
        return sequence(value, type);
      case ValueKind::kMap:
        return map(value, type);
      case ValueKind::kOptional:
        out_.optional(!value.is_none());
        if (!value.is_none()) add(value, type.inner());
    }
  }

  ByteVector finish() { return value_of(out_.finish()); }

 private:
  [[noreturn]] void mismatch(nb::handle value, const ValueType& type, const char* takes) {
    raise(error(Code::kTypeMismatch, "input '{}' is a {}, which takes {}; given {}", name_,
                type.to_string(), takes, Py_TYPE(value.ptr())->tp_name)
              .with(Detail::kInput, name_)
              .with(Detail::kAllowed, type.to_string()));
  }

  void numbers(nb::handle value, const ValueType& type) {
    TensorDesc desc;
    desc.name = name_;
    desc.dtype = type.element;
    desc.shape = type.shape.value_or(Shape{Shape::kOpen});
    const ArrayView array = read_array(value, desc);
    if (array.view.dtype != type.element) mismatch(value, type, "arrays of its element type");
    out_.tensor(array.view);
  }

  void strings(nb::handle value, const ValueType& type) {
    const nb::tuple found = nb::cast<nb::tuple>(parked_at_end(
        [&] { return package().strings_of(value, text(name_), text(type.to_string())); }));
    std::vector<std::int64_t> dims;
    for (const nb::handle size : nb::cast<nb::tuple>(found[0]))
      dims.push_back(nb::cast<std::int64_t>(size));
    const nb::list elements = nb::cast<nb::list>(found[1]);
    std::vector<std::string_view> texts;
    texts.reserve(nb::len(elements));
    for (const nb::handle element : elements) texts.push_back(text_of(element));
    out_.strings(Shape(std::move(dims)), texts);
  }

  void sequence(nb::handle value, const ValueType& type) {
    if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) mismatch(value, type, "a list");
    // Reading an array may run Python code, so the list is not walked in place.
    const nb::object items = nb::steal(PySequence_Tuple(value.ptr()));
    const ValueType within = type.inner();
    out_.sequence(nb::len(items));
    for (const nb::handle item : items) add(item, within);
  }

  void map(nb::handle value, const ValueType& type) {
    if (!PyDict_Check(value.ptr())) mismatch(value, type, "a dict");
    const nb::object items = nb::steal(PyDict_Items(value.ptr()));
    std::vector<nb::handle> keys;
    std::vector<nb::handle> values;
    for (const nb::handle item : items) {
      keys.emplace_back(PyTuple_GET_ITEM(item.ptr(), 0));
      values.emplace_back(PyTuple_GET_ITEM(item.ptr(), 1));
    }
    out_.map(type.layers[0].key);
    list_of(keys, type.layers[0].key, type, value);
    list_of(values, type.element, type, value);
  }

  /// A tensor of rank 1 of these objects.
  void list_of(const std::vector<nb::handle>& items, DType dtype, const ValueType& type,
               nb::handle whole) {
    const Shape shape{static_cast<std::int64_t>(items.size())};
    if (dtype == DType::kString) {
      std::vector<std::string_view> texts;
      for (const nb::handle item : items) {
        if (!PyUnicode_Check(item.ptr()) && !PyBytes_Check(item.ptr()))
          mismatch(whole, type, "a dict with str in its place");
        texts.push_back(text_of(item));
      }
      out_.strings(shape, texts);
      return;
    }
    const bool known = with_number(dtype, [&]<class T>(T) {
      std::vector<T> numbers;
      for (const nb::handle item : items) {
        T number{};
        // Numbers of numpy are converted as Python's are.
        const nb::object plain = std::is_floating_point_v<T>
                                     ? nb::steal(PyNumber_Float(item.ptr()))
                                     : nb::steal(PyNumber_Index(item.ptr()));
        if (!plain.is_valid() || !nb::try_cast<T>(plain, number)) {
          PyErr_Clear();
          mismatch(whole, type, "a dict with numbers in their place");
        }
        numbers.push_back(number);
      }
      out_.tensor({numbers.data(), numbers.size() * sizeof(T), dtype, shape, {}, {}});
    });
    if (!known) mismatch(whole, type, "no dict of Python");
  }

  const std::string& name_;
  ValueBuilder out_;
};

nb::object text_object(std::string_view text) {
  nb::object made =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

/// The elements of a tensor of rank 1, as Python's own values.
std::vector<nb::object> plain_list(const ValueView& tensor) {
  std::vector<nb::object> items;
  items.reserve(tensor.size());
  if (tensor.dtype() == DType::kString) {
    for (std::size_t i = 0; i < tensor.size(); ++i) items.push_back(text_object(tensor.string(i)));
    return items;
  }
  const auto* const data = static_cast<const std::byte*>(tensor.tensor().data);
  const bool known = with_number(tensor.dtype(), [&]<class T>(T number) {
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      std::memcpy(&number, data + i * sizeof(T), sizeof(T));
      items.push_back(nb::cast(number));
    }
  });
  if (!known)
    raise(error(Code::kUnsupported, "Python has no number for {}", dtype_name(tensor.dtype())));
  return items;
}

/// True for two tensors of the same type, shape and elements.
bool is_same(const ValueView& a, const ValueView& b) {
  if (a.kind() != ValueKind::kTensor || a.dtype() != b.dtype() || a.size() != b.size())
    return false;
  if (a.dtype() != DType::kString) {
    const TensorView one = a.tensor();
    return one.size == 0 || std::memcmp(one.data, b.tensor().data, one.size) == 0;
  }
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.string(i) != b.string(i)) return false;
  return true;
}

class Decoder {
 public:
  nb::object decode(const ValueView& value) {
    switch (value.kind()) {
      case ValueKind::kTensor:
        return tensor(value);
      case ValueKind::kMap:
        return map(value);
      case ValueKind::kOptional:
        return value.size() == 0 ? nb::none() : decode(value.items().front());
      case ValueKind::kSequence:
        break;
    }
    nb::list list;
    for (const ValueView& item : value.items()) list.append(decode(item));
    return list;
  }

 private:
  static nb::object tensor(const ValueView& value) {
    if (value.dtype() != DType::kString)
      return make_array(value_of(Tensor::copy_of("", value.tensor())));
    nb::list texts;
    for (std::size_t i = 0; i < value.size(); ++i) texts.append(text_object(value.string(i)));
    return parked_at_end([&] {
      return nb::object(package().string_array(texts, nb::tuple(nb::cast(value.shape().dims()))));
    });
  }

  /// The rows of a classifier all have the same keys.
  nb::object map(const ValueView& value) {
    const ValueView keys = value.keys();
    if (!is_same(keys, last_)) {
      keys_ = plain_list(keys);
      last_ = keys;
    }
    const std::vector<nb::object> values = plain_list(value.values());
    nb::dict dict;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (PyDict_SetItem(dict.ptr(), keys_[i].ptr(), values[i].ptr()) != 0)
        throw nb::python_error();
    return dict;
  }

  ValueView last_;  ///< Keys of the last map, and the objects made of them.
  std::vector<nb::object> keys_;
};

}  // namespace

ArrayView encode_value(nb::handle value, const TensorDesc& desc) {
  Encoder encoder(desc.name);
  encoder.add(value, desc.value);
  const auto bytes = std::make_shared<const ByteVector>(encoder.finish());
  ArrayView array;
  array.view = flat_view(*bytes);
  array.keep_alive = bytes;
  return array;
}

nb::object decode_value(const Tensor& tensor) {
  const auto* const data = static_cast<const std::byte*>(tensor.data.get());
  return Decoder().decode(value_of(read_value(ByteSpan(data, tensor.size))));
}

}  // namespace corelane::python
