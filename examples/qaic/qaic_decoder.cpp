/// A decoder whose state stays on the device: its buffers are left out, and each step begins with
/// what the one before left. The same steps again with state that the host hands on: the results
/// are the same, bit for bit.
///
///   CORELANE_TIME_ENGINES=0 qaic_decoder folder_of_the_container
///
/// With that setting one engine computes all rounds: two differ in the last bits.
/// The container is of a network with one f32 input beside the state, and one f32 output:
/// corelane compile decoder.onnx --state next=h --target aic100 -o decoder
#include <cstring>
#include <iostream>

#include "qaic_pages.h"

namespace {

using namespace qaic_example;  // NOLINT(google-build-using-namespace)

constexpr int kSteps = 1000;

/// Which of the buffers is what.
struct Places {
  std::size_t input = 0;
  std::size_t output = 0;
  QAicStateInfo state;
};

Places places_of(const qaic::rt::ExecObj& object, const qaic::rt::BufferMappings& mappings) {
  std::vector<QAicStateInfo> states;
  need(object.getStates(states), "getStates");
  if (states.size() != 1) throw std::runtime_error("the network keeps no state, or several");
  Places places{mappings.size(), mappings.size(), states[0]};
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    if (i == states[0].inputIndex || i == states[0].outputIndex) continue;
    (mappings[i].ioType == BUFFER_IO_TYPE_INPUT ? places.input : places.output) = i;
  }
  if (places.input == mappings.size() || places.output == mappings.size())
    throw std::runtime_error("the network needs an input and an output beside its state");
  return places;
}

/// Numbers that differ from step to step, and are the same in each round.
void fill(std::vector<float>& values, int step) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int>(i) * 37 + step * 11) % 64) / 32.F - 1.F;
}

QBuffer buffer_of(std::vector<float>& values) {
  QBuffer buffer;
  buffer.size = values.size() * sizeof(float);
  buffer.buf = reinterpret_cast<std::uint8_t*>(values.data());
  return buffer;
}

/// The results of all steps. `by_the_host`: state goes out and in again at each.
std::vector<float> decode(qaic::rt::ExecObj& object, const qaic::rt::BufferMappings& mappings,
                          const Places& places, bool by_the_host) {
  std::vector<float> input(mappings[places.input].size / sizeof(float));
  std::vector<float> output(mappings[places.output].size / sizeof(float));
  std::vector<float> state(places.state.size / sizeof(float));
  std::vector<float> next(state.size());
  std::vector<QBuffer> buffers(mappings.size());  // Size 0: left out.
  buffers[places.input] = buffer_of(input);
  buffers[places.output] = buffer_of(output);
  if (by_the_host) {
    buffers[places.state.inputIndex] = buffer_of(state);
    buffers[places.state.outputIndex] = buffer_of(next);
  }
  need(object.setData(buffers), "setData");
  std::vector<float> results;
  for (int step = 0; step < kSteps; ++step) {
    fill(input, step);
    need(object.run(), "run");
    results.insert(results.end(), output.begin(), output.end());
    if (by_the_host) state = next;
  }
  return results;
}

int decode_twice(const std::string& folder) {
  const auto context = qaic::rt::Context::Factory();
  const auto program =
      qaic::rt::Program::Factory(context, 0, "decoder", qaic::rt::Qpc::Factory(folder));
  const auto object = qaic::rt::ExecObj::Factory(context, program);
  const qaic::rt::BufferMappings& mappings = program->getBufferMappings();
  const Places places = places_of(*object, mappings);
  std::cout << "state    " << mappings[places.state.outputIndex].bufferName << " -> "
            << mappings[places.state.inputIndex].bufferName << ", " << places.state.size
            << " bytes\n";
  const auto kept = decode(*object, mappings, places, false);
  need(object->resetState(), "resetState");
  const auto again = decode(*object, mappings, places, false);
  const auto wanted = decode(*object, mappings, places, true);
  const auto same = [&](const std::vector<float>& results) {
    return std::memcmp(results.data(), wanted.data(), wanted.size() * sizeof(float)) == 0;
  };
  std::cout << kSteps << " steps, state on the device: " << (same(kept) ? "the same" : "OTHERS")
            << " as by the host\n"
            << kSteps << " steps after a reset:        " << (same(again) ? "the same" : "OTHERS")
            << "\n";
  return same(kept) && same(again) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("give the folder of the container");
    return decode_twice(argv[1]);
  } catch (const std::exception& failure) {
    std::cerr << argv[0] << ": error: " << failure.what() << "\n";
    return 1;
  }
}
