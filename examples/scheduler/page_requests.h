/// What the examples of the scheduler ask: which way up does a page lie? Pictures become requests.
#pragma once

#include <fmt/format.h>

#include <any>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "corelane/base/status.h"
#include "corelane/scheduler/request.h"
#include "corelane/scheduler/statistics.h"
#include "corelane/tensor/convert.h"
#include "corelane/tensor/tensor.h"
#include "page_orientation.h"
#include "picture.h"
#include "picture_file.h"

namespace scheduler_example {

/// The pixels as the program takes them: f32, [1, 3, height, width], mean and deviation applied.
inline corelane::Result<corelane::Tensor> tensor_of(const page_reader::ModelInput& input) {
  const auto& pixels = input.pixels;
  corelane::TensorView from;
  from.data = pixels.bytes().data();
  from.size = pixels.bytes().size();
  from.dtype = corelane::DType::kU8;
  from.shape = {1, 3, pixels.height(), pixels.width()};
  from.layout.kind = corelane::LayoutKind::kNHWC;
  CORELANE_ASSIGN(auto tensor, corelane::Tensor::allocate("x", corelane::DType::kF32, from.shape));
  corelane::ConvertOptions convert;
  convert.mean = input.mean;
  convert.std = input.std;
  CORELANE_TRY(corelane::convert(from, tensor.mutable_view(), convert));
  return tensor;
}

/// One page as a tensor: `picture` turned clockwise by so many quarters.
inline corelane::Result<corelane::Tensor> turned_page(const page_reader::Picture& picture,
                                                      int quarters) {
  return tensor_of(page_reader::orientation_input(page_reader::turn(picture, -quarters)));
}

/// The page of a file, turned clockwise by 0 to 3 quarters.
inline corelane::Result<std::array<corelane::Tensor, 4>> turned_pages(
    const std::filesystem::path& file) {
  CORELANE_ASSIGN(const auto picture, page_reader::load_picture(file));
  std::array<corelane::Tensor, 4> pages;
  for (std::size_t turns = 0; turns < pages.size(); ++turns) {
    CORELANE_ASSIGN(auto page, turned_page(picture, static_cast<int>(turns)));
    pages[turns] = std::move(page);
  }
  return pages;
}

/// The values of a tensor of f32.
inline std::span<const float> floats(const corelane::Tensor& tensor) {
  return {static_cast<const float*>(tensor.data.get()), tensor.size / sizeof(float)};
}

/// The scores that came back with a request.
inline std::span<const float> scores_of(const corelane::scheduler::Dict& request) {
  return floats(std::any_cast<const corelane::Tensor&>(request.at(corelane::scheduler::kResult)));
}

/// By how much a page is turned clockwise, as they say.
inline unsigned degrees_seen(const corelane::scheduler::Dict& request) {
  return static_cast<unsigned>(page_reader::read_orientation(scores_of(request)).degrees);
}

/// In one line: how many requests came how fast, and in how many calls they ran.
inline void print_figures(const corelane::scheduler::Statistics& all, unsigned clients, double ms) {
  const auto done = static_cast<double>(all.done);
  fmt::print(
      "{} requests of {} clients in {:.2f} s, {:.1f} a second; {} calls, mean batch {:.2f}\n",
      all.done, clients, ms / 1000, 1000 * done / ms, all.batches,
      static_cast<double>(all.batch_items) / static_cast<double>(all.batches));
}

}  // namespace scheduler_example
