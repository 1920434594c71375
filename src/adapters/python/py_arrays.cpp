#include "adapters/python/py_arrays.h"

#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "adapters/interpreter/held_buffer.h"
#include "adapters/interpreter/py_gate.h"
#include "adapters/python/py_errors.h"
#include "adapters/python/py_flat.h"
#include "adapters/python/py_once.h"
#include "adapters/python/py_package.h"
#include "adapters/python/py_values.h"
#include "corelane/tensor/element_bits.h"

namespace corelane::python {

using namespace interpreter;

namespace nb = nanobind;

namespace {

DType by_size(Py_ssize_t size, DType one, DType two, DType four, DType eight) noexcept {
  return size == 1   ? one
         : size == 2 ? two
         : size == 4 ? four
         : size == 8 ? eight
                     : DType::kUndefined;
}

/// The element type of a buffer's format; kUndefined for other byte orders and for structures.
DType dtype_of_format(const char* format, Py_ssize_t size) noexcept {
  std::string_view text = format == nullptr ? "B" : format;
  if (text.size() == 2 && (text[0] == '@' || text[0] == '=' || text[0] == '<'))
    text.remove_prefix(1);
  if (text.size() != 1) return DType::kUndefined;
  // struct's letters. The size decides, since that of "l" differs between systems.
  switch (text[0]) {
    case 'f':
      return DType::kF32;
    case 'd':
      return DType::kF64;
    case 'e':
      return DType::kF16;
    case '?':
      return DType::kBool;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return by_size(size, DType::kI8, DType::kI16, DType::kI32, DType::kI64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return by_size(size, DType::kU8, DType::kU16, DType::kU32, DType::kU64);
    default:
      return DType::kUndefined;
  }
}

/// False, without a Python error, when the object shows no such memory.
bool view_buffer(nb::handle value, int flags, ArrayView& array) {
  auto held = HeldBuffer::of(value.ptr(), flags);
  if (held == nullptr) {
    PyErr_Clear();
    return false;
  }
  const Py_buffer& buffer = held->buffer;
  array.view.dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (array.view.dtype == DType::kUndefined) return false;
  array.view.data = buffer.buf;
  array.view.size = static_cast<std::size_t>(buffer.len);
  array.view.shape = Shape(std::vector<std::int64_t>(buffer.shape, buffer.shape + buffer.ndim));
  array.keep_alive = std::move(held);
  return true;
}

constexpr int kReading = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;

/// The buffer of a Tensor, which the arrays made over it keep alive.
int get_memory(PyObject* self, Py_buffer* view, int flags) {
  const Tensor* tensor = nb::inst_ptr<Tensor>(self);
  return PyBuffer_FillInfo(view, self, tensor->data.get(), static_cast<Py_ssize_t>(tensor->size), 0,
                           flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_memory)},
                              {0, nullptr}};

/// numpy.ndarray and the dtypes, looked up once and never dropped.
struct Numpy {
  nb::object ndarray;
  /// By DType; None for types that numpy does not have.
  std::array<nb::object, kDTypeCount> dtypes;
};

const Numpy& numpy() {
  static constinit std::atomic<const Numpy*> known{nullptr};
  return made_once(known, [] {
    auto* made = new Numpy;
    made->ndarray = nb::module_::import_("numpy").attr("ndarray");
    for (std::size_t i = 1; i < made->dtypes.size(); ++i)
      made->dtypes[i] = package().dtype_of(onnx_type_of(static_cast<DType>(i)));
    return made;
  });
}

nb::handle numpy_dtype(DType type) {
  const nb::object& dtype = numpy().dtypes[static_cast<std::size_t>(type)];
  if (dtype.is_valid() && !dtype.is_none()) return dtype;
  raise(error(Code::kUnsupported, "numpy has no element type for {}", dtype_name(type)));
}

/// Packs elements that an array holds one a byte.
void pack(ArrayView& array) {
  const ByteSpan elements(static_cast<const std::byte*>(array.view.data), array.view.size);
  const auto packed =
      std::make_shared<const ByteVector>(value_of(pack_bits(elements, array.view.dtype)));
  array.view.data = packed->data();
  array.view.size = packed->size();
  array.keep_alive = packed;
}

/// The same tensor with an element in each byte, as numpy has them.
Tensor unpacked(const Tensor& tensor) {
  const auto bits = std::make_shared<ByteVector>(value_of(unpack_bits(tensor.view())));
  Tensor made = tensor;
  made.data = std::shared_ptr<void>(bits, bits->data());
  made.size = bits->size();
  return made;
}

}  // namespace

ArrayView read_array(nb::handle value, const TensorDesc& desc) {
  if (!desc.value.empty()) return encode_value(value, desc);
  ArrayView array;
  if (view_buffer(value, kReading, array)) return array;
  // An array that shows its memory, and its element type where numpy's format does not say it.
  const nb::object plain = parked_at_end([&] {
    return package().coerce(value, text(desc.name), onnx_type_of(desc.dtype), desc.shape.rank());
  });
  const nb::tuple pair = nb::cast<nb::tuple>(plain);
  if (!view_buffer(pair[0], kReading, array)) {
    raise(error(Code::kTypeMismatch, "input '{}': numpy type {} is not an element type of a tensor",
                desc.name, nb::str(nb::object(pair[0].attr("dtype"))).c_str()));
  }
  if (const int type = nb::cast<int>(pair[1]); type != 0) array.view.dtype = dtype_from_onnx(type);
  if (dtype_bits(array.view.dtype) < 8) pack(array);
  return array;
}

ArrayView read_writable(nb::handle value) {
  ArrayView array;
  if (view_buffer(value, kReading | PyBUF_WRITABLE, array)) return array;
  raise(error(Code::kInvalidArgument,
              "memory for an output must be a writable C-contiguous array of native byte order"));
}

nb::object make_array(const Tensor& given) {
  if (!given.value.empty()) return decode_value(given);
  const Tensor tensor = dtype_bits(given.dtype) < 8 ? unpacked(given) : given;
  const nb::handle dtype = numpy_dtype(tensor.dtype);
  const std::size_t rank = tensor.shape.rank();
  // The C API, since this is the cost of each output of each call.
  const nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(rank)));
  for (std::size_t i = 0; i < rank; ++i)
    PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(tensor.shape[i]));
  const nb::object memory = nb::cast(tensor);
  PyObject* const arguments[] = {shape.ptr(), dtype.ptr(), memory.ptr()};
  PyObject* const array = PyObject_Vectorcall(numpy().ndarray.ptr(), arguments, 3, nullptr);
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

void bind_arrays(nb::module_& module) {
  nb::class_<Tensor>(module, "Memory", nb::type_slots(memory_slots));
}

}  // namespace corelane::python
