/// Programs of y = x * {1, 2, 3, 4} for the backend that runs programs, and requests for them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "corelane/runtime/program.h"
#include "corelane/scheduler/request.h"
#include "corelane/tensor/tensor.h"
#include "runtime/testing/onnx_builder.h"

namespace corelane::scheduler::testing {

/// The model, of shape [rows, 4].
inline std::string weighted(const corelane::testing::OnnxBuilder::Dim& rows) {
  const std::vector<corelane::testing::OnnxBuilder::Dim> dims{rows, std::int64_t{4}};
  return corelane::testing::OnnxBuilder()
      .input("x", dims)
      .output("y", dims)
      .constant("w", {4}, corelane::testing::kOnnxFloat, std::vector<float>{1, 2, 3, 4})
      .node("Mul", {"x", "w"}, {"y"})
      .build("weighted");
}

/// A folder that goes with the test.
class ProgramFiles {
 public:
  ProgramFiles() {
    std::string text = (std::filesystem::temp_directory_path() / "corelane-sched-XXXXXX").string();
    folder_ = mkdtemp(text.data());
  }
  ~ProgramFiles() { std::filesystem::remove_all(folder_); }
  ProgramFiles(const ProgramFiles&) = delete;
  ProgramFiles& operator=(const ProgramFiles&) = delete;

  std::string write(const std::string& name, ByteSpan bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }
  /// The model for batches of `batch`.
  std::string program(std::uint32_t batch) const {
    CompileOptions options;
    options.import.batch = batch;
    const std::string onnx = weighted(std::int64_t{1});
    return write("batch" + std::to_string(batch) + ".rknn",
                 *compile_bytes(as_byte_span(onnx), options));
  }

 private:
  std::filesystem::path folder_;
};

/// Values from `first` on.
inline Tensor rows(std::uint32_t count, float first) {
  Tensor tensor = *Tensor::allocate("x", DType::kF32, Shape{count, 4});
  for (std::uint32_t i = 0; i < count * 4; ++i)
    static_cast<float*>(tensor.data.get())[i] = first + static_cast<float>(i);
  return tensor;
}

inline void expect_answer(const Dict& values, std::uint32_t count, float first) {
  const auto& result = std::any_cast<const Tensor&>(values.at(kResult));
  ASSERT_EQ(result.shape, (Shape{count, 4}));
  for (std::uint32_t i = 0; i < count * 4; ++i)
    EXPECT_EQ(static_cast<const float*>(result.data.get())[i],
              (first + static_cast<float>(i)) * static_cast<float>(i % 4 + 1));
}

}  // namespace corelane::scheduler::testing
