/// What the session examples share: sessions that take pixels, figures, files for a check by
/// another engine, and the last line of a failure. Pictures, boxes and letters are those of the
/// page reader.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corelane/session/session.h"
#include "model_input.h"
#include "picture.h"

namespace session_example {

/// Options of every example.
struct Arguments {
  std::string device;          ///< Empty: CORELANE_DEVICE, else virtual:rk3588.
  std::filesystem::path dump;  ///< Empty: nothing is written.
};
void add_options(CLI::App& app, Arguments& arguments);
/// --device alone; `none` is what opens without it.
void add_device_option(CLI::App& app, Arguments& arguments,
                       std::string_view none = "CORELANE_DEVICE, else virtual:rk3588");

/// Parses, runs, and tells in one line what went wrong; the exit code.
int run(CLI::App& app, int argc, char** argv, const std::function<corelane::Status()>& body);

/// A session that takes bytes, [1, height, width, 3], and computes (pixel - mean) / std itself;
/// `scale` is asked for its mean and std alone.
corelane::SessionOptions pixel_options(const Arguments& arguments,
                                       const page_reader::ModelInput& scale);

/// The pixels as the only input; they must stay until the call has read them.
corelane::Feed feed_of(const page_reader::Picture& pixels);
/// The same for several samples of one size, one after the other in `bytes`.
corelane::Feed feed_of(std::span<const std::uint8_t> bytes, const corelane::Shape& shape);

/// The values of an f32 output.
std::span<const float> floats(const corelane::Tensor& tensor);

/// What is listed under "character" in a model's metadata; kUnsupportedModel.
corelane::Result<std::string> character_listing(const corelane::Session& session);

/// The PNG and JPEG files of a folder by name, or the file itself; kNotFound.
corelane::Result<std::vector<std::filesystem::path>> pictures_in(const std::filesystem::path& path);

/// Writes <name>-<number>-in.npy and -out.npy, where `arguments` ask for it.
corelane::Status dump(const Arguments& arguments, std::string_view name, std::size_t number,
                      const corelane::Feed& feed, const corelane::Tensor& output);

/// "core 0: 16, core 1: 16": tasks of a session with a schedule.
std::string tasks_by_core(const corelane::SessionStatistics& statistics);

/// Milliseconds since it was made.
class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace session_example
