#include "qaic_pages.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "page_orientation.h"
#include "picture_file.h"

namespace qaic_example {
namespace {

/// (pixel - mean) / std, plane by plane.
std::vector<float> values_of(const page_reader::ModelInput& input) {
  const std::vector<std::uint8_t>& bytes = input.pixels.bytes();
  const std::size_t pixels = bytes.size() / 3;
  std::vector<float> values(bytes.size());
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = 0; i < pixels; ++i)
      values[channel * pixels + i] =
          (static_cast<float>(bytes[i * 3 + channel]) - input.mean[channel]) / input.std[channel];
  return values;
}

QBuffer buffer_of(std::vector<float>& values) {
  return {values.size() * sizeof(float), reinterpret_cast<uint8_t*>(values.data())};
}

void write(const std::string& path, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int run(int argc, char** argv, const std::function<void(const Arguments&)>& body) {
  return run(argc, argv, nullptr, body);
}

int run(int argc, char** argv, const char* folder,
        const std::function<void(const Arguments&)>& body) {
  if (argc < 3 || argc > (folder == nullptr ? 3 : 4)) {
    const std::string third = folder == nullptr ? "" : std::string(" [") + folder + "]";
    std::fprintf(stderr, "usage: %s CONTAINER PICTURE%s\n", argv[0], third.c_str());
    return 2;
  }
  try {
    body({argv[1], argv[2], argc > 3 ? argv[3] : ""});
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: error: %s\n", argv[0], e.what());
    return 1;
  }
}

void need(QStatus status, const char* what) {
  if (status != QS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
}

Page::Page(const Arguments& arguments, const qaic::rt::BufferMappings& mappings, std::size_t turn)
    : turn_(turn) {
  const auto page = page_reader::load_picture(arguments.picture);
  if (!page) throw std::runtime_error(page.error().to_string());
  input_ = values_of(
      page_reader::orientation_input(page_reader::turn(*page, -static_cast<int>(turn % kTurns))));
  if (mappings.size() != 2 || mappings[0].size != input_.size() * sizeof(float))
    throw std::runtime_error("'" + arguments.container +
                             "' is not an orientation model with an input of 1 x 3 x 224 x 224");
  output_.resize(mappings[1].size / sizeof(float));
}

std::vector<QBuffer> Page::buffers() { return {buffer_of(input_), buffer_of(output_)}; }

std::string Page::answer() const {
  const auto seen = page_reader::read_orientation(output_);
  char text[80];
  std::snprintf(text, sizeof text, "turned by %3zu: lies at %3d degrees, %.1f %% sure",
                90 * (turn_ % kTurns), seen.degrees, static_cast<double>(seen.score) * 100);
  return text;
}

void Page::dump(const std::string& folder) const {
  if (folder.empty()) return;
  write(folder + "/" + std::to_string(turn_) + "-in.bin", input_);
  write(folder + "/" + std::to_string(turn_) + "-out.bin", output_);
}

bool infer(const qaic::rt::shInferenceSet& set, Page& page, std::size_t id) {
  qaic::rt::shInferenceHandle handle;
  need(set->getAvailable(handle), "getAvailable");
  need(handle->setBuffers(page.buffers()), "setBuffers");
  QStatus status = set->submit(handle, id);
  // A failure gives the handle, too, and its reason.
  if (status == QS_SUCCESS) status = set->getCompletedId(handle, id);
  need(set->putCompleted(handle), "putCompleted");
  if (status == QS_DEV_ERROR) return false;
  need(status, "the inference");
  return true;
}

void wait_until_ready(QID device) {
  QDevInfo info{};
  for (;;) {
    need(qaic::rt::Util::getDeviceInfo(device, info), "getDeviceInfo");
    if (info.devStatus == QDS_READY) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace qaic_example
