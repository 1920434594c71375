// The files that export_cases.py writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "corelane/base/bytes.h"
#include "corelane/base/status.h"
#include "corelane/tensor/dtype.h"
#include "corelane/tensor/shape.h"

namespace node_tests {

/// A value of a case. onnx_type 0: the flat form of a value that is not a tensor of numbers.
struct CaseTensor {
  std::uint32_t onnx_type = 0;
  corelane::DType dtype = corelane::DType::kUndefined;
  corelane::Shape shape;
  corelane::ByteVector data;
};

struct Case {
  std::string name;
  std::int64_t opset = 0;
  double rtol = 0;
  double atol = 0;
  std::vector<CaseTensor> inputs;
  std::vector<CaseTensor> outputs;
  corelane::ByteVector model;
};

/// Names of all cases of a folder, sorted.
std::vector<std::string> list_cases(const std::filesystem::path& folder);
corelane::Result<Case> read_case(const std::filesystem::path& folder, const std::string& name);

/// Names and causes.
using List = std::map<std::string, std::string>;
/// The lines "name: cause" of a file, without comments; empty where there is no file.
List read_list(const std::filesystem::path& path);

/// "" when `got` has the type, the shape and the size that the case expects, else the difference.
std::string compare_kinds(const CaseTensor& expected, const CaseTensor& got);
/// "" when `got` is what the case expects, else the first difference.
std::string compare(const CaseTensor& expected, const CaseTensor& got, double rtol, double atol);
/// The same of values in their flat form.
std::string compare_flat(const CaseTensor& expected, const CaseTensor& got, double rtol,
                         double atol);

}  // namespace node_tests
