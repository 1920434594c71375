/// Tensors as .npy files, for `RKNN_LOG_LEVEL` 5.
///
/// `RKNN_DUMP_DIR` (default: the current directory) gets a folder per context,
/// `rknn_dump_<handle>`, with `<frame>_<place>_<what>_<name>.npy`: inputs as the network gets them,
/// the value of each node, and outputs, in the model's order; floats as float32. `RKNN_DUMP_QUANT`
/// other than "" and "0" also writes the integer form of inputs and outputs that have one, as
/// `..._quant.npy`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/onnx/network_nodes.h"
#include "corelane/program/description.h"
#include "corelane/runtime/program.h"
#include "corelane/tensor/desc.h"

namespace corelane::rknn {

struct Frame;
struct ModelFacts;
class IoMemory;
class Queries;

/// With `load`. When tensors are dumped, the values of nodes become outputs after those of the
/// network, where the device can give them; it is a warning where it cannot.
Result<Program> load_dumped(const LoadOptions& options,
                            const std::function<Result<Program>(const LoadOptions&)>& load);
/// RKNN_LOG_LEVEL 4 and 5, after a run: its layers as lines, its tensors as files.
void log_run(const ModelFacts& facts, const Queries& queries, const IoMemory& io_memory,
             Frame& frame);

/// `RKNN_DUMP_DIR`, and whether `RKNN_DUMP_QUANT` asks for integers.
std::filesystem::path dump_directory();
bool dump_quantized();

/// The values that dumping adds to a program's outputs: one for each output of a node that is not
/// an output of the network and may be a tensor.
std::vector<std::string> dumped_values(const std::vector<NetworkNode>& nodes,
                                       const ProgramDescription& description);

/// Writes a plain tensor; types that the format lacks (bf16, 4 bits) as the next larger one.
Status write_npy(const std::filesystem::path& path, const TensorView& tensor);

/// A name as part of a file's name.
std::string file_word(std::string_view name);

}  // namespace corelane::rknn
