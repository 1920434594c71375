/// The backend that runs programs: the one file in which the scheduler meets the NPU.
#pragma once

#include <memory>

#include "corelane/scheduler/backend.h"

namespace corelane::scheduler {

/// "TensorrtTensor": a program on a device. Settings:
///   model     a program file or an ONNX file
///   device    text of the device; CORELANE_DEVICE, else "virtual:rk3588"
///   min, max  sizes of a batch, within those that the program was compiled for (--batch-range),
///             which are the default; of another program whose dimension 0 is open 1 and 1; one of
///             a fixed dimension 0 takes that many
///   weight    its part of the device's time beside others; gives the device fair_arbiter()
///   priority  of its jobs in the device, -128 to 127; 0
/// "data" is a Tensor, or a std::vector<Tensor> in the order of the program's inputs, of items rows
/// each, without quantization or with that of the input; "result" is the same of its outputs.
/// Instances share the program, each has a context. A request whose tensors do not fit fails alone.
/// Calls run in the instance's thread where a core is idle.
std::unique_ptr<Backend> make_program_backend(const BackendSurroundings& surroundings);

}  // namespace corelane::scheduler
