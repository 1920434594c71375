/// Models with a table in common, and program files made of several of them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "corelane/base/file.h"
#include "corelane/runtime/program.h"
#include "runtime/testing/onnx_builder.h"
#include "smoke_support.h"

namespace corelane::testing {

/// A folder of this test, removed with it.
class PartsFolder {
 public:
  explicit PartsFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("corelane-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~PartsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PartsFolder(const PartsFolder&) = delete;
  PartsFolder& operator=(const PartsFolder&) = delete;

  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    EXPECT_TRUE(write_file_atomic(path_ / name, as_byte_span(bytes)).ok());
    return path_ / name;
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Row r of the table has r + 0.5 in each of its columns.
inline constexpr std::int64_t kColumns = 256;

/// y = table[ids] * (x + scale), for two ids. Each scale makes another network; the engine would
/// multiply a table of its own where the factor is constant.
inline std::string lookup_model(std::int64_t rows, float scale) {
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(rows * kColumns));
  for (std::int64_t row = 0; row < rows; ++row)
    table.insert(table.end(), kColumns, static_cast<float>(row) + 0.5F);
  return OnnxBuilder()
      .input("ids", {std::int64_t{2}}, kOnnxInt64)
      .input("x", {std::int64_t{1}})
      .output("y", {std::int64_t{2}, kColumns})
      .constant<float>("table", {rows, kColumns}, kOnnxFloat, table)
      .constant<float>("scale", {1}, kOnnxFloat, {scale})
      .node("Gather", {"table", "ids"}, {"rows"})
      .node("Add", {"x", "scale"}, {"factor"})
      .node("Mul", {"rows", "factor"}, {"y"})
      .build("main_graph");
}

/// y = x * matrix + scale, over a square matrix of `size`, which the engine packs.
inline std::string product_model(std::int64_t size, float scale) {
  std::vector<float> matrix(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 7) - 3;
  return OnnxBuilder()
      .input("x", {std::int64_t{1}, size})
      .output("y", {std::int64_t{1}, size})
      .constant<float>("matrix", {size, size}, kOnnxFloat, matrix)
      .constant<float>("scale", {1}, kOnnxFloat, {scale})
      .node("MatMul", {"x", "matrix"}, {"product"})
      .node("Add", {"product", "scale"}, {"y"})
      .build("main_graph");
}

/// The two rows that ids 1 and 3 give for x = 0, by a column of each.
inline Result<std::vector<float>> looked_up(const Program& program) {
  CORELANE_ASSIGN(Context context, program.new_context());
  const std::vector<std::int64_t> ids{1, 3};
  CORELANE_TRY(context.set_input(0, {ids.data(), 16, DType::kI64, Shape{2}, {}, {}}));
  const float x = 0;
  CORELANE_TRY(context.set_input(1, {&x, sizeof x, DType::kF32, Shape{1}, {}, {}}));
  CORELANE_TRY(context.run());
  CORELANE_ASSIGN(const TensorView y, context.output(0));
  const std::vector<float> values = floats_of(y);
  if (values.size() != 2 * kColumns) return error(Code::kShapeMismatch, "{} values", values.size());
  return std::vector<float>{values.front(), values.back()};
}

}  // namespace corelane::testing
