/// What the examples of inference sets run: pictures of pages, turned, and which way up they lie.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "corelane/base/status.h"
#include "corelane/tensor/desc.h"
#include "page_orientation.h"
#include "picture_file.h"
#include "session_example.h"

namespace set_example {

struct Options : session_example::Arguments {
  std::filesystem::path model;
  std::vector<std::filesystem::path> pictures;
};

inline void add_options(CLI::App& app, Options& options) {
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("pictures", options.pictures, "PNG or JPEG files")->required();
  session_example::add_device_option(app, options);
}

/// Each picture in each of four turns; its number is the id of its inference.
class Turns {
 public:
  corelane::Status load(const std::vector<std::filesystem::path>& paths) {
    for (const auto& path : paths) {
      CORELANE_ASSIGN(auto picture, page_reader::load_picture(path));
      names_.push_back(path.filename().string());
      pictures_.push_back(std::move(picture));
    }
    return {};
  }
  std::size_t count() const { return pictures_.size() * 4; }
  page_reader::ModelInput input(std::size_t id) const {
    return page_reader::orientation_input(
        page_reader::turn(pictures_[id / 4], -static_cast<int>(id % 4)));
  }
  std::string name(std::size_t id) const {
    return fmt::format("{} turned by {:3}", names_[id / 4], 90 * (id % 4));
  }

 private:
  std::vector<std::string> names_;
  std::vector<page_reader::Picture> pictures_;
};

/// What the network says, from its scores.
inline std::string answer(const corelane::TensorView& scores) {
  const auto seen = page_reader::read_orientation(
      {static_cast<const float*>(scores.data), scores.size / sizeof(float)});
  return fmt::format("lies at {:3} degrees, {:.1f} % sure", seen.degrees, seen.score * 100);
}

}  // namespace set_example
