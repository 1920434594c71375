/// The engine itself: one OpenVINO core per process, its settings, and translations of types,
/// shapes and exceptions. Only files of this folder that include this one see OpenVINO.
#pragma once

#include <cstddef>
#include <openvino/openvino.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "corelane/base/status.h"
#include "corelane/device/executable.h"
#include "drivers/virtual/engine/engine_complaint.h"

namespace corelane::drivers::virtual_npu {

/// The core, created at the first call (loading the CPU plug-in takes 35-70 ms). Lives as long as
/// the process: its threads may outlast any static. May throw.
ov::Core& engine_core();

/// kWrongState in a process that was forked after the engine's first use: its threads stayed in the
/// parent, and a compilation that gives them work would never end.
Status engine_usable();

/// How one compiled copy of a network runs.
struct CopySettings {
  std::size_t streams = 1;
  std::size_t threads = 1;  ///< All streams together.
};

ov::AnyMap compile_settings(const CopySettings& copy, const device::PrepareOptions& options);

/// kUndefined for types that have no counterpart.
DType dtype_of(const ov::element::Type& type) noexcept;
ov::element::Type engine_type(DType dtype) noexcept;

/// Open dimensions as Shape::kOpen. An unknown rank becomes one open dimension.
Shape shape_of(const ov::PartialShape& shape);
Shape shape_of(const ov::Shape& shape);
/// The engine's form of a static shape.
ov::Shape engine_shape(const Shape& shape);

/// As status_of_exception() of base/guard.h, for what OpenVINO and oneDNN throw: its text is read
/// (engine_complaint.h), and a lack of memory, also one that stands in the text only, is
/// kOutOfMemory.
Status engine_failure(std::string_view what, Code code, const NodeNames& names = {});

/// As no_throw() of base/guard.h, with engine_failure(). `what` is made at each call: for calls
/// that take longer than a text.
template <class F>
std::invoke_result_t<F&> engine_call(std::string_view what, Code code, F&& f,
                                     const NodeNames& names = {}) {
  try {
    return f();
  } catch (...) {
    return error(engine_failure(what, code, names));
  }
}

}  // namespace corelane::drivers::virtual_npu
