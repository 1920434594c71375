// A user of the installed library: opens the device named on the command line, and where it
// computes runs a model on it. Returns 0 when the answers are right.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "corelane/base/api.h"
#include "corelane/device/registry.h"
#include "corelane/runtime/program.h"

namespace {

// y = Relu(x), f32[4], as ONNX: the protobuf wire format by hand, so that no tool is needed.
std::string field(char number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(char number, char value) { return {static_cast<char>(number << 3), value}; }

std::string relu_model() {
  const std::string type = field(1, field(1, char{1}) + field(2, field(1, field(1, char{4}))));
  const std::string node = field(1, "x") + field(2, "y") + field(4, "Relu");
  const std::string graph = field(1, node) + field(2, "relu") +
                            field(11, field(1, "x") + field(2, type)) +
                            field(12, field(1, "y") + field(2, type));
  return field(1, char{8}) + field(7, graph) + field(8, field(2, char{13}));
}

int fail(const char* step, const corelane::Status& status) {
  std::fprintf(stderr, "consumer: %s: %s\n", step, status.to_string().c_str());
  return 1;
}

int run_relu(const std::string& device) {
  const std::string model = relu_model();
  corelane::LoadOptions options;
  options.device = device;
  options.cache = false;
  auto program = corelane::Program::load(
      corelane::ByteSpan{reinterpret_cast<const std::byte*>(model.data()), model.size()}, options);
  if (!program) return fail("load", program.error());
  auto context = program->new_context();
  if (!context) return fail("new_context", context.error());
  const float given[4] = {-1, 2, -3, 4};
  float got[4] = {};
  const corelane::TensorView input{given, sizeof given, corelane::DType::kF32, {4}, {}, {}};
  const corelane::MutableTensorView output{got, sizeof got, corelane::DType::kF32, {4}, {}, {}};
  if (const auto status = context->bind_input(0, input); !status.ok())
    return fail("bind_input", status);
  if (const auto status = context->bind_output(0, output); !status.ok())
    return fail("bind_output", status);
  if (const auto status = context->run(); !status.ok()) return fail("run", status);
  const float expected[4] = {0, 2, 0, 4};
  if (std::memcmp(got, expected, sizeof got) != 0) {
    std::fprintf(stderr, "consumer: got %g %g %g %g\n", got[0], got[1], got[2], got[3]);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string text = argc > 1 ? argv[1] : "null:rk3588";
  if (std::string(corelane::version()) != CORELANE_VERSION_STRING) {
    std::fprintf(stderr, "consumer: built for %s, runs with %s\n", CORELANE_VERSION_STRING,
                 corelane::version());
    return 1;
  }
  auto device = corelane::device::open_device(text);
  if (!device) return fail("open_device", device.error());
  if (text.starts_with("null")) return 0;
  return run_relu(text);
}
