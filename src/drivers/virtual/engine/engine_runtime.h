/// The engine itself: one OpenVINO core per process, its settings, and translations of types,
/// shapes and exceptions. Only files of this folder that include this one see OpenVINO.
#pragma once

#include <cstddef>
#include <openvino/openvino.hpp>
#include <string>
#include <string_view>

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

/// CPUs this process may use, at least 1.
std::size_t usable_cpus();

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
/// Of a static shape.
ov::Shape engine_shape(const Shape& shape);

/// To be called in a catch block: the exception in flight as a Status. std::bad_alloc (also when
/// the engine reports it in a text only) is kOutOfMemory.
Status status_of_exception(Code code, std::string_view context, const NodeNames& names = {});

}  // namespace corelane::drivers::virtual_npu
