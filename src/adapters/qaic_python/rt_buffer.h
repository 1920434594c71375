/// QBuffer: memory of one input or output, which stays as long as somebody uses it.
///
/// All functions need the lock of the interpreter; the shared memory may be dropped in any thread.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "qaicapihpp/QAicApiDataTypes.hpp"

namespace corelane::qaic_python {

struct Buffer {
  QBuffer raw{};
  bool writable = false;
  std::shared_ptr<const void> keep;  ///< The memory's owner; null for none and for descriptors.
  bool own = false;                  ///< Its memory was made here, not brought by the user.

  bool is_memory() const noexcept {
    return raw.type == QBUFFER_TYPE_HEAP || raw.type == QBUFFER_TYPE_INVAL;
  }
};
using Buffers = std::vector<Buffer>;

/// A writable one of `size` bytes of 0.
Buffer make_buffer(std::size_t size);
/// A QBuffer, or any object that shows contiguous memory. TypeError, ValueError for others.
Buffer buffer_of(nanobind::handle value);
/// The buffers of each object of a sequence.
Buffers buffers_of(nanobind::handle values);
/// As the classes take them.
std::vector<QBuffer> raw(const Buffers& buffers);
/// A list of new QBuffer objects.
nanobind::list as_list(const Buffers& buffers);

/// Gives each output whose memory cannot be written memory of its own, as large: that of `before`
/// where nobody else holds it. True where there was one.
bool bring_outputs(Buffers& buffers, const qaic::rt::BufferMappings& mappings,
                   const Buffers& before);

/// Dimensions: a BufferDimensionsVecRef, or any sequence of (bytes of an element, dimensions).
qaic::rt::BufferDimensions dimensions_of(nanobind::handle values);
/// A list of them, as BufferDimensionsVecRef.
nanobind::object as_dimensions(const qaic::rt::BufferDimensions& dimensions);

/// Numbers of devices: none for None, one for an int, or those of a sequence.
std::vector<QID> devices_of(nanobind::handle value);
/// "0:1:2", a devMapping.
std::string mapping_of(const std::vector<QID>& devices);
/// A QIDList.
nanobind::object as_devices(const std::vector<QID>& devices);

void bind_buffers(nanobind::module_& module);

}  // namespace corelane::qaic_python
