#include "drivers/virtual/engine/engine_runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <utility>

#include "base/fork.h"
#include "base/guard.h"
#include "base/leaked.h"

namespace corelane::drivers::virtual_npu {
namespace {

struct TypePair {
  DType dtype;
  ov::element::Type_t engine;
};

/// Strings are missing: no device computes with them.
constexpr std::array<TypePair, 15> kTypes = {{
    {DType::kF32, ov::element::Type_t::f32},
    {DType::kF16, ov::element::Type_t::f16},
    {DType::kBF16, ov::element::Type_t::bf16},
    {DType::kF64, ov::element::Type_t::f64},
    {DType::kI4, ov::element::Type_t::i4},
    {DType::kI8, ov::element::Type_t::i8},
    {DType::kU8, ov::element::Type_t::u8},
    {DType::kI16, ov::element::Type_t::i16},
    {DType::kU16, ov::element::Type_t::u16},
    {DType::kI32, ov::element::Type_t::i32},
    {DType::kU32, ov::element::Type_t::u32},
    {DType::kI64, ov::element::Type_t::i64},
    {DType::kU64, ov::element::Type_t::u64},
    {DType::kBool, ov::element::Type_t::boolean},
    {DType::kU4, ov::element::Type_t::u4},
}};

ov::element::Type precision_of(device::Precision precision) {
  switch (precision) {
    case device::Precision::kF16:
      return ov::element::f16;
    case device::Precision::kBF16:
      return ov::element::bf16;
    case device::Precision::kF32:
      break;
  }
  return ov::element::f32;
}

/// The engine reports a lack of memory in several texts.
bool says_out_of_memory(std::string_view what) {
  return what.find("bad_alloc") != std::string_view::npos ||
         what.find("out_of_memory") != std::string_view::npos ||
         what.find("Cannot allocate memory") != std::string_view::npos ||
         // The system has no memory for a thread, or allows no more threads.
         what.find("Resource temporarily unavailable") != std::string_view::npos;
}

std::atomic<bool> engine_used{false};
std::atomic<bool> engine_left_behind{false};

/// From when the module is loaded, so that no fork is missed.
[[maybe_unused]] const bool kWatchesForks =
    (call_in_forked_child([] {
       engine_left_behind.store(engine_used.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
     }),
     true);

}  // namespace

/// Marked before the core is made: a fork in between leaves threads behind as well.
ov::Core& engine_core() {
  engine_used.store(true, std::memory_order_relaxed);
  static Leaked<ov::Core> core;  // See the header.
  return *core;
}

Status engine_usable() {
  if (!engine_left_behind.load(std::memory_order_relaxed)) return {};
  return error(Code::kWrongState,
               "the parent of this process used the virtual NPU before it forked, and the "
               "engine's threads stayed there; start workers by spawn or exec (in Python: "
               "multiprocessing's 'spawn'), or fork before the first session is made");
}

ov::AnyMap compile_settings(const CopySettings& copy, const device::PrepareOptions& options) {
  return {
      ov::num_streams(ov::streams::Num(static_cast<std::int32_t>(copy.streams))),
      ov::inference_num_threads(static_cast<std::int32_t>(copy.threads)),
      // With pinning the engine rewrites the affinity of the thread that calls it.
      ov::hint::enable_cpu_pinning(false),
      ov::hint::inference_precision(precision_of(options.precision)),
      // Accuracy: ONNX arithmetic. Otherwise activations of int8-weight models are quantised too.
      ov::hint::execution_mode(options.fast_math ? ov::hint::ExecutionMode::PERFORMANCE
                                                 : ov::hint::ExecutionMode::ACCURACY),
      ov::enable_profiling(options.profile_layers),
  };
}

DType dtype_of(const ov::element::Type& type) noexcept {
  const ov::element::Type_t wanted = type;
  for (const TypePair& pair : kTypes)
    if (pair.engine == wanted) return pair.dtype;
  return wanted == ov::element::Type_t::string ? DType::kString : DType::kUndefined;
}

ov::element::Type engine_type(DType dtype) noexcept {
  for (const TypePair& pair : kTypes)
    if (pair.dtype == dtype) return pair.engine;
  return ov::element::dynamic;
}

Shape shape_of(const ov::PartialShape& shape) {
  if (shape.rank().is_dynamic()) return Shape{Shape::kOpen};
  std::vector<std::int64_t> dims;
  for (const ov::Dimension& dim : shape)
    dims.push_back(dim.is_static() ? dim.get_length() : Shape::kOpen);
  return Shape(std::move(dims));
}

Shape shape_of(const ov::Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

ov::Shape engine_shape(const Shape& shape) {
  ov::Shape result;
  for (const std::int64_t dim : shape.dims()) result.push_back(static_cast<std::size_t>(dim));
  return result;
}

Status engine_failure(std::string_view what, Code code, const NodeNames& names) {
  try {
    throw;
  } catch (const dnnl::error& e) {
    if (e.status != dnnl_out_of_memory) return error(code, "{}: oneDNN: {}", what, e.what());
  } catch (const std::bad_alloc&) {
    // Reported below.
  } catch (const std::exception& e) {
    if (!says_out_of_memory(e.what())) return complaint_status(code, what, e.what(), names);
  } catch (...) {
    return status_of_exception(what, code);
  }
  return error(Code::kOutOfMemory, "{}: the engine found no memory", what);
}

}  // namespace corelane::drivers::virtual_npu
