// A small complete driver: a device that multiplies by a constant. Its images are text,
//   gain <factor> <rows, or ? for any> <columns> [<milliseconds that the device takes>]
// The engine blocks, as an engine does that computes on the CPU or waits for hardware: the library
// gives it threads, queues, priorities, deadlines, resets, buffers and traces.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "corelane/driver/module.h"

namespace {

using namespace corelane;
using device::TensorRef;

struct Network {
  float factor = 1;
  std::chrono::milliseconds time{};
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};

Result<Network> read_network(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string head;
  std::string rows;
  std::int64_t columns = 0;
  std::int64_t milliseconds = 0;
  Network network;
  if (!(words >> head >> network.factor >> rows >> columns) || head != "gain" || columns < 1)
    return error(Code::kMalformed, "'{}' is not 'gain FACTOR ROWS COLUMNS [MILLISECONDS]'", text);
  if (words >> milliseconds) network.time = std::chrono::milliseconds(milliseconds);
  CORELANE_ASSIGN(const Shape shape, parse_shape(rows + "," + std::to_string(columns)));
  for (const char* name : {"x", "y"}) {
    TensorDesc desc;
    desc.name = name;
    desc.dtype = DType::kF32;
    desc.shape = shape;
    (name[0] == 'x' ? network.inputs : network.outputs).push_back(std::move(desc));
  }
  return network;
}

class GainRequest final : public device::LaneRequest {
 public:
  explicit GainRequest(std::shared_ptr<const Network> network) : network_(std::move(network)) {}

  Status set_input(std::size_t, const TensorRef& tensor) override {
    input_ = tensor;
    return {};
  }
  Status set_output(std::size_t, const TensorRef& tensor) override {
    output_ = tensor;
    return {};
  }
  Status run(std::uint64_t) override {
    result_ = output_;
    result_.shape = input_.shape;
    const auto count = static_cast<std::size_t>(input_.shape.elements().value_or(0));
    result_.size = count * sizeof(float);
    if (output_.data == nullptr) {
      own_.resize(count);
      result_.data = own_.data();
    } else if (output_.size < result_.size) {
      return error(Code::kShapeMismatch, "output 'y' has {} bytes; the memory bound to it has {}",
                   result_.size, output_.size);
    }
    if (network_->time.count() > 0) std::this_thread::sleep_for(network_->time);  // The hardware.
    const auto* x = static_cast<const float*>(input_.data);
    auto* y = static_cast<float*>(result_.data);
    for (std::size_t i = 0; i < count; ++i) y[i] = network_->factor * x[i];
    return {};
  }
  Result<TensorRef> output(std::size_t) override { return result_; }
  Result<std::vector<device::LayerTime>> layer_times() const override {
    return error(Code::kUnsupported, "the device 'gain' has no layers to measure");
  }

 private:
  const std::shared_ptr<const Network> network_;
  TensorRef input_;
  TensorRef output_;
  TensorRef result_;
  std::vector<float> own_;
};

class GainProgram final : public device::LaneProgram {
 public:
  explicit GainProgram(Network network)
      : network_(std::make_shared<const Network>(std::move(network))) {}

  const std::vector<TensorDesc>& inputs() const noexcept override { return network_->inputs; }
  const std::vector<TensorDesc>& outputs() const noexcept override { return network_->outputs; }
  device::Placement placement() const noexcept override { return device::Placement::kShared; }
  device::MemoryFigures memory() const override { return {}; }
  Result<std::unique_ptr<device::LaneRequest>> new_request(std::size_t, std::size_t) override {
    return std::make_unique<GainRequest>(network_);
  }
  Result<device::Executable::Precompiled> export_precompiled() const override {
    return error(Code::kUnsupported, "the device 'gain' compiles nothing");
  }

 private:
  const std::shared_ptr<const Network> network_;
};

class GainEngine final : public device::LaneEngine {
 public:
  Result<std::shared_ptr<device::LaneProgram>> prepare(
      const device::Image& image, const device::PrepareOptions& options) override {
    if (image.kind != "gain")
      return error(Code::kForeignImage, "an image of kind '{}' cannot run on the device 'gain'",
                   image.kind);
    if (options.profile_layers || !options.exposed_values.empty() ||
        !options.custom_operators.empty())
      return error(Code::kUnsupported,
                   "the device 'gain' has no layers, inner values or custom operators");
    CORELANE_ASSIGN(Network network, read_network(as_string_view(image.bytes)));
    if (!options.input_shapes.empty()) {
      if (options.input_shapes.size() != 1 ||
          !network.inputs[0].shape.accepts(options.input_shapes[0]))
        return error(Code::kShapeMismatch, "the image has one input, of shape {}",
                     network.inputs[0].shape.to_string());
      network.inputs[0].shape = network.outputs[0].shape = options.input_shapes[0];
    }
    return std::make_shared<GainProgram>(std::move(network));
  }
};

const device::DriverDescription& describe_gain() {
  static const device::DriverDescription description = [] {
    device::DriverDescription d;
    d.kind = "gain";
    d.chips = {{"duo", 2, 100'000'000}, {"solo", 1, 100'000'000}};
    d.most_generic_cores = 8;
    d.files = {{"gain", "gain "}};
    d.capabilities.multi_core_jobs = true;
    d.capabilities.dynamic_shapes = true;
    d.capabilities.image_kinds = {"gain"};
    return d;
  }();
  return description;
}

Result<device::OpenedEngine> open_gain(const device::OpenRequest& request) {
  for (const auto& [key, value] : request.spec.options)
    if (key != "name")
      return error(Code::kInvalidArgument, "option '{}={}' is unknown; 'gain' takes name=...", key,
                   value);
  device::OpenedEngine opened{request.info, std::make_shared<GainEngine>()};
  opened.info.engine = "gain";
  return opened;
}

constexpr device::DriverModule kModule = {CORELANE_DRIVER_BUILD, &describe_gain, &open_gain};

}  // namespace

const corelane::device::DriverModule* corelane_driver_module_v1() { return &kModule; }
