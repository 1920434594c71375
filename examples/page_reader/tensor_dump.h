/// Writes what the models were given and what they answered, for a check by another engine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "corelane/base/status.h"
#include "corelane/runtime/context.h"
#include "work_queue.h"

namespace page_reader {

/// A folder with `<model>-<item>-in.npy`, `<model>-<item>-out<k>.npy` and `dump.json`, which lists
/// for each inference the model's ONNX file, these files and the decoded result. Used by one
/// thread.
class TensorDump {
 public:
  /// Creates the folder. kIo.
  static corelane::Result<std::unique_ptr<TensorDump>> create(const std::filesystem::path& folder);
  ~TensorDump();

  /// Input 0 of a context that is filled, in the form the device reads.
  corelane::Status input(const LoadedModel& model, std::uint32_t item, corelane::Context& context);
  /// All outputs of a finished run, and the decoded result as JSON text.
  corelane::Status outputs(const LoadedModel& model, std::uint32_t item,
                           const corelane::Context& context, const std::string& decoded_json);
  /// Writes dump.json; the path of it.
  corelane::Result<std::filesystem::path> finish() const;

 private:
  struct Impl;
  explicit TensorDump(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One tensor as a NumPy .npy file (format 1.0), plain layout. kUnsupported for a type that
/// NumPy does not have; kIo.
corelane::Status save_npy(const std::filesystem::path& path, const corelane::TensorView& tensor);

}  // namespace page_reader
