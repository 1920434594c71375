/// The real models of the benchmarks: files of pinned PyPI packages, with the shapes they run at.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "corelane/tensor/shape.h"

namespace corelane::bench {

struct RealModel {
  std::string name;
  std::filesystem::path path;
  std::vector<Shape> shapes;  ///< One per input; all inputs are f32.
};

/// Those that are installed below `site_packages`; the others are left out with a line on stderr.
std::vector<RealModel> real_models(const std::filesystem::path& site_packages);

/// Values in [-1, 1) for each input; the same in every call, for all contenders.
std::vector<std::vector<float>> make_inputs(const RealModel& model);

}  // namespace corelane::bench
